//! The context of a task, prepared before the model is asked: files are listed, found and read, each as a step.
//!
//! The index of files knows paths and words; only the handler's own tools read content or run commands, through the same
//! gates as a model's calls.

use std::sync::{Mutex, PoisonError};

use fusee_journal::event::Fate;
use fusee_journal::{Branch, Stop};
use fusee_tools::Category;
use serde_json::{Value, json};

use super::TaskSystem;
use super::compose::{Prepared, ReadFile};
use super::context::{self, ContextSettings};
use super::error::{ErrorType, Reason, TaskError};
use super::execute::Herald;
use super::request::{FreshContext, SubtaskRequest};
use crate::agent::{Called, Calling, Limits, RankBy, Session, Spent};
use crate::approval::{Gate, Gatekeeper, Question};
use crate::memory::{Answer, Asking, Query, unordered};
use crate::template::{FilePaths, Template, shown};

/// The share of the context that what was prepared may fill where nothing is said.
const FRACTION: f64 = 0.5;

/// Bytes a token takes, roughly; the turn loop counts better once a server has answered.
const TOKEN_BYTES: f64 = 4.0;

/// Files that a command or a list may name.
const MOST_FILES: usize = 200;

/// How often a command that lists files is run anew after its process was killed.
const LISTED_AGAIN: usize = 3;

/// Files that a search gives.
pub(super) const MATCHES: usize = 5;

/// Where a task is prepared.
pub(super) struct Preparing<'a> {
    pub(super) system: &'a TaskSystem,
    pub(super) session: &'a Session,
    pub(super) branch: &'a Branch,
    pub(super) cancel: &'a fusee_model::CancellationToken,
    pub(super) herald: &'a Herald<'a>,
    /// What was used up so far.
    pub(super) spent: Mutex<Spent>,
}

/// A step that failed the task, or the run.
pub(super) enum Trouble {
    /// The task fails so.
    Failed(Box<TaskError>),
    /// The run cannot go on.
    Stopped(Stop),
}

impl From<Stop> for Trouble {
    fn from(stop: Stop) -> Self {
        Self::Stopped(stop)
    }
}

impl From<TaskError> for Trouble {
    fn from(error: TaskError) -> Self {
        Self::Failed(Box::new(error))
    }
}

impl Preparing<'_> {
    /// Everything the task is given beside its own words.
    pub(super) async fn prepare(
        &self,
        template: &Template,
        request: &SubtaskRequest,
        settings: &ContextSettings,
        limits: &Limits,
    ) -> Result<Prepared, Trouble> {
        let own = template.instructions.as_deref().unwrap_or_default();
        let words = format!("{} {own}", template.description);
        let inherited = context::inherited(settings, request.inherited_context.as_ref(), &words);
        let mut prepared = Prepared { inherited, ..Prepared::default() };
        let mut listed = self.listed(template, request).await?;
        listed.extend(prepared.inherited.files.iter().cloned());
        dedup(&mut listed);
        if listed.len() > MOST_FILES {
            let message = format!("{} files are listed, and at most {MOST_FILES} are shown", listed.len());
            return Err(TaskError::failure(Reason::ContextRetrievalFailure, message).into());
        }
        prepared.listed = !listed.is_empty();
        let fraction = template.limits.context_fraction.unwrap_or(FRACTION);
        let room = (limits.max_tokens as f64 * TOKEN_BYTES * fraction) as usize;
        let mut used: usize = prepared.inherited.parts.iter().map(|part| part.text.len()).sum();
        for path in listed {
            let file = self.read(&path).await?;
            used += file.content.len();
            prepared.files.push(file);
        }
        if used > room {
            let message = format!(
                "the files and the inherited context hold about {} tokens, and {} may be filled with them \
                 (`context_fraction`)",
                used / 4,
                room / 4
            );
            let failure = TaskError::failure(Reason::Context, message);
            return Err(TaskError { kind: ErrorType::ResourceExhaustion, ..failure }.into());
        }
        if settings.fresh_context == FreshContext::Enabled {
            prepared.searched = true;
            self.search(template, request, room.saturating_sub(used), &mut prepared).await?;
        }
        Ok(prepared)
    }

    /// The paths that the request lists, else those of the template.
    async fn listed(&self, template: &Template, request: &SubtaskRequest) -> Result<Vec<String>, Trouble> {
        if let Some(paths) = &request.file_paths {
            return Ok(paths.clone());
        }
        match &template.file_paths {
            None => Ok(Vec::new()),
            Some(FilePaths::Literal(paths)) => Ok(paths.clone()),
            Some(FilePaths::Command(command)) => self.printed(command).await,
            Some(FilePaths::Description(words) | FilePaths::ContextDescription(words)) => {
                let found = self.found(words, MATCHES).await?;
                Ok(found.matches.into_iter().map(|found| found.path).collect())
            }
        }
    }

    /// The paths that a command prints. It runs through the same tool and the same gate as a model's commands.
    async fn printed(&self, command: &str) -> Result<Vec<String>, Trouble> {
        let failed = |message: String| TaskError::failure(Reason::ContextRetrievalFailure, message);
        let mut called = self.call("shell", json!({ "command": command })).await?;
        for _ in 0..LISTED_AGAIN {
            // It is there to say what is there, so one that was cut off with its process may say it again.
            if called.fate == Some(Fate::Interrupted) {
                called = self.call("shell", json!({ "command": command })).await?;
            }
        }
        let output = called.output;
        if !output.ok || output.exit_code.is_some_and(|code| code != 0) {
            let said = output.content.trim();
            return Err(failed(format!("the command `{command}` that lists files failed: {said}")).into());
        }
        let lines = output.content.lines().map(str::trim);
        // The tool ends its answer with a line about the exit code.
        let paths =
            lines.filter(|line| !line.is_empty() && !line.starts_with('[') && !line.starts_with("exit code"));
        Ok(paths.map(str::to_owned).collect())
    }

    async fn read(&self, path: &str) -> Result<ReadFile, Trouble> {
        let called = self.call("read_file", json!({ "path": path })).await?;
        if !called.output.ok {
            let message = format!("the file `{path}` cannot be shown: {}", called.output.content.trim());
            return Err(TaskError::failure(Reason::ContextRetrievalFailure, message).into());
        }
        Ok(ReadFile { path: path.to_owned(), content: called.output.content })
    }

    /// Adds files that fit the task, as far as there is room.
    async fn search(
        &self,
        template: &Template,
        request: &SubtaskRequest,
        room: usize,
        prepared: &mut Prepared,
    ) -> Result<(), Trouble> {
        let found = self.found(&query_words(template, request), MATCHES).await?;
        let mut left = room;
        for found in found.matches {
            if prepared.files.iter().any(|file| file.path == found.path) {
                continue;
            }
            // A file that is gone or no text since it was indexed is no reason to fail.
            let called = self.call("read_file", json!({ "path": found.path })).await?;
            if called.output.ok && called.output.content.len() <= left {
                left -= called.output.content.len();
                prepared.files.push(ReadFile { path: found.path, content: called.output.content });
            }
        }
        Ok(())
    }

    /// Asks the index of files, as a step.
    async fn found(&self, words: &str, limit: usize) -> Result<Answer, Trouble> {
        if self.session.limits.memory_ranking == RankBy::Model {
            // A run that is cut off there has begun.
            self.herald.tell();
        }
        let asking = Asking {
            memory: &self.system.memory,
            session: self.session,
            engine: &*self.system.engine,
            branch: self.branch,
            cancel: self.cancel,
        };
        let searched = asking.search(Query { words: words.to_owned(), limit }).await?;
        self.spent.lock().unwrap_or_else(PoisonError::into_inner).add(&searched.spent);
        if let Some(why) = &searched.problem {
            // What is said about a task comes after its beginning.
            self.herald.tell();
            self.system.engine.emit(self.branch, unordered(why));
        }
        searched.found.map_err(|problem| {
            let message = format!("the files of the workspace cannot be searched: {problem}");
            TaskError::failure(Reason::ContextMatchingFailure, message).into()
        })
    }

    /// What was used up.
    pub(super) fn spent(&self) -> Spent {
        *self.spent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn call(&self, tool: &str, arguments: Value) -> Result<Called, Trouble> {
        let Some(tool) = self.system.base.toolbox.find(tool) else {
            let message = format!("there is no tool `{tool}` to prepare the context with");
            return Err(TaskError::failure(Reason::ToolExecutionError, message).into());
        };
        let calling = Calling {
            session: self.session,
            engine: &self.system.engine,
            branch: self.branch,
            cancel: self.cancel,
            left_ms: None,
            kind: fusee_journal::Kind::Tool,
            protected: None,
            image_bytes: 0,
        };
        let definition = tool.definition();
        let runs_commands = tool.repeat() == fusee_tools::Repeat::Never;
        if runs_commands {
            self.herald.tell();
        }
        if definition.category == Category::Write {
            let terms = self.session.terms_at(self.branch, self.system.engine.position(self.branch));
            match Gatekeeper::judge(&terms, definition.category, runs_commands) {
                Gate::Open => {}
                Gate::Shut(why) => return Err(refused(&why)),
                Gate::Ask(reason) => {
                    let name = definition.name.to_string();
                    let call_id = format!("{}:context", self.branch);
                    // What is asked about a task comes after its beginning.
                    self.herald.tell();
                    let question = Question { call_id, name, arguments: arguments.clone(), reason };
                    if let Some(refusal) = calling.ask(question).await? {
                        return Err(refused(refusal.output.content.trim()));
                    }
                }
            }
        }
        let (called, _) = calling.make("context", tool, arguments).await?;
        Ok(called)
    }
}

fn refused(why: &str) -> Trouble {
    let message = format!("the command that lists files may not run: {why}");
    TaskError::failure(Reason::ContextRetrievalFailure, message).into()
}

/// What files are searched by: the request's description, else its inputs as far as the template lets them count.
pub(super) fn query_words(template: &Template, request: &SubtaskRequest) -> String {
    if let Some(description) = &request.description {
        return description.clone();
    }
    let counts = |name: &str| match &template.context_relevance {
        None => true,
        Some(relevance) => relevance.iter().any(|(known, include)| known == name && *include),
    };
    let values = request.inputs.iter().filter(|(name, _)| counts(name)).map(|(_, value)| shown(value));
    let words: Vec<String> = std::iter::once(template.description.clone()).chain(values).collect();
    words.join(" ")
}

fn dedup(paths: &mut Vec<String>) {
    let mut seen = std::collections::HashSet::new();
    paths.retain(|path| seen.insert(path.clone()));
}
