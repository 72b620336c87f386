//! Prepares the context of a task before the model is called: files are listed, searched and read, each as a
//! step.
//!
//! The file index only knows paths and words. Content is read and commands are run by the handler's own
//! tools, with the same approval as a model's calls.

use std::sync::Arc;

use fusee_journal::event::CallFate;
use fusee_journal::{Branch, RunAborted};
use fusee_tools::{Access, Tool};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::TaskSystem;
use super::context::{ContextSettings, InheritanceFilter};
use super::error::{ErrorType, Reason, TaskError};
use super::file_sources::{LISTING_BYTES, ListedFile, ListingShell, SkipReason};
use super::handler::Handler;
use super::model_ranking::{RankedSearch, unordered};
use super::prompt::{PreparedContext, SourceFile};
use super::request::SubtaskRequest;
use super::run_script::printed;
use crate::agent::{CallRecord, RankBy, Spent, ToolExecutor};
use crate::approval::UNANSWERED_ADVICE;
use crate::approval::{ApprovalDecision, ApprovalQuestion};
use crate::memory::{MemoryAnswer, MemoryQuery};
use crate::template::{FilePaths, FreshContext, Template, shown};

/// Default share of the context window that the prepared context may fill.
const FRACTION: f64 = 0.5;

/// Approximate bytes per token; the turn loop counts better once a server has answered.
const TOKEN_BYTES: f64 = 4.0;

/// Maximum number of listed files.
const MAX_FILES: usize = 200;

/// How often an interrupted file-listing command is run again.
const LISTED_AGAIN: usize = 3;

/// Maximum number of files a search returns.
pub(super) const MATCHES: usize = 5;

/// Dependencies of the preparation.
pub(super) struct ContextLoader<'a> {
    pub(super) system: &'a TaskSystem,
    pub(super) handler: &'a Handler,
    /// Title of the task until its request is known.
    pub(super) title: &'a str,
    /// Resources used so far.
    pub(super) spent: Mutex<Spent>,
}

/// Failure of the preparation.
pub(super) enum LoadError {
    /// The task fails with this error.
    Failed(Box<TaskError>),
    /// The run cannot continue.
    Stopped(RunAborted),
}

impl From<RunAborted> for LoadError {
    fn from(stop: RunAborted) -> Self {
        Self::Stopped(stop)
    }
}

impl From<TaskError> for LoadError {
    fn from(error: TaskError) -> Self {
        Self::Failed(Box::new(error))
    }
}

impl ContextLoader<'_> {
    /// Prepares everything the task is given besides its own texts.
    pub(super) async fn prepare(
        &self,
        template: &Template,
        request: &SubtaskRequest,
        settings: &ContextSettings,
        filter: &InheritanceFilter,
    ) -> Result<PreparedContext, LoadError> {
        let inherited = filter.select(request.inherited_context.as_ref());
        let mut prepared = PreparedContext { inherited, ..PreparedContext::default() };
        let own = self.listed(template, request).await?;
        let mut listed = own.clone();
        listed.extend(prepared.inherited.files.iter().cloned());
        dedup(&mut listed);
        if listed.len() > MAX_FILES {
            let message = format!(
                "{} files are listed, but at most {MAX_FILES} can be included; list fewer in `<file_paths>`",
                listed.len()
            );
            return Err(TaskError::failure(Reason::ContextRetrievalFailure, message).into());
        }
        let fraction = template.limits.context_fraction.unwrap_or(FRACTION);
        let room = (self.handler.context.limits.max_tokens as f64 * TOKEN_BYTES * fraction) as usize;
        let mut used: usize = prepared.inherited.parts.iter().map(|part| part.text.len()).sum();
        if used > room {
            return Err(no_room("the inherited context does not fit", room));
        }
        for path in listed {
            let listed = ListedFile::step(&self.calling(), &path, room - used).await?;
            let file = shown_file(&path, listed).map_err(|why| match why {
                NotIncluded::Failed(error) => LoadError::from(*error),
                NotIncluded::TooLarge(said) => no_room(&said, room),
            })?;
            if !own.contains(&path) && !filter.inherits(&format!("{path}\n{}", file.content)) {
                continue;
            }
            if file.content.len() > room - used {
                return Err(no_room(&does_not_fit(&path), room));
            }
            used += file.content.len();
            prepared.files.push(file);
        }
        prepared.listed = !prepared.files.is_empty();
        if settings.fresh_context == FreshContext::Enabled {
            prepared.searched = true;
            self.search(template, request, room.saturating_sub(used), &mut prepared).await?;
        }
        Ok(prepared)
    }

    /// Returns the paths listed by the request, else those of the template.
    async fn listed(&self, template: &Template, request: &SubtaskRequest) -> Result<Vec<String>, LoadError> {
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

    /// Returns the paths printed by a command. It uses the same tool and approval as a model's commands.
    async fn printed(&self, command: &str) -> Result<Vec<String>, LoadError> {
        let failed = |message: String| TaskError::failure(Reason::ContextRetrievalFailure, message);
        let shell: Arc<dyn Tool> = Arc::new(ListingShell::new(self.tool("shell")?));
        let mut called = self.call(&shell, json!({ "command": command })).await?;
        for _ in 0..LISTED_AGAIN {
            // Listing files has no side effects, so a command that was killed with its process may run again.
            if called.fate == Some(CallFate::Interrupted) {
                called = self.call(&shell, json!({ "command": command })).await?;
            }
        }
        let output = called.output;
        let printed = printed(&output);
        if !output.ok {
            let closing = output.content.lines().last().unwrap_or_default();
            let said = [printed.stderr.trim(), closing].join(" ");
            return Err(
                failed(format!("the file-listing command `{command}` failed: {}", said.trim())).into()
            );
        }
        if output.truncated {
            let message = format!(
                "the file-listing command `{command}` printed more than {} KiB; let it list at most {MAX_FILES} files",
                LISTING_BYTES / 1024
            );
            return Err(failed(message).into());
        }
        let lines = printed.stdout.lines().map(str::trim).filter(|line| !line.is_empty());
        Ok(lines.map(str::to_owned).collect())
    }

    /// Adds files that match the task, as far as they fit.
    async fn search(
        &self,
        template: &Template,
        request: &SubtaskRequest,
        room: usize,
        prepared: &mut PreparedContext,
    ) -> Result<(), LoadError> {
        let found = self.found(&query_words(template, request), MATCHES).await?;
        let (mut left, reader) = (room, self.tool("read_file")?);
        for found in found.matches {
            if prepared.files.iter().any(|file| file.path == found.path) {
                continue;
            }
            // A file that was deleted or is no longer text since it was indexed is skipped.
            let called = self.call(reader, json!({ "path": found.path })).await?;
            if called.output.ok && called.output.content.len() <= left {
                left -= called.output.content.len();
                prepared.files.push(SourceFile { path: found.path, content: called.output.content });
            }
        }
        Ok(())
    }

    /// Searches the file index, as a step.
    async fn found(&self, words: &str, limit: usize) -> Result<MemoryAnswer, LoadError> {
        if self.handler.context.limits.memory_ranking == RankBy::Model {
            // The run has started if it is interrupted during the ranking request.
            self.handler.announce(self.title);
        }
        let asking = RankedSearch {
            memory: &self.system.memory,
            session: &self.handler.context,
            engine: &*self.system.engine,
            branch: self.branch(),
            cancel: &self.handler.scope.cancel,
        };
        let searched = asking.search(MemoryQuery { words: words.to_owned(), limit }).await?;
        self.spent.lock().add(&searched.spent);
        if let Some(why) = &searched.problem {
            // Messages about a task must come after its start event.
            self.handler.announce(self.title);
            self.system.engine.emit(self.branch(), unordered(why));
        }
        searched.found.map_err(|problem| {
            let message = format!("cannot search the workspace: {problem}");
            TaskError::failure(Reason::ContextMatchingFailure, message).into()
        })
    }

    /// Returns the resources used.
    pub(super) fn spent(&self) -> Spent {
        self.spent.lock().clone()
    }

    fn branch(&self) -> &Branch {
        &self.handler.scope.branch
    }

    fn calling(&self) -> ToolExecutor<'_> {
        ToolExecutor {
            session: &self.handler.context,
            engine: &self.system.engine,
            branch: self.branch(),
            cancel: &self.handler.scope.cancel,
            left_ms: None,
            kind: fusee_journal::StepKind::Tool,
            protected: None,
            image_bytes: 0,
        }
    }

    fn tool(&self, name: &str) -> Result<&Arc<dyn Tool>, LoadError> {
        self.system.base.toolbox.find(name).ok_or_else(|| {
            let message = format!("cannot prepare the context: no tool `{name}`");
            TaskError::failure(Reason::ToolExecutionError, message).into()
        })
    }

    async fn call(&self, tool: &Arc<dyn Tool>, arguments: Value) -> Result<CallRecord, LoadError> {
        let calling = self.calling();
        let definition = tool.definition();
        let runs_commands = tool.repeat() == fusee_tools::RetrySafety::Never;
        if runs_commands {
            self.handler.announce(self.title);
        }
        if definition.category == Access::Write {
            let policy =
                self.handler.context.policy_at(self.branch(), self.system.engine.position(self.branch()));
            match policy.decide(definition.category, runs_commands) {
                ApprovalDecision::Allow => {}
                ApprovalDecision::Deny(why) => return Err(refused(&why)),
                ApprovalDecision::Ask(reason) => {
                    let name = definition.name.to_string();
                    let call_id = format!("{}:context", self.branch());
                    // Questions about a task must come after its start event.
                    self.handler.announce(self.title);
                    let question = ApprovalQuestion { call_id, name, arguments: arguments.clone(), reason };
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

/// Why a listed file is not included.
pub(super) enum NotIncluded {
    Failed(Box<TaskError>),
    TooLarge(String),
}

pub(super) fn shown_file(path: &str, listed: ListedFile) -> Result<SourceFile, NotIncluded> {
    let failed = |reason, message: String| NotIncluded::Failed(Box::new(TaskError::failure(reason, message)));
    let Some(why) = listed.not_shown() else {
        return Ok(SourceFile { path: path.to_owned(), content: listed.content });
    };
    let said = listed.content.trim().trim_end_matches('.');
    Err(match why {
        _ if path.trim().is_empty() => failed(
            Reason::ContextRetrievalFailure,
            "a listed path is empty: set the input it is built from, or remove it from `<file_paths>`"
                .to_owned(),
        ),
        SkipReason::TooLarge => NotIncluded::TooLarge(format!("{}: {said}", does_not_fit(path))),
        SkipReason::NotText => failed(
            Reason::ContextParsingFailure,
            format!("cannot include the file `{path}`: {said}; `<file_paths>` can only list text files"),
        ),
        SkipReason::Unread => failed(
            Reason::ContextRetrievalFailure,
            format!(
                "cannot include the file `{path}`: {said}; correct the paths in `<file_paths>` or in the request"
            ),
        ),
    })
}

fn does_not_fit(path: &str) -> String {
    format!("the file `{path}` does not fit")
}

fn no_room(what: &str, room: usize) -> LoadError {
    let message = format!(
        "{what}: files and inherited context may use about {} tokens (`context_fraction` of `max_tokens`)",
        room / 4
    );
    let failure = TaskError::failure(Reason::Context, message);
    TaskError { kind: ErrorType::ResourceExhaustion, ..failure }.into()
}

fn refused(why: &str) -> LoadError {
    // The message is for the user, so the advice for the model is removed.
    let why = why.strip_prefix("Not run: ").unwrap_or(why).trim_end_matches('.');
    let why = why.strip_suffix(UNANSWERED_ADVICE).unwrap_or(why);
    let message = format!(
        "the file-listing command was not allowed to run: {why}; allow it, or list the files with `<path>` in the template"
    );
    TaskError::failure(Reason::ContextRetrievalFailure, message).into()
}

/// Returns the search words: the request's description, else its inputs that count as relevant for the
/// template.
pub(super) fn query_words(template: &Template, request: &SubtaskRequest) -> String {
    request.description.clone().unwrap_or_else(|| input_words(template, request))
}

/// Returns the words that a task is about: its template, its description and its inputs.
pub(super) fn task_words(template: &Template, request: &SubtaskRequest) -> String {
    let own = template.instructions.as_deref().unwrap_or_default();
    let asked = request.description.as_deref().unwrap_or_default();
    format!("{own} {asked} {}", input_words(template, request))
}

/// Returns the template's description and the inputs that count as relevant for it.
fn input_words(template: &Template, request: &SubtaskRequest) -> String {
    let counts = |name: &str| match &template.context_relevance {
        None => true,
        Some(relevance) => relevance.iter().any(|(known, include)| known == name && *include),
    };
    let values = request.inputs.iter().filter(|(name, _)| counts(name)).map(|(_, value)| shown(value));
    let words: Vec<String> = std::iter::once(template.description.clone()).chain(values).collect();
    words.join(" ")
}

pub(super) fn dedup(paths: &mut Vec<String>) {
    let mut seen = std::collections::HashSet::new();
    paths.retain(|path| seen.insert(path.clone()));
}
