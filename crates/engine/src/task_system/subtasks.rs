//! Subtasks of a task: limited in depth, checked for cycles, and charged to the first task's budget.

use std::sync::Arc;

use fusee_journal::event::TaskStatus;
use fusee_journal::{BoxFuture, Branch, RunAborted};
use fusee_lang::TaskResult;
use fusee_model::{CancellationToken, Message};
use fusee_tools::{ContentHash, ToolOutput};
use parking_lot::Mutex;
use serde_json::Value;

use super::ResourceMetrics;
use super::error::{ErrorType, Reason, TaskError};
use super::lookup::{ExecutionPath, TemplateOrigin};
use super::pipeline::{TaskScope, TaskSystem};
use super::prompt::Handover;
use super::request::{InheritedContext, SubtaskRequest};
use crate::agent::{Facts, Remaining, Spent, SubtaskOutcome, SubtaskRunner, TaskProgress};
use crate::prompt::{DelegationPrompt, Recap};

/// Maximum length of a subtask's answer in a tool result, in characters.
const SHOWN: usize = 50_000;

/// Runs the subtasks of one task.
pub(crate) struct Subtasks {
    system: Arc<TaskSystem>,
    branch: Branch,
    started_ms: i64,
    cancel: CancellationToken,
    /// Hashes of the requests that led here, including this task's own.
    chain: Vec<String>,
    /// Context that the task was given.
    context: InheritedContext,
    /// Prompt of tasks delegated as text, if the task has one.
    delegation: Option<DelegationPrompt>,
    state: Mutex<SubtaskState>,
}

#[derive(Default)]
struct SubtaskState {
    started: u32,
    earlier: Vec<(String, TaskResult)>,
}

/// A subtask's result, with what its parent is charged.
pub(super) struct FinishedSubtask {
    pub(super) result: TaskResult,
    pub(super) spent: Spent,
    facts: Facts,
    cancelled: bool,
}

impl Subtasks {
    pub(crate) fn new(
        system: Arc<TaskSystem>,
        scope: &TaskScope,
        own: &SubtaskRequest,
        context: InheritedContext,
    ) -> Self {
        let chain = scope.chain.iter().cloned().chain([hash(own)]).collect();
        Self {
            system,
            branch: scope.branch.clone(),
            started_ms: scope.started_ms,
            cancel: scope.cancel.clone(),
            chain,
            context,
            delegation: None,
            state: Mutex::default(),
        }
    }

    /// Sets the prompt of tasks delegated as text.
    pub(crate) fn delegating(self, prompt: DelegationPrompt) -> Self {
        Self { delegation: Some(prompt), ..self }
    }

    /// Runs a subtask to its end within the remaining budget. A failure is wrapped.
    pub(super) async fn run(
        &self,
        request: Result<SubtaskRequest, String>,
        left: Remaining,
        recap: Option<Recap>,
        history: Arc<Vec<Message>>,
    ) -> Result<FinishedSubtask, RunAborted> {
        let asked = request.as_ref().map_or("of this answer", SubtaskRequest::title).to_owned();
        let mut request = match request.map_err(invalid).and_then(|request| self.admit(request, left)) {
            Ok(admitted) => admitted,
            Err(error) => {
                let error = error.measured(ResourceMetrics::default());
                let result = TaskError::subtask(error, &asked).to_result("");
                return Ok(FinishedSubtask {
                    result,
                    spent: Spent::default(),
                    facts: Facts::default(),
                    cancelled: false,
                });
            }
        };
        let (number, earlier) = {
            let mut state = self.state.lock();
            state.started += 1;
            (state.started, state.earlier.clone())
        };
        let name = request.title().to_owned();
        if request.inherited_context.is_none() && !self.context.is_empty() {
            request.inherited_context = Some(self.context.clone());
        }
        let progress = Arc::new(TaskProgress::default());
        let scope = TaskScope {
            branch: self.branch.child(format!("sub-{number}")),
            parent: Some(self.branch.clone()),
            started_ms: self.started_ms,
            cancel: self.cancel.child_token(),
            progress: Arc::clone(&progress),
            path: ExecutionPath::Template,
            chain: self.chain.clone(),
            left: Some(left),
            earlier,
            handover: self.delegation.clone().zip(recap).map(|(prompt, recap)| Handover { prompt, recap }),
            history,
        };
        let kept = request.history_config.unwrap_or_default().record_in_session_history;
        let outcome = self.system.execute(request, TemplateOrigin::Registry, scope).await?;
        let result = outcome
            .result
            .as_deref()
            .cloned()
            .unwrap_or_else(|| TaskResult::complete(outcome.answer.as_str()));
        if kept {
            self.state.lock().earlier.push((name.clone(), result.clone()));
        }
        let spent = outcome.spent;
        let cancelled = outcome.status == TaskStatus::Cancelled;
        Ok(FinishedSubtask { result: wrapped(result, &name), spent, facts: progress.take_facts(), cancelled })
    }

    fn admit(&self, request: SubtaskRequest, left: Remaining) -> Result<SubtaskRequest, TaskError> {
        let depth = self.system.base.limits.subtask_depth;
        if self.chain.len() > depth as usize {
            let message = format!("tasks begin tasks at most {depth} deep, and this would be one more");
            return Err(TaskError::failure(Reason::ExecutionHalted, message));
        }
        if self.chain.contains(&hash(&request)) {
            let message = format!(
                "`{}` with these inputs is under way already: the tasks begin each other in a circle",
                request.title()
            );
            return Err(TaskError::failure(Reason::ExecutionHalted, message));
        }
        let used_up = |reason, what: &str| {
            let message = format!("the {what} that all tasks together may have used is used up");
            let failure = TaskError::failure(reason, message);
            Err(TaskError { kind: ErrorType::ResourceExhaustion, ..failure })
        };
        match left {
            Remaining { turns: 0, .. } => used_up(Reason::Turns, "number of turns"),
            Remaining { ms: Some(0), .. } => used_up(Reason::Time, "time"),
            Remaining { usd: Some(usd), .. } if usd <= 0.0 => used_up(Reason::Cost, "money"),
            Remaining { .. } => Ok(request),
        }
    }
}

impl SubtaskRunner for Subtasks {
    fn spawn<'a>(
        &'a self,
        arguments: Value,
        left: Remaining,
        recap: Recap,
        said: &'a [Message],
    ) -> BoxFuture<'a, Result<SubtaskOutcome, RunAborted>> {
        Box::pin(async move {
            let request = serde_json::from_value(arguments).map_err(|error| error.to_string());
            let history = history(&request, said);
            let FinishedSubtask { result, spent, facts, cancelled } =
                self.run(request, left, Some(recap), history).await?;
            let (content, truncated) = shown(&result);
            let ok = result.is_ok();
            let output = ToolOutput { ok, content, truncated, aborted: cancelled, ..ToolOutput::default() };
            Ok(SubtaskOutcome { output, spent, facts })
        })
    }
}

/// Returns the conversation for a subtask that asks for it; it is copied only then.
pub(super) fn history(request: &Result<SubtaskRequest, String>, said: &[Message]) -> Arc<Vec<Message>> {
    let wanted = request.as_ref().ok().and_then(|request| request.history_config);
    match wanted.is_some_and(|history| history.use_session_history) {
        true => Arc::new(said.to_vec()),
        false => Arc::default(),
    }
}

/// Wraps a failure, keeping the inner error as its cause.
fn wrapped(result: TaskResult, name: &str) -> TaskResult {
    let Some(error) = TaskError::of_result(&result) else { return result };
    let mut wrapped = TaskError::subtask(error, name).to_result(result.content.as_str());
    let rest = result.notes.into_iter().filter(|(key, _)| !wrapped.notes.contains_key(key));
    let rest: Vec<_> = rest.collect();
    wrapped.notes.extend(rest);
    wrapped
}

/// Renders a result for the calling model; the flag says whether it was truncated.
fn shown(result: &TaskResult) -> (String, bool) {
    let mut text = match (TaskError::of_result(result), result.content.trim()) {
        (None, _) => result.content.clone(),
        (Some(error), "") => format!("subtask_failure: {}", error.message),
        (Some(error), partial) => {
            format!("subtask_failure: {}\n\nWhat there is of its answer:\n{partial}", error.message)
        }
    };
    let Some((at, _)) = text.char_indices().nth(SHOWN) else { return (text, false) };
    text.truncate(at);
    text.push_str("\n[the rest is cut]");
    (text, true)
}

fn invalid(problem: String) -> TaskError {
    TaskError::failure(Reason::InputValidationFailure, format!("the request is not valid: {problem}"))
}

/// Hashes what a request asks for, independent of the caller's context.
fn hash(request: &SubtaskRequest) -> String {
    let essence = SubtaskRequest { inherited_context: None, history_config: None, ..request.clone() };
    // If a template is named, the description is only a comment.
    let description = essence.description.clone().filter(|_| essence.name.is_none());
    let essence = SubtaskRequest { description, ..essence };
    let mut value = serde_json::to_value(&essence).unwrap_or_default();
    value.sort_all_objects();
    ContentHash::of(value.to_string().as_bytes()).to_string()
}
