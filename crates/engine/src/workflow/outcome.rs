//! Outcome of a workflow: its value or fault as a task result, an answer and an error code.

use fusee_journal::event::{ErrorCode, ErrorDetail, TaskStatus};
use fusee_lang::{RuntimeError, Status, TaskResult, Value};
use serde_json::{Value as Json, json};

use crate::agent::{Spent, TaskOutcome};
use crate::task_system::{ExecutionPath, TaskError};

/// Maximum length of an answer; longer ones end with `…`.
pub(super) const ANSWER_BYTES: usize = 16 << 20;

/// Builds the outcome of a workflow that returned a value.
pub(super) fn of_value(value: &Value, spent: Spent) -> TaskOutcome {
    let Value::Result(result) = value else {
        let answer = value.display(ANSWER_BYTES);
        let parsed = value.to_json().unwrap_or_else(|_| Json::String(answer.clone()));
        return completed(TaskResult { parsed_content: Some(parsed), ..TaskResult::complete(answer) }, spent);
    };
    let plain = result.to_result();
    if let Err(fault) = result.content() {
        return of_fault(&fault, plain.content, spent);
    }
    let parsed_content = Some(plain.parsed_content.unwrap_or_default());
    completed(TaskResult { parsed_content, ..plain }, spent)
}

fn completed(result: TaskResult, spent: Spent) -> TaskOutcome {
    outcome(TaskStatus::Completed, None, result, spent)
}

/// Builds the outcome of a failed workflow, with its partial content.
pub(super) fn of_fault(fault: &RuntimeError, content: String, spent: Spent) -> TaskOutcome {
    let mut error = fault.to_json();
    error["metrics"] = serde_json::to_value(spent.metrics()).unwrap_or_default();
    let failed = TaskResult { status: Status::Failed, ..TaskResult::complete(content) };
    let mut result = TaskResult { parsed_content: Some(Json::Null), ..failed };
    result.note("error", error);
    note_recovery(&mut result);
    outcome(TaskStatus::Failed, Some(task_error(fault)), result, spent)
}

/// Builds the outcome of a workflow that could not start.
pub(super) fn not_begun(error: ErrorDetail) -> TaskOutcome {
    let result = unstarted_result(Some(&error.reason), &error.message);
    outcome(TaskStatus::Failed, Some(error), result, Spent::default())
}

/// The result of a workflow that cannot start because of its text or its parameters.
pub fn unstarted_result(reason: Option<&str>, message: &str) -> TaskResult {
    let failed = TaskResult { status: Status::Failed, ..TaskResult::complete("") };
    let mut result = TaskResult { parsed_content: Some(Json::Null), ..failed };
    result.note(
        "error",
        match reason {
            Some(reason) => json!({ "type": "VALIDATION_ERROR", "reason": reason, "message": message }),
            None => json!({ "type": "VALIDATION_ERROR", "message": message }),
        },
    );
    note_recovery(&mut result);
    note_workflow(&mut result, &Spent::default());
    result
}

/// Notes that the result is that of a workflow, and what it used.
fn note_workflow(result: &mut TaskResult, spent: &Spent) {
    result.note("execution_path", ExecutionPath::SExpression);
    spent.metrics().note_in(result);
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
    spent: Spent,
) -> TaskOutcome {
    // The notes of the last task are kept; only the path and the metrics are those of the workflow.
    note_workflow(&mut result, &spent);
    TaskOutcome {
        status,
        fails_run: false,
        answer: result.content.clone(),
        error,
        unreachable: false,
        spent,
        accepted_tokens: None,
        result: Some(Box::new(result)),
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
