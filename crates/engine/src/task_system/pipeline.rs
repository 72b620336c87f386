//! Runs a template's task: the eight steps from a request to a result.
//!
//! The template is found, the request validated against it and its texts filled in, a handler configured for
//! the task, and the context prepared. Then the executor lets the handler work on the task, and the answer is
//! checked against the declared format. Every failure becomes a result.

use std::sync::Arc;

use fusee_journal::{BoxFuture, Branch, DurableRun, RunAborted, StepKind, StepRequest};
use fusee_lang::TaskResult;
use fusee_model::{CancellationToken, Message};
use fusee_tools::Workspace;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};

use super::context::{self, ContextSettings, InheritanceFilter};
use super::context_loader::{ContextLoader, LoadError, task_words};
use super::error::{Reason, TaskError};
use super::executor::{AtomicTaskExecutor, TaskBody};
use super::file_reader;
use super::handler::Handler;
use super::history_part;
use super::lookup::{ExecutionPath, TemplateOrigin};
use super::prompt::{Handover, compose, write_delegated};
use super::request::SubtaskRequest;
use crate::agent::flow::FlowSettings;
use crate::agent::{Remaining, Session, TaskOutcome, TaskProgress};
use crate::memory::MemorySystem;
use crate::prompt::EnvironmentSnapshot;
use crate::template::output::OutputSchema;
use crate::template::{OutputFormat, Template, TemplateRegistry, bind};

/// Maximum size of a JSON Schema file.
const SCHEMA_BYTES: u64 = 1 << 20;

/// Runs tasks of templates.
pub struct TaskSystem {
    /// Finds templates. Empty in a replay, which takes the templates from the journal.
    pub registry: Arc<TemplateRegistry>,
    /// Session that every handler is derived from.
    pub base: Arc<Session>,
    /// Journal of the run.
    pub engine: Arc<dyn DurableRun>,
    /// Environment in which the run started.
    pub environment: EnvironmentSnapshot,
    /// File index of the workspace.
    pub memory: Arc<MemorySystem>,
    /// Settings of the run that apply to every task: history, phases and tools; a template's `<flow>` uses the rest.
    pub flow: Arc<FlowSettings>,
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

    /// The handover of a task that was delegated as text and matches no template.
    fn delegated(&self) -> Option<&Handover> {
        self.handover.as_ref().filter(|_| self.path == ExecutionPath::Plain)
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

/// Validates a request against its template: inputs, placeholders, context settings. Reports all input
/// problems.
pub fn ready(template: &Template, request: &SubtaskRequest) -> Result<ResolvedRequest, TaskError> {
    if request.kind != "atomic" {
        let message = format!(
            "unsupported task type `{}`: tasks are `atomic`; use a workflow to compose them",
            request.kind
        );
        return Err(TaskError::invalid(Reason::InputValidationFailure, message));
    }
    let subtype = request.subtype.as_deref().unwrap_or_else(|| template.subtype());
    let context =
        context::effective(subtype, &template.context_management, request.context_management.as_ref())
            .map_err(|conflict| {
                let message = format!("conflicting context settings for `{}`: {conflict}", template.name);
                TaskError::invalid(Reason::ConfigurationError, message)
            })?;
    let wrong = |problems: Vec<String>| {
        let message = format!("invalid inputs for `{}`: {}", template.name, problems.join("; "));
        TaskError::failure(Reason::InputValidationFailure, message)
    };
    let inputs = bind(template, &request.inputs).map_err(|problems| {
        // Also report fields that are missing in a given object.
        let given = |problem: &String| {
            let field = problem.strip_prefix("`{{").and_then(|rest| rest.split_once('.'));
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
        scope: TaskScope,
    ) -> Result<TaskResult, RunAborted> {
        let outcome = self.execute(request, TemplateOrigin::Registry, scope).await?;
        Ok(outcome.result.map_or_else(|| TaskResult::complete(outcome.answer), |result| *result))
    }

    /// Alias of [`Self::execute_atomic_template`], kept for its specified name: the values are already
    /// resolved.
    pub async fn execute_subtask_directly(
        self: &Arc<Self>,
        request: SubtaskRequest,
        scope: TaskScope,
    ) -> Result<TaskResult, RunAborted> {
        self.execute_atomic_template(request, scope).await
    }

    /// Runs the task of a request with this template, and returns the outcome of the task.
    pub fn execute<'a>(
        self: &'a Arc<Self>,
        request: SubtaskRequest,
        origin: TemplateOrigin,
        mut scope: TaskScope,
    ) -> BoxFuture<'a, Result<TaskOutcome, RunAborted>> {
        Box::pin(async move {
            let template = self.template(origin, &request, &mut scope).await?;
            let unconfigured = |error| {
                let handler = Handler::new(Arc::clone(&self.base), &self.engine, &scope);
                handler.refuse(request.title(), error)
            };
            let template = match template {
                Ok(template) => template,
                Err(error) => return Ok(unconfigured(error)),
            };
            let (resolved, schema, handler) = match self.configure(&template, &request, &scope).await {
                Ok(configured) => configured,
                Err(LoadError::Failed(error)) => return Ok(unconfigured(*error)),
                Err(LoadError::Stopped(stop)) => return Err(stop),
            };
            match self.prepare(resolved, schema, &request, &handler).await {
                Ok(body) => {
                    let executor = AtomicTaskExecutor { system: Arc::clone(self) };
                    executor.execute_body(body, &request, &handler).await
                }
                Err(LoadError::Failed(error)) => Ok(handler.refuse(request.title(), *error)),
                Err(LoadError::Stopped(stop)) => Err(stop),
            }
        })
    }

    /// Validates the request and creates the handler of the task.
    async fn configure(
        &self,
        template: &Template,
        request: &SubtaskRequest,
        scope: &TaskScope,
    ) -> Result<(ResolvedRequest, Option<OutputSchema>, Handler), LoadError> {
        let resolved = match scope.path {
            // The inputs are part of the task's text or fields of the task, not template parameters.
            ExecutionPath::Plain => {
                ready(template, &SubtaskRequest { inputs: Map::new(), ..request.clone() })?
            }
            _ => ready(template, request)?,
        };
        let schema = self.schema(&resolved.template, scope).await?;
        let handler = Handler::for_task(self, &resolved.template, request, schema.as_ref(), scope)?;
        Ok((resolved, schema, handler))
    }

    /// Prepares the context and composes the first payload.
    async fn prepare(
        &self,
        resolved: ResolvedRequest,
        schema: Option<OutputSchema>,
        request: &SubtaskRequest,
        handler: &Handler,
    ) -> Result<TaskBody, LoadError> {
        let (ResolvedRequest { template, context }, scope) = (resolved, &handler.scope);
        let loader = ContextLoader { system: self, handler, title: request.title(), spent: Mutex::default() };
        let filter = InheritanceFilter::new(context.inherit_context, &task_words(&template, request));
        let mut prepared = loader.prepare(&template, request, &context, &filter).await?;
        if let Some((part, turns)) = history_part(&scope.history, request.history_config.as_ref()) {
            prepared.inherited.parts.extend(part);
            prepared.history_turns = Some(turns);
        }
        if context.accumulate_data {
            prepared.accumulate(&scope.earlier, context.accumulation_format, |text| filter.accumulates(text));
        }
        let composed = match scope.delegated() {
            Some(handover) => {
                write_delegated(&template, &prepared, &self.environment, handover, &request.inputs)
            }
            None => compose(&template, &prepared, &self.environment),
        };
        let composed =
            composed.map_err(|problem| TaskError::invalid(Reason::XmlValidationFailure, problem))?;
        let payload = handler.construct_payload(&template, composed, prepared);
        Ok(TaskBody { template, payload, schema, spent: loader.spent() })
    }

    /// Reads the JSON Schema file of an output format, as a step.
    async fn schema(
        &self,
        template: &Template,
        scope: &TaskScope,
    ) -> Result<Option<OutputSchema>, LoadError> {
        let Some(path) = template.output_format.as_ref().and_then(OutputFormat::schema_file) else {
            return Ok(None);
        };
        let call = StepRequest::new(&scope.branch, StepKind::Environment, "schema")
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
            return Err(TaskError::invalid(Reason::ConfigurationError, message).into());
        }
        let value = value.get_mut("schema").map(Value::take).unwrap_or_default();
        Ok(Some(OutputSchema { path: path.to_owned(), value }))
    }
}

fn read_schema(workspace: &Workspace, path: &str) -> Result<Value, String> {
    let path = workspace.locate(path).map_err(|problem| problem.to_string())?;
    let bytes = file_reader::read(workspace, &path, SCHEMA_BYTES)?;
    let value: Value = serde_json::from_slice(&bytes).map_err(|error| format!("not valid JSON: {error}"))?;
    jsonschema::validator_for(&value).map_err(|error| format!("not a valid JSON Schema: {error}"))?;
    Ok(value)
}
