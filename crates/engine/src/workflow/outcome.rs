//! Outcome of a workflow: its value or fault as a task result, an answer and an error code.

use fusee_journal::event::{ErrorCode, ErrorDetail, TaskStatus};
use fusee_lang::{RuntimeError, Status, TaskResult, Value};
use serde_json::{Value as Json, json};

use crate::agent::{Charges, Spent, TaskOutcome};
use crate::task_system::{ExecutionPath, ResourceMetrics, TaskError};

/// Maximum length of an answer; longer ones end with `…`.
pub(super) const ANSWER_BYTES: usize = 16 << 20;

/// Resources used by all tasks of a workflow.
#[derive(Clone, Debug, Default)]
pub(super) struct TokensUsed {
    pub(super) turns: u32,
    pub(super) charges: Charges,
    pub(super) active_ms: u64,
    pub(super) peak_context_tokens: u64,
    pub(super) model_ms: u64,
}

impl TokensUsed {
    /// Adds usage outside of tasks.
    pub(super) fn add_concurrent(&mut self, spent: &Spent) {
        self.charges.extend(&spent.charges);
        self.model_ms += spent.active_ms;
    }
}

/// Builds the outcome of a workflow that returned a value.
pub(super) fn of_value(value: &Value, used: TokensUsed) -> TaskOutcome {
    let Value::Result(result) = value else {
        let answer = value.display(ANSWER_BYTES);
        let parsed = value.to_json().unwrap_or_else(|_| Json::String(answer.clone()));
        return completed(TaskResult { parsed_content: Some(parsed), ..TaskResult::complete(answer) }, used);
    };
    let plain = result.to_result();
    if let Err(fault) = result.content() {
        return of_fault(&fault, plain.content, used);
    }
    let parsed_content = Some(plain.parsed_content.unwrap_or_default());
    completed(TaskResult { parsed_content, ..plain }, used)
}

fn completed(result: TaskResult, used: TokensUsed) -> TaskOutcome {
    outcome(TaskStatus::Completed, None, result, used)
}

/// Builds the outcome of a failed workflow, with its partial content.
pub(super) fn of_fault(fault: &RuntimeError, content: String, used: TokensUsed) -> TaskOutcome {
    let mut error = fault.to_json();
    error["metrics"] = serde_json::to_value(used.metrics()).unwrap_or_default();
    let failed = TaskResult { status: Status::Failed, ..TaskResult::complete(content) };
    let mut result = TaskResult { parsed_content: Some(Json::Null), ..failed };
    result.note("error", error);
    note_recovery(&mut result);
    outcome(TaskStatus::Failed, Some(task_error(fault)), result, used)
}

/// Builds the outcome of a workflow that could not start.
pub(super) fn not_begun(error: ErrorDetail) -> TaskOutcome {
    let failed = TaskResult { status: Status::Failed, ..TaskResult::complete("") };
    let mut result = TaskResult { parsed_content: Some(Json::Null), ..failed };
    result.note(
        "error",
        json!({ "type": "VALIDATION_ERROR", "reason": error.reason, "message": error.message }),
    );
    note_recovery(&mut result);
    outcome(TaskStatus::Failed, Some(error), result, TokensUsed::default())
}

/// Notes what the caller could do about the error.
fn note_recovery(result: &mut TaskResult) {
    let error = TaskError::of_result(result).filter(|error| error.reason.is_some());
    let recovery = error
        .map_or("correct the workflow where the message says, then run it again", |error| error.recovery());
    result.note("recovery", recovery);
}

fn outcome(
    status: TaskStatus,
    error: Option<ErrorDetail>,
    mut result: TaskResult,
    used: TokensUsed,
) -> TaskOutcome {
    // The notes of the last task are kept; only the path and the metrics are those of the workflow.
    result.note("execution_path", ExecutionPath::SExpression);
    used.metrics().note_in(&mut result);
    TaskOutcome {
        status,
        objects: false,
        blocked: false,
        answer: result.content.clone(),
        error,
        unreachable: false,
        total_turns: used.turns,
        charges: used.charges,
        active_ms: used.active_ms,
        peak_context_tokens: used.peak_context_tokens,
        model_ms: used.model_ms,
        result: Some(Box::new(result)),
    }
}

impl TokensUsed {
    fn metrics(&self) -> ResourceMetrics {
        let usage = self.charges.usage();
        ResourceMetrics {
            turns: self.turns,
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            peak_context_tokens: self.peak_context_tokens,
            active_ms: self.active_ms,
            model_ms: self.model_ms,
        }
    }
}

/// Converts a fault to an event error.
pub(super) fn task_error(fault: &RuntimeError) -> ErrorDetail {
    let reason = fault.reason.as_ref().map_or_else(|| "unexpected_error".to_owned(), ToString::to_string);
    let code = match (&*fault.kind, reason.as_str()) {
        ("RESOURCE_EXHAUSTION", "time") => ErrorCode::Timeout,
        ("RESOURCE_EXHAUSTION", "cost") => ErrorCode::Budget,
        ("RESOURCE_EXHAUSTION", "context" | "output" | "memory") => ErrorCode::TokenLimit,
        ("RESOURCE_EXHAUSTION", _) => ErrorCode::MaxTurns,
        _ => ErrorCode::TurnFailed,
    };
    ErrorDetail { code, reason, message: fault.headline() }
}
