//! Runs a template's task: the eight steps from a request to a result.
//!
//! The request is validated, its template found, its context settings resolved and the context prepared, and
//! its texts filled in. Then a separate handler works on the task, and the answer is checked against the
//! declared format. Every failure becomes a result.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fusee_journal::event::TurnType;
use fusee_journal::{BoxFuture, Branch, DurableRun, RunAborted, StepKind, StepRequest};
use fusee_model::{CancellationToken, Message};
use fusee_text::Source;
use fusee_tools::Workspace;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::context::{self, ContextSettings};
use super::context_loader::{ContextLoader, LoadError};
use super::error::{Reason, TemplateTaskError};
use super::executor::AtomicTaskExecutor;
use super::handler::{limits, may_spawn, toolbox};
use super::history_part;
use super::output::{self, OutputSchema};
use super::prompt::{ComposedPrompt, Handover, PreparedContext, compose, handed_over};
use super::request::SubtaskRequest;
use super::result::{ExecutionPath, TaskResult};
use crate::agent::{AgentTask, Remaining, SPAWN_SUBTASK, Spent, TaskContext, TaskOutcome, TaskProgress};
use crate::memory::MemorySystem;
use crate::prompt::EnvironmentSnapshot;
use crate::template::{MatchOptions, Template, TemplateRegistry, TemplateText, bind};

/// Minimum score for a description alone to select a template.
const WORDS_THRESHOLD: f64 = 0.5;

/// Maximum size of a JSON Schema file.
const SCHEMA_BYTES: u64 = 1 << 20;

/// Runs tasks of templates.
pub struct TaskSystem {
    /// Finds templates. Empty in a replay, which takes the templates from the journal.
    pub registry: Arc<TemplateRegistry>,
    /// Session that every handler is derived from.
    pub base: Arc<TaskContext>,
    /// Journal of the run.
    pub engine: Arc<dyn DurableRun>,
    /// Environment in which the run started.
    pub environment: EnvironmentSnapshot,
    /// File index of the workspace.
    pub memory: Arc<MemorySystem>,
}

/// Position of a task within a run, and what it inherits from there.
#[derive(Clone)]
pub struct TaskScope {
    /// Branch of the task.
    pub branch: Branch,
    /// Branch of the parent task, if any.
    pub parent: Option<Branch>,
    /// Start time according to the journal.
    pub started_ms: i64,
    /// Cancels the task.
    pub cancel: CancellationToken,
    /// Progress of the task.
    pub progress: Arc<TaskProgress>,
    /// How the request was resolved.
    pub path: ExecutionPath,
    /// Hashes of the requests that led here, outermost first.
    pub chain: Vec<String>,
    /// Remaining budget for the task and its subtasks, if it is limited.
    pub left: Option<Remaining>,
    /// Results of earlier tasks, for tasks that accumulate them.
    pub earlier: Vec<(String, TaskResult)>,
    /// Prompt and recap, if the task was delegated as text.
    pub handover: Option<Handover>,
    /// Conversation in which the task was requested, for tasks that include history.
    pub history: Arc<Vec<Message>>,
}

impl TaskScope {
    /// Creates the position of a run's main task.
    pub fn main(started_ms: i64, cancel: CancellationToken, progress: Arc<TaskProgress>) -> Self {
        Self {
            branch: Branch::main(),
            parent: None,
            started_ms,
            cancel,
            progress,
            path: ExecutionPath::Template,
            chain: Vec::new(),
            left: None,
            earlier: Vec::new(),
            handover: None,
            history: Arc::default(),
        }
    }
}

/// A validated request with its template filled in. Nothing outside the two was needed.
#[derive(Clone, Debug)]
pub struct ResolvedRequest {
    /// The template with every placeholder filled in.
    pub template: Template,
    /// Effective context settings.
    pub context: ContextSettings,
}

/// Result of a template lookup, as journaled.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum LookupRecord {
    Template(TemplateText),
    Missing(String),
    /// No template matches; the description is the task.
    Plain(String),
}

/// Validates a request against its template: inputs, placeholders, context settings. Reports all input
/// problems.
pub fn ready(template: &Template, request: &SubtaskRequest) -> Result<ResolvedRequest, TemplateTaskError> {
    if request.kind != "atomic" {
        let message = format!(
            "unsupported task type `{}`: tasks are `atomic`; use a workflow to compose them",
            request.kind
        );
        return Err(TemplateTaskError::invalid(Reason::InputValidationFailure, message));
    }
    let subtype = request.subtype.as_deref().unwrap_or_else(|| template.subtype());
    let context =
        context::effective(subtype, &template.context_management, request.context_management.as_ref())
            .map_err(|conflict| {
                let message = format!("conflicting context settings for `{}`: {conflict}", template.name);
                TemplateTaskError::invalid(Reason::ConfigurationError, message)
            })?;
    let wrong = |problems: Vec<String>| {
        let message = format!("invalid inputs for `{}`: {}", template.name, problems.join("; "));
        TemplateTaskError::failure(Reason::InputValidationFailure, message)
    };
    let inputs = bind(template, &request.inputs).map_err(|problems| {
        // Also report fields that are missing in a given object.
        let given = |told: &String| {
            let field = told.strip_prefix("`{{").and_then(|rest| rest.split_once('.'));
            field.is_some_and(|(root, _)| request.inputs.contains_key(root))
        };
        let lacking = template.filled(&request.inputs).err().unwrap_or_default();
        let lacking = lacking.into_iter().filter(given);
        wrong(problems.iter().map(ToString::to_string).chain(lacking).collect())
    })?;
    let filled = template.filled(&inputs).map_err(wrong)?;
    Ok(ResolvedRequest { template: filled, context })
}

impl TaskSystem {
    /// Runs the task of a request. Only a journal failure is an error; everything else is a result.
    pub async fn execute_atomic_template(
        self: &Arc<Self>,
        request: SubtaskRequest,
        place: TaskScope,
    ) -> Result<TaskResult, RunAborted> {
        let outcome = self.execute(request, None, place).await?;
        Ok(outcome.result.map_or_else(|| TaskResult::complete(outcome.answer), |result| *result))
    }

    /// Alias of [`Self::execute_atomic_template`], kept for its specified name: the values are already
    /// resolved.
    pub async fn execute_subtask_directly(
        self: &Arc<Self>,
        request: SubtaskRequest,
        place: TaskScope,
    ) -> Result<TaskResult, RunAborted> {
        self.execute_atomic_template(request, place).await
    }

    /// Runs a task with a given template, or looks one up, and returns the outcome of the task.
    pub fn execute<'a>(
        self: &'a Arc<Self>,
        request: SubtaskRequest,
        given: Option<TemplateText>,
        place: TaskScope,
    ) -> BoxFuture<'a, Result<TaskOutcome, RunAborted>> {
        Box::pin(async move {
            let mut place = place;
            let found = match given {
                Some(text) => LookupRecord::Template(text),
                None => self.look_up(&request, &mut place).await?,
            };
            let (template, used) = match self.read(found, &mut place) {
                Ok(found) => found,
                Err(error) => return Ok(self.refused(&request, error, &place, false)),
            };
            let herald =
                StartNotice { system: self, request: &request, place: &place, told: AtomicBool::new(false) };
            let prepared = self.prepared(&template, &request, &place, &herald).await;
            let announced = herald.told.into_inner();
            match prepared {
                Ok(work) => self.work(work, &request, used, place, announced).await,
                Err(LoadError::Failed(error)) => Ok(self.refused(&request, *error, &place, announced)),
                Err(LoadError::Stopped(stop)) => Err(stop),
            }
        })
    }

    /// Finds the template by name, subtype or description, as a step, so that a run ends on the text it
    /// started with.
    async fn look_up(
        &self,
        request: &SubtaskRequest,
        place: &mut TaskScope,
    ) -> Result<LookupRecord, RunAborted> {
        let found = match (&place.handover, &request.name, &request.subtype, &request.description) {
            // A delegated description is the task itself, even if a template matches.
            (Some(_), None, None, Some(words)) => LookupRecord::Plain(words.clone()),
            _ => self.find(request),
        };
        let call = StepRequest::new(&place.branch, StepKind::Environment, "template").with_args(
            json!({ "name": request.name, "subtype": request.subtype, "description": request.description }),
        );
        let recorded = self.engine.step(call, async move { found }).await?;
        place.started_ms = place.started_ms.max(recorded.at_ms);
        Ok(recorded.value)
    }

    fn find(&self, request: &SubtaskRequest) -> LookupRecord {
        let by_subtype = request.subtype.as_ref().map(|subtype| format!("atomic:{subtype}"));
        let identifier = request.name.clone().or_else(|| by_subtype.clone());
        let words = request.description.as_deref().filter(|_| request.name.is_none());
        match (identifier.map(|identifier| self.registry.find_template(&identifier)), words) {
            (Some(Ok(found)), _) => LookupRecord::Template(found.text.clone()),
            (None | Some(Err(_)), Some(words)) => {
                let matching = MatchOptions { threshold: WORDS_THRESHOLD, limit: 1 };
                match self.registry.find_matching_tasks(words, &matching).first() {
                    Some(found) => LookupRecord::Template(found.registered.text.clone()),
                    None => LookupRecord::Plain(words.to_owned()),
                }
            }
            (Some(Err(missing)), None) => LookupRecord::Missing(missing.to_string()),
            (None, None) => LookupRecord::Missing(
                "the request names no template: set `name`, `subtype` or `description`".to_owned(),
            ),
        }
    }

    fn read(
        &self,
        found: LookupRecord,
        place: &mut TaskScope,
    ) -> Result<(Template, String), TemplateTaskError> {
        match found {
            LookupRecord::Missing(message) => {
                Err(TemplateTaskError::failure(Reason::TemplateNotFound, message))
            }
            LookupRecord::Plain(words) => {
                place.path = ExecutionPath::Plain;
                let name = "plain".to_owned();
                let template = Template {
                    name: name.clone(),
                    subtype: Some("subtask".to_owned()),
                    description: words.clone(),
                    // Braces in the description are literal.
                    instructions: Some(words.replace("{{", "{{{{")),
                    blocked_tools: place.handover.iter().map(|_| SPAWN_SUBTASK.to_owned()).collect(),
                    ..Template::default()
                };
                Ok((template, name))
            }
            LookupRecord::Template(text) => {
                let source = Source::new(text.file.as_str(), text.text.as_str());
                let (template, problems) = Template::read(&source);
                template.map(|template| (template.clone(), template.name)).ok_or_else(|| {
                    let told: Vec<String> = problems
                        .iter()
                        .map(|problem| format!("{}:{}: {}", problem.file, problem.start, problem.message))
                        .collect();
                    TemplateTaskError::invalid(Reason::XmlValidationFailure, told.join("; "))
                })
            }
        }
    }

    async fn prepared(
        &self,
        template: &Template,
        request: &SubtaskRequest,
        place: &TaskScope,
        herald: &StartNotice<'_>,
    ) -> Result<PreparedTask, LoadError> {
        let handover = place.handover.as_ref().filter(|_| place.path == ExecutionPath::Plain);
        let ResolvedRequest { template, context } = match handover {
            // The inputs are task fields, not template parameters.
            Some(_) => ready(template, &SubtaskRequest { inputs: Map::new(), ..request.clone() })?,
            None => ready(template, request)?,
        };
        let limits = limits(self.base.limits, &template.limits, request.limits.as_ref(), place.left);
        let toolbox = toolbox(&self.base.toolbox, &template)?;
        let schema = self.schema(&template, place).await?;
        let mut options = self.base.options.clone();
        if let Some(constraint) = output::constraint(template.output_format.as_ref(), schema.as_ref())
            && toolbox.definitions().next().is_none()
            && !may_spawn(&template)
        {
            // If tools are offered, a constrained reply could never call one.
            options.extra.entry("response_format").or_insert(constraint);
        }
        let session = self.handler(toolbox, limits, options);
        let session = self.asked_for_model(session, &template, request, place)?;
        let preparing = ContextLoader {
            system: self,
            session: &session,
            branch: &place.branch,
            cancel: &place.cancel,
            herald,
            spent: Mutex::default(),
        };
        let mut prepared = preparing.prepare(&template, request, &context, &limits).await?;
        if let Some((part, turns)) = history_part(&place.history, request.history_config.as_ref()) {
            prepared.inherited.parts.extend(part);
            prepared.history_turns = Some(turns);
        }
        if context.accumulate_data {
            prepared.accumulate(&place.earlier, context.accumulation_format);
        }
        let composed = match handover {
            Some(handover) => handed_over(&template, &prepared, &self.environment, handover, &request.inputs),
            None => compose(&template, &prepared, &self.environment),
        };
        let composed =
            composed.map_err(|problem| TemplateTaskError::invalid(Reason::XmlValidationFailure, problem))?;
        let spent = preparing.spent();
        Ok(PreparedTask { template, prepared, composed, schema, session, spent })
    }

    /// Reads the JSON Schema file of an output format, as a step.
    async fn schema(
        &self,
        template: &Template,
        place: &TaskScope,
    ) -> Result<Option<OutputSchema>, LoadError> {
        let Some(path) = template.output_format.as_ref().and_then(output::schema_file) else {
            return Ok(None);
        };
        let call = StepRequest::new(&place.branch, StepKind::Environment, "schema")
            .with_args(json!({ "path": path }));
        let workspace = Arc::clone(&self.base.workspace);
        let asked = path.to_owned();
        let body = async move {
            match read_schema(&workspace, &asked) {
                Ok(value) => json!({ "schema": value }),
                Err(problem) => json!({ "problem": problem }),
            }
        };
        let mut value: Value = self.engine.step(call, body).await?.value;
        if let Some(problem) = value.get("problem").and_then(Value::as_str) {
            let message = format!("cannot use schema `{path}`: {problem}");
            return Err(TemplateTaskError::invalid(Reason::ConfigurationError, message).into());
        }
        let value = value.get_mut("schema").map(Value::take).unwrap_or_default();
        Ok(Some(OutputSchema { path: path.to_owned(), value }))
    }

    /// Steps seven and eight: the executor works on the task, and notes are added to the result.
    async fn work(
        self: &Arc<Self>,
        work: PreparedTask,
        request: &SubtaskRequest,
        used: String,
        place: TaskScope,
        announced: bool,
    ) -> Result<TaskOutcome, RunAborted> {
        let executor = AtomicTaskExecutor { system: Arc::clone(self), place, announced };
        let (mut outcome, mut result, prepared) = executor.execute_body(work, request).await?;
        note(&mut result, &used, &prepared, executor.place.path);
        result.measure(super::error::ResourceMetrics::of(&outcome));
        outcome.result = Some(Box::new(result));
        Ok(outcome)
    }

    pub(super) fn task(
        &self,
        session: Arc<TaskContext>,
        system: &str,
        request: &str,
        place: &TaskScope,
    ) -> AgentTask {
        let turn_type = if session.review.is_some() { TurnType::Review } else { TurnType::User };
        let submission = match place.parent {
            Some(_) => format!("{}:{}", self.engine.run(), place.branch),
            None => self.engine.run().to_string(),
        };
        let engine = Arc::clone(&self.engine);
        let task = AgentTask::new(
            session,
            engine,
            place.branch.clone(),
            submission,
            system.to_owned(),
            request.to_owned(),
            turn_type,
        );
        match &place.parent {
            Some(parent) => task.child_of(parent.clone()),
            None => task,
        }
    }

    /// Fails a task before the model is called, with start and end events.
    fn refused(
        &self,
        request: &SubtaskRequest,
        error: TemplateTaskError,
        place: &TaskScope,
        announced: bool,
    ) -> TaskOutcome {
        let task = self.task(Arc::clone(&self.base), "", request.title(), place).announced(announced);
        let told = fusee_journal::event::TaskError {
            code: error.code(),
            reason: error.reason.map_or("unexpected_error", Reason::as_str).to_owned(),
            message: error.message.clone(),
        };
        let mut outcome = task.fail(place.started_ms, told);
        let error = error.measured(super::error::ResourceMetrics::default());
        let mut result = TaskResult::failed(&error, "");
        note(&mut result, request.title(), &PreparedContext::default(), place.path);
        result.measure(super::error::ResourceMetrics::default());
        outcome.result = Some(Box::new(result));
        outcome
    }
}

/// Announces the start of a task while it is being prepared, if that already asks the user something.
pub(super) struct StartNotice<'a> {
    system: &'a TaskSystem,
    request: &'a SubtaskRequest,
    place: &'a TaskScope,
    told: AtomicBool,
}

impl StartNotice<'_> {
    /// Announces the start, unless this was done before.
    pub(super) fn notify(&self) {
        if !self.told.swap(true, Ordering::Relaxed) {
            let Self { system, request, place, .. } = self;
            system.task(Arc::clone(&system.base), "", request.title(), place).announce(place.started_ms);
        }
    }
}

/// A fully prepared task.
pub(super) struct PreparedTask {
    pub(super) template: Template,
    pub(super) prepared: PreparedContext,
    pub(super) composed: ComposedPrompt,
    pub(super) schema: Option<OutputSchema>,
    pub(super) session: TaskContext,
    /// Resources used by the preparation.
    pub(super) spent: Spent,
}

fn note(result: &mut TaskResult, used: &str, prepared: &PreparedContext, path: ExecutionPath) {
    result.note("template_used", used);
    result.note("context_source", prepared.source());
    result.note("context_files_count", prepared.files.len());
    result.note("execution_path", path);
    if let Some(turns) = prepared.history_turns {
        result.note("history_turns", turns);
    }
}

fn read_schema(workspace: &Workspace, path: &str) -> Result<Value, String> {
    use std::io::Read as _;
    let path = workspace.locate(path).map_err(|problem| problem.to_string())?;
    let opened = workspace.open_to_read(&path).map_err(|problem| problem.to_string())?;
    let fusee_tools::workspace::OpenedPath::File { file, .. } = opened else {
        return Err("not a regular file".to_owned());
    };
    let mut text = String::new();
    file.take(SCHEMA_BYTES).read_to_string(&mut text).map_err(|error| error.to_string())?;
    let value: Value = serde_json::from_str(&text).map_err(|error| format!("not valid JSON: {error}"))?;
    jsonschema::validator_for(&value).map_err(|error| format!("not a valid JSON Schema: {error}"))?;
    Ok(value)
}
