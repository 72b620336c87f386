//! Runs a workflow from its text to its outcome.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use fusee_journal::event::{ErrorCode, ErrorDetail, Event, TaskComplete, TaskStarted, TaskStatus, TurnType};
use fusee_journal::{Branch, DurableRun, RunAborted};
use fusee_lang::{Callable, Compiled, EvaluationLimits as LanguageLimits, Machine, Program, compile};
use fusee_model::{CancellationToken, Message};
use fusee_text::{Severity, Source};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

use super::catalog;
use super::driver::{BranchEnd, WorkflowDriver};
use super::loader::WorkflowLoader;
use super::outcome;
use super::workflow_context::{EffectTrace, WorkflowContext};
use crate::agent::flow::FlowSettings;
use crate::agent::{FactsEnd, Session, Spent, TaskOutcome};
use crate::prompt::EnvironmentSnapshot;
use crate::task_system::{TaskSystem, file_reader};
use crate::template::TemplateRegistry;

/// A workflow with everything that determines its execution.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkflowRun {
    /// Name used in diagnostics and errors: the file, or a placeholder for inline text.
    pub name: String,
    /// Source text.
    pub text: String,
    /// Loaded files, by the name they are referenced by.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, String>,
    /// Values of its parameters.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub inputs: Map<String, Json>,
    /// Templates and workflows registered at the start; the text was checked against these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<Callable>,
    /// Registered workflows by name, including those they call.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub library: BTreeMap<String, WorkflowRun>,
}

/// How the execution of a workflow was left.
pub(crate) enum WorkflowExit {
    /// The workflow ended.
    Ended(TaskOutcome),
    /// The workflow was cancelled; a resume continues it.
    Cancelled(TaskOutcome),
}

/// Dependencies of a workflow run.
pub(crate) struct WorkflowScope {
    pub(crate) session: Session,
    pub(crate) engine: Arc<dyn DurableRun>,
    pub(crate) branch: Branch,
    pub(crate) environment: EnvironmentSnapshot,
    pub(crate) registry: Arc<TemplateRegistry>,
    /// Where the file index of the workspace is stored.
    pub(crate) memory_file: Option<PathBuf>,
    /// Conversation that the run continues.
    pub(crate) history: Arc<Vec<Message>>,
    /// Settings of the run that apply to its tasks.
    pub(crate) flow: Arc<FlowSettings>,
    pub(crate) started_ms: i64,
    pub(crate) trace: Option<EffectTrace>,
    pub(crate) cancel: CancellationToken,
}

/// Compiles a workflow without running it, against the tools of its session.
pub(crate) fn compiled(workflow: &WorkflowRun, session: &Session) -> Compiled {
    let catalog = catalog(session.toolbox.definitions(), &workflow.tasks);
    let source = Source::new(workflow.name.as_str(), workflow.text.as_str());
    compile(&source, &catalog, &mut WorkflowLoader::from_files(workflow.files.clone()))
}

/// Runs a workflow, with start and end events on its own branch.
pub(crate) async fn run(
    workflow: &WorkflowRun,
    request: &str,
    scope: WorkflowScope,
) -> Result<WorkflowExit, RunAborted> {
    let WorkflowScope {
        session,
        engine,
        branch,
        environment,
        registry,
        memory_file,
        history,
        flow,
        started_ms,
        trace,
        cancel,
    } = scope;
    let submission_id = engine.run().to_string();
    engine.emit(
        &branch,
        Event::TaskStarted(TaskStarted {
            submission_id,
            turn_type: TurnType::User,
            timestamp: started_ms,
            request: request.to_owned(),
            model: session.model.name().to_owned(),
            sandbox: session.sandbox.clone(),
            parent: None,
            continues: None,
        }),
    );
    let compiled = compiled(workflow, &session);
    let tasks = TaskSystem {
        registry,
        base: Arc::new(session.for_child(session.limits)),
        engine: Arc::clone(&engine),
        environment,
        memory: Arc::new(file_reader::memory(&session.workspace, memory_file)),
        flow,
    };
    let context = WorkflowContext {
        session: Arc::new(session),
        engine,
        tasks: Arc::new(tasks),
        history,
        started_ms,
        library: workflow.library.clone(),
        trace,
        spent: Mutex::default(),
        unreachable: Mutex::default(),
    };
    let machine = machine(compiled, &workflow.inputs);
    let mut driver = WorkflowDriver::main(&context, branch.clone());
    let outcome = match machine {
        Err(error) => outcome::not_begun(error),
        Ok(mut machine) => {
            let end = tokio::select! {
                biased;
                end = driver.drive(&mut machine) => end?,
                () = cancel.cancelled() => return Ok(WorkflowExit::Cancelled(cancelled(&context))),
            };
            ended(end, &context, driver.active_ms)
        }
    };
    report(&context, &driver, request, &outcome);
    Ok(WorkflowExit::Ended(outcome))
}

fn machine(compiled: Compiled, inputs: &Map<String, Json>) -> Result<Machine, ErrorDetail> {
    let problems = compiled.diagnostics.into_sorted();
    let first = problems.iter().find(|problem| problem.severity == Severity::Error);
    let error = |reason: &str, message: String| ErrorDetail {
        code: ErrorCode::InitFailed,
        reason: reason.to_owned(),
        message,
    };
    let program: Arc<Program> = match (compiled.program, first) {
        (Some(program), _) => program,
        (None, problem) => {
            let message = problem.map_or_else(
                || "1:1: cannot parse the workflow".to_owned(),
                |problem| format!("{}: {}", problem.start, problem.message),
            );
            return Err(error("configuration_error", message));
        }
    };
    Machine::start(&program, inputs, LanguageLimits::default()).map_err(|problems| {
        let messages: Vec<_> = problems.into_iter().map(|problem| problem.message).collect();
        error("input_validation_failure", format!("1:1: {}", messages.join("; ")))
    })
}

fn ended(end: BranchEnd, context: &WorkflowContext, active_ms: u64) -> TaskOutcome {
    let spent = Spent { active_ms, ..context.spent.lock().clone() };
    match end {
        BranchEnd::Done(value) => reached(outcome::of_value(&value, spent), context),
        BranchEnd::Failed(fault) => reached(outcome::of_fault(&fault, String::new(), spent), context),
        // A workflow's main branch is cancelled only when its run ends.
        BranchEnd::Cancelled => cancelled(context),
    }
}

/// Marks the outcome if it failed because a model was unreachable.
fn reached(mut outcome: TaskOutcome, context: &WorkflowContext) -> TaskOutcome {
    let unreachable = context.unreachable.lock();
    outcome.unreachable = outcome.error.as_ref().is_some_and(|error| {
        error.reason == "llm_error" && unreachable.iter().any(|message| error.message.contains(message))
    });
    outcome
}

fn cancelled(context: &WorkflowContext) -> TaskOutcome {
    let message = "the workflow was cancelled; resume the run to continue".to_owned();
    let error = ErrorDetail { code: ErrorCode::Cancelled, reason: "cancelled".to_owned(), message };
    let mut outcome = outcome::not_begun(error);
    outcome.status = TaskStatus::Cancelled;
    outcome.spent = Spent { active_ms: 0, ..context.spent.lock().clone() };
    outcome
}

/// Emits the final events of the workflow.
fn report(context: &WorkflowContext, driver: &WorkflowDriver<'_>, request: &str, outcome: &TaskOutcome) {
    let (engine, branch) = (&context.engine, &driver.branch);
    let error = outcome.error.as_ref();
    if let Some(error) = error {
        engine.emit(branch, Event::Error { code: error.code, message: error.message.clone() });
    }
    let end = FactsEnd {
        status: outcome.status,
        plan_steps: 0,
        attempts: 1,
        replan_max: 0,
        error: error.map(|error| error.message.as_str()),
    };
    engine.emit(branch, Event::TaskReport(driver.facts.report(branch, request, end)));
    engine.emit(branch, Event::TaskComplete(complete(context, outcome)));
}

/// Builds the terminal event of an outcome.
pub(crate) fn complete_event(run: &str, outcome: &TaskOutcome, cost_usd: Option<f64>) -> TaskComplete {
    outcome.complete_event(run, outcome.spent.active_ms, cost_usd)
}

fn complete(context: &WorkflowContext, outcome: &TaskOutcome) -> TaskComplete {
    let cost_usd = outcome.spent.charges.cost_usd(context.session.limits.price);
    complete_event(&context.submission_id(), outcome, cost_usd)
}
