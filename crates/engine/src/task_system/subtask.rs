//! Tasks that a task begins: how deep, never in a circle, within what the first one may use up.

use std::sync::{Arc, Mutex, PoisonError};

use fusee_journal::{Branch, Stop};
use fusee_model::CancellationToken;
use fusee_tools::ContentHash;

use super::error::{ErrorType, Reason, ResourceMetrics, TaskError};
use super::execute::{Place, TaskSystem};
use super::request::SubtaskRequest;
use super::result::{ExecutionPath, TaskResult};
use crate::agent::{Limits, Progress};

/// Tasks begin tasks no deeper than this.
pub const DEEPEST: usize = 5;

/// Those of one task.
pub(super) struct Subtasks {
    system: Arc<TaskSystem>,
    branch: Branch,
    started_ms: i64,
    cancel: CancellationToken,
    /// The requests that led here, this task's own included.
    chain: Vec<String>,
    max_turns: u32,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    begun: u32,
    spent: ResourceMetrics,
    earlier: Vec<(String, TaskResult)>,
}

impl Subtasks {
    pub(super) fn new(system: Arc<TaskSystem>, place: &Place, own: &SubtaskRequest, limits: &Limits) -> Self {
        let chain = place.chain.iter().cloned().chain([hash(own)]).collect();
        Self {
            system,
            branch: place.branch.clone(),
            started_ms: place.started_ms,
            cancel: place.cancel.clone(),
            chain,
            max_turns: limits.max_turns,
            state: Mutex::default(),
        }
    }

    /// What they used up so far.
    pub(super) fn spent(&self) -> ResourceMetrics {
        self.state().spent
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs one to its end; `turns` is what the task that begins it has used itself. A failure is wrapped.
    pub(super) async fn spawn(
        &self,
        request: Result<SubtaskRequest, String>,
        turns: u32,
    ) -> Result<TaskResult, Stop> {
        let (request, left) = match request.map_err(invalid).and_then(|request| self.admit(request, turns)) {
            Ok(admitted) => admitted,
            Err(error) => {
                let wrapped = TaskError::subtask(error, "subtask");
                return Ok(TaskResult::failed(&wrapped, ""));
            }
        };
        let (number, earlier) = {
            let mut state = self.state();
            state.begun += 1;
            (state.begun, state.earlier.clone())
        };
        let name = request.title().to_owned();
        let place = Place {
            branch: self.branch.child(format!("sub-{number}")),
            parent: Some(self.branch.clone()),
            started_ms: self.started_ms,
            cancel: self.cancel.child_token(),
            progress: Arc::new(Progress::default()),
            path: ExecutionPath::Template,
            chain: self.chain.clone(),
            turns_left: Some(left),
            earlier,
        };
        let outcome = self.system.execute(request, None, place).await?;
        let result = outcome
            .result
            .as_deref()
            .cloned()
            .unwrap_or_else(|| TaskResult::complete(outcome.answer.as_str()));
        let mut state = self.state();
        state.spent = state.spent.plus(spent(&result, &outcome));
        state.earlier.push((name.clone(), result.clone()));
        drop(state);
        Ok(match result.error() {
            None => result,
            Some(error) => {
                let mut wrapped =
                    TaskResult::failed(&TaskError::subtask(error, &name), result.content.as_str());
                let rest = result.notes.into_iter().filter(|(key, _)| !wrapped.notes.contains_key(key));
                let rest: Vec<_> = rest.collect();
                wrapped.notes.extend(rest);
                wrapped
            }
        })
    }

    fn admit(&self, request: SubtaskRequest, turns: u32) -> Result<(SubtaskRequest, u32), TaskError> {
        if self.chain.len() > DEEPEST {
            let message = format!("tasks begin tasks at most {DEEPEST} deep, and this would be one more");
            return Err(TaskError::failure(Reason::ExecutionHalted, message));
        }
        if self.chain.contains(&hash(&request)) {
            let message = format!(
                "`{}` with these inputs is under way already: the tasks begin each other in a circle",
                request.title()
            );
            return Err(TaskError::failure(Reason::ExecutionHalted, message));
        }
        let left = self.max_turns.saturating_sub(turns).saturating_sub(self.spent().turns);
        if left == 0 {
            let message = format!("the {} turns that all tasks together may have are used", self.max_turns);
            let failure = TaskError::failure(Reason::Turns, message);
            return Err(TaskError { kind: ErrorType::ResourceExhaustion, ..failure });
        }
        Ok((request, left))
    }
}

fn invalid(problem: String) -> TaskError {
    TaskError::failure(Reason::InputValidationFailure, format!("the request is not valid: {problem}"))
}

fn spent(result: &TaskResult, outcome: &crate::agent::TaskOutcome) -> ResourceMetrics {
    let told = result.notes.get("metrics").and_then(|metrics| serde_json::from_value(metrics.clone()).ok());
    told.unwrap_or_else(|| ResourceMetrics::of(outcome))
}

/// The same for the same request: what it asks for, not how the caller's context stands.
fn hash(request: &SubtaskRequest) -> String {
    let essence = SubtaskRequest { inherited_context: None, history_config: None, ..request.clone() };
    let mut value = serde_json::to_value(&essence).unwrap_or_default();
    value.sort_all_objects();
    ContentHash::of(value.to_string().as_bytes()).to_string()
}
