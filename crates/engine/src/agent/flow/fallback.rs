//! The fallback: a second method for a task of a small model that produced no result: no file changed although a change
//! was requested, or the answer asks for something that the runtime can look up. The task is tried once more with the
//! files in the prompt, and ends with its true status.

use std::sync::Arc;

use fusee_journal::RunAborted;
use fusee_journal::event::{ErrorCode, ErrorDetail, Event, TaskStatus};
use serde::{Deserialize, Serialize};

use super::auto::{self, FlowChoice};
use super::run_flow::{self, examine_step};
use super::settings::{FlowEditFormat, FlowMode, FlowSettings, RuntimeAction};
use super::stage_runner::{StageRunner, StageSpec, is_final};
use super::task_rules::{FlowShape, StageRequirements, StageSignal, TaskRules};
use crate::agent::{AgentTask, Facts, TaskOutcome};

/// The method of the second try.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FallbackMethod {
    /// `direct`, for a request that asks for a change.
    Direct,
    /// An answer from the files, for a question.
    Answer,
}

/// Phrases of an answer that asks for what a tool could have shown.
const ASKING: &[&str] = &[
    "please provide",
    "please share",
    "please paste",
    "please specify",
    "please upload",
    "could you provide",
    "could you share",
    "could you please",
    "can you provide",
    "can you share",
    "provide me with",
    "provide the code",
    "provide the content",
    "provide the file",
    "provide more",
    "need more information",
    "need more details",
    "need to see the",
    "don't have access",
    "do not have access",
    "can't access",
    "cannot access",
    "unable to access",
];

/// Code of the error of a task that changed nothing.
pub(crate) const NOTHING_CHANGED: &str = "nothing_changed";

/// Code of the error of a task whose answer is a question.
const ASKED_FOR_INPUT: &str = "asked_for_input";

const ANSWER: &str =
    "Answer the request from the files above, in a few sentences. Everything you need is there.";

/// Whether an answer asks for something instead of answering.
fn asks_for_input(answer: &str) -> bool {
    let answer = answer.to_lowercase().replace('’', "'");
    ASKING.iter().any(|phrase| answer.contains(phrase))
}

/// Why a task produced no result, if it did not.
fn shortfall(method: FallbackMethod, facts: &Facts, outcome: &TaskOutcome) -> Option<&'static str> {
    let completed = outcome.status == TaskStatus::Completed;
    match method {
        FallbackMethod::Direct if facts.has_changes() || facts.is_verified() || is_final(outcome) => None,
        FallbackMethod::Direct => Some("nothing was changed"),
        FallbackMethod::Answer if completed && asks_for_input(&outcome.answer) => {
            Some("the answer asks for something that is in the project")
        }
        FallbackMethod::Answer => None,
    }
}

/// Runs a task, and once more with another method if it produced no result.
pub(crate) async fn run(
    task: &AgentTask,
    flow: &FlowSettings,
    method: FallbackMethod,
    started_ms: i64,
) -> Result<TaskOutcome, RunAborted> {
    let (first, outcome, missing) = task.drive(started_ms).await?;
    let Some(why) = shortfall(method, &first.flow.facts, &outcome) else {
        return Ok(task.end(&first, outcome));
    };
    let first = first.finish(outcome, missing);
    let method_name = flow.mode.name();
    let workspace = Arc::clone(&task.session.workspace);
    let (settings, request) = (flow.clone(), task.request.clone());
    let flow: FlowSettings =
        examine_step(task, "second_method", move || auto::direct_settings(settings, &request, &workspace))
            .await?;
    let mut stages = StageRunner::new(task, &flow, started_ms);
    stages.absorb(None, &first);
    let choice = FlowChoice { flow: FlowMode::Direct, reason: format!("{why} by {method_name}") };
    stages.emit(Event::FlowChosen { flow: choice.flow.name().to_owned(), reason: choice.reason });
    match method {
        FallbackMethod::Direct => Box::pin(run_flow::finish_directly(stages, task, &flow)).await,
        FallbackMethod::Answer => {
            let outcome = match stages.run_stage(answer_from_files(&flow)).await? {
                Ok(()) => stages.completed(),
                Err(failed) => *failed,
            };
            let asks = outcome.status == TaskStatus::Completed && asks_for_input(&outcome.answer);
            stages.end(if asks { still_asking(outcome) } else { outcome }).await
        }
    }
}

/// The outcome of a task whose second answer asks for something, too.
fn still_asking(outcome: TaskOutcome) -> TaskOutcome {
    let error = ErrorDetail {
        code: ErrorCode::TurnFailed,
        reason: ASKED_FOR_INPUT.to_owned(),
        message: "the model asks for something instead of answering".to_owned(),
    };
    TaskOutcome { status: TaskStatus::Failed, error: Some(error), ..outcome }
}

/// The outcome of a task that changed nothing although it was asked to.
pub(crate) fn nothing_changed(outcome: TaskOutcome, details: &str) -> TaskOutcome {
    let error = ErrorDetail {
        code: ErrorCode::TurnFailed,
        reason: NOTHING_CHANGED.to_owned(),
        message: format!("nothing was changed: {details}"),
    };
    TaskOutcome { status: TaskStatus::Failed, error: Some(error), ..outcome }
}

/// The stage that answers a question from the files.
fn answer_from_files(flow: &FlowSettings) -> StageSpec {
    let shape = StageRequirements {
        id: "answer".to_owned(),
        signal: StageSignal::None,
        ..StageRequirements::default()
    };
    let mut rules = TaskRules::for_session(flow, FlowShape::Stage(shape));
    rules.access.no_tools = true;
    rules.one_answer = true;
    rules.verify = None;
    rules.edit_format = FlowEditFormat::Tools;
    rules.before = RuntimeAction { read: ["@target", "@tests"].map(str::to_owned).to_vec(), run: None };
    StageSpec {
        notes_window: 0,
        gives_answer: true,
        ..StageSpec::new("answer", ANSWER.to_owned(), rules, flow)
    }
}

#[cfg(test)]
mod tests;
