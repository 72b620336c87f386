//! Handles a model's answer: checks it against the declared format, or runs the continuation it requests.

use std::sync::Arc;

use fusee_journal::event::{ErrorCode, ErrorDetail};
use fusee_journal::{BoxFuture, RunAborted};
use fusee_lang::TaskResult;
use fusee_model::Message;
use fusee_tools::Workspace;
use parking_lot::Mutex;
use serde_json::Value;

use super::ResourceMetrics;
use super::error::{ErrorCause, ErrorType, Reason, TaskError};
use super::request::SubtaskRequest;
use super::subtasks::{FinishedSubtask, Subtasks, history};
use crate::agent::{AcceptedAnswer, AnswerCheck, AnswerHandler, Conclusion, Remaining, Spent, TaskOutcome};
use crate::template::output::{self, Mismatch, OutputSchema, OutputVerdict};
use crate::template::{OutputFormat, OutputKind, Template};

/// Checks the answer of one task.
pub(super) struct OutputJudge {
    format: Option<OutputFormat>,
    schema: Option<OutputSchema>,
    repair: bool,
    subtasks: Arc<Subtasks>,
    /// Result of the continuation, if the answer requested one.
    continued: Mutex<Option<ContinuationResult>>,
}

/// A finished continuation.
#[derive(Clone)]
struct ContinuationResult {
    result: TaskResult,
    /// Content of the answer that requested it.
    before: String,
}

impl OutputJudge {
    pub(super) fn new(template: &Template, schema: Option<OutputSchema>, subtasks: Arc<Subtasks>) -> Self {
        // Templates with manual XML pass the answer on verbatim.
        let format = template.output_format.clone().filter(|_| !template.manual_xml);
        Self { format, schema, repair: !template.disable_reparsing, subtasks, continued: Mutex::new(None) }
    }

    /// Whether a mismatch gives the model another turn.
    pub(super) fn asks_again(&self) -> bool {
        let schema = self.format.as_ref().is_some_and(|format| format.is_json() && format.schema.is_some());
        schema && self.repair
    }

    fn check(&self, answer: &str) -> OutputVerdict {
        output::check_output(answer, self.format.as_ref(), self.schema.as_ref(), self.repair)
    }

    fn continued(&self) -> Option<ContinuationResult> {
        self.continued.lock().clone()
    }
}

impl AnswerCheck for OutputJudge {
    /// Rejects an answer that does not match its schema, so that the model is asked once more.
    fn check(&self, answer: &str, workspace: &Workspace) -> Result<AcceptedAnswer, String> {
        match self.check(answer) {
            OutputVerdict::Mismatched(mismatch) if continuation(answer).is_none() => Err(mismatch.message),
            _ => self.check_last(answer, workspace),
        }
    }

    /// Accepts any answer: [`AnswerHandler::conclude`] fails the task and keeps the answer.
    fn check_last(&self, answer: &str, _workspace: &Workspace) -> Result<AcceptedAnswer, String> {
        Ok(AcceptedAnswer { answer: answer.to_owned(), fails_run: false })
    }
}

impl AnswerHandler for OutputJudge {
    fn conclude<'a>(
        &'a self,
        answer: String,
        left: Remaining,
        said: &'a [Message],
    ) -> BoxFuture<'a, Result<(Conclusion, Spent), RunAborted>> {
        Box::pin(async move {
            let mut used = Spent::default();
            let answer = match continuation(&answer) {
                None => answer,
                Some(ContinuationRequest { request, before }) => {
                    let history = history(&request, said);
                    let FinishedSubtask { result, spent, .. } =
                        self.subtasks.run(request, left, None, history).await?;
                    used = spent;
                    let failed = TaskError::of_result(&result);
                    let content = result.content.clone();
                    let content =
                        if failed.is_some() && content.is_empty() { before.clone() } else { content };
                    *self.continued.lock() = Some(ContinuationResult { result, before });
                    if let Some(error) = failed {
                        let failed = Conclusion::Failed { answer: content, error: event_error(&error) };
                        return Ok((failed, used));
                    }
                    content
                }
            };
            let conclusion = match self.check(&answer) {
                OutputVerdict::Mismatched(mismatch) => {
                    let error = mismatched(mismatch);
                    Conclusion::Failed { answer, error: event_error(&error) }
                }
                OutputVerdict::Text | OutputVerdict::Parsed(_) | OutputVerdict::Unparsed(_) => {
                    Conclusion::Answer(answer)
                }
            };
            Ok((conclusion, used))
        })
    }
}

/// A continuation requested by an answer.
struct ContinuationRequest {
    request: Result<SubtaskRequest, String>,
    /// Content of the requesting answer.
    before: String,
}

/// Parses the continuation of an answer: `{"status": "CONTINUATION", "notes": {"subtask_request": {…}}}`.
fn continuation(answer: &str) -> Option<ContinuationRequest> {
    let OutputVerdict::Parsed(value) = output::check_output(
        answer,
        Some(&OutputFormat { kind: OutputKind::Json, schema: None }),
        None,
        false,
    ) else {
        return None;
    };
    if value.get("status").and_then(Value::as_str) != Some("CONTINUATION") {
        return None;
    }
    let request = value.get("notes")?.get("subtask_request")?.clone();
    let before = value.get("content").and_then(Value::as_str).unwrap_or_default().to_owned();
    Some(ContinuationRequest {
        request: serde_json::from_value(request).map_err(|error| error.to_string()),
        before,
    })
}

fn mismatched(mismatch: Mismatch) -> TaskError {
    let message = format!("the answer does not match the declared output format: {}", mismatch.message);
    TaskError::failure(Reason::OutputFormatFailure, message).caused_by(ErrorCause::Mismatch(mismatch))
}

/// Converts the error of an answer; whatever the reason, the task itself had begun.
fn event_error(error: &TaskError) -> ErrorDetail {
    let exhausted = error.kind == ErrorType::ResourceExhaustion;
    error.to_event(if exhausted { error.code() } else { ErrorCode::TurnFailed })
}

/// Builds the result of a finished task.
pub(super) fn result_of(outcome: &TaskOutcome, finishing: &OutputJudge) -> TaskResult {
    let metrics = outcome.resource_metrics();
    let Some(ContinuationResult { result: continued, before }) = finishing.continued() else {
        return judged(outcome, finishing, metrics);
    };
    // A failure of the continuation is a failure of this task; its answer must match this task's format.
    let mut result = match TaskError::of_result(&continued) {
        Some(error) => {
            let partial = if continued.content.is_empty() { before } else { continued.content };
            error.measured(metrics).to_result(partial)
        }
        None => judged(outcome, finishing, metrics),
    };
    result.note("subtask", Value::Object(continued.notes));
    result
}

fn judged(outcome: &TaskOutcome, finishing: &OutputJudge, metrics: ResourceMetrics) -> TaskResult {
    let answer = outcome.answer.as_str();
    match (TaskError::from_outcome(outcome), finishing.check(answer)) {
        (Some(error), OutputVerdict::Mismatched(mismatch))
            if error.reason == Some(Reason::OutputFormatFailure) =>
        {
            mismatched(mismatch).measured(metrics).to_result(answer)
        }
        (Some(error), _) => error.to_result(answer),
        (None, OutputVerdict::Parsed(value)) => {
            TaskResult { parsed_content: Some(value), ..TaskResult::complete(answer) }
        }
        (None, OutputVerdict::Unparsed(problem)) => {
            let mut result = TaskResult::complete(answer);
            result.note("parseError", problem);
            result
        }
        // Only for a flow without a single answer, of which `fusee_engine::template` warns.
        (None, OutputVerdict::Mismatched(mismatch)) => {
            let mut result = TaskResult::complete(answer);
            result.note("parseError", mismatched(mismatch).message);
            result
        }
        (None, OutputVerdict::Text) => TaskResult::complete(answer),
    }
}
