//! Errors of the task system. The journal's [`ErrorCode`] belongs to the turn loop; the mapping between the
//! two is defined here.

use fusee_journal::event::ErrorCode;
use fusee_lang::{Status, TaskResult};
use serde::{Deserialize, Serialize};

use crate::agent::{ResourceMetrics, TaskOutcome};
use crate::template::output::Mismatch;

/// Failure of a task. An inner failure is kept as the cause, never flattened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskError {
    /// Kind of failure.
    #[serde(rename = "type")]
    pub kind: ErrorType,
    /// Reason within the kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// Description of the failure, and what to do.
    pub message: String,
    /// Resources used before the failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metrics: Option<Box<ResourceMetrics>>,
    /// Underlying cause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Box<ErrorCause>>,
}

/// Kinds of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ErrorType {
    /// A limit was reached; the reason says which.
    ResourceExhaustion,
    /// Anything that went wrong while the task ran.
    TaskFailure,
    /// The request or the template is invalid.
    ValidationError,
    /// A template is not well-formed XML.
    XmlParseError,
}

/// Reasons within the kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// Limit on assistant messages.
    Turns,
    /// Limit on context tokens.
    Context,
    /// Limit on answer tokens.
    Output,
    /// Limit on active time.
    Time,
    /// Limit on cost.
    Cost,
    /// A file could not be read, or a command could not run, for the context.
    ContextRetrievalFailure,
    /// The file index could not answer.
    ContextMatchingFailure,
    /// A file of the context is not text.
    ContextParsingFailure,
    /// The template does not match the schema.
    XmlValidationFailure,
    /// The answer does not match the declared format.
    OutputFormatFailure,
    /// A guard rail stopped the task.
    ExecutionHalted,
    /// A subtask failed.
    SubtaskFailure,
    /// The inputs are invalid.
    InputValidationFailure,
    /// No such template.
    TemplateNotFound,
    /// A tool failed.
    ToolExecutionError,
    /// The model provider failed.
    LlmError,
    /// Configuration problem found before a request was sent.
    ConfigurationError,
    /// The model reports that it cannot do the task.
    Blocked,
    /// Any other failure.
    UnexpectedError,
}

/// What lies behind a failure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ErrorCause {
    /// Another failure.
    Error(TaskError),
    /// An answer that does not match the declared format.
    Mismatch(Mismatch),
}

impl Reason {
    /// Returns the name used in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Turns => "turns",
            Self::Context => "context",
            Self::Output => "output",
            Self::Time => "time",
            Self::Cost => "cost",
            Self::ContextRetrievalFailure => "context_retrieval_failure",
            Self::ContextMatchingFailure => "context_matching_failure",
            Self::ContextParsingFailure => "context_parsing_failure",
            Self::XmlValidationFailure => "xml_validation_failure",
            Self::OutputFormatFailure => "output_format_failure",
            Self::ExecutionHalted => "execution_halted",
            Self::SubtaskFailure => "subtask_failure",
            Self::InputValidationFailure => "input_validation_failure",
            Self::TemplateNotFound => "template_not_found",
            Self::ToolExecutionError => "tool_execution_error",
            Self::LlmError => "llm_error",
            Self::ConfigurationError => "configuration_error",
            Self::Blocked => "blocked",
            Self::UnexpectedError => "unexpected_error",
        }
    }

    /// Parses a reason from its JSON name.
    pub fn named(name: &str) -> Option<Self> {
        serde_json::from_value(name.into()).ok()
    }
}

impl TaskError {
    /// Creates a `TaskFailure` with this reason.
    pub fn failure(reason: Reason, message: impl Into<String>) -> Self {
        Self::new(ErrorType::TaskFailure, Some(reason), message.into())
    }

    /// Creates a `ValidationError` with this reason.
    pub fn invalid(reason: Reason, message: impl Into<String>) -> Self {
        Self::new(ErrorType::ValidationError, Some(reason), message.into())
    }

    fn new(kind: ErrorType, reason: Option<Reason>, message: String) -> Self {
        Self { kind, reason, message, metrics: None, cause: None }
    }

    /// Wraps the failure of a subtask.
    #[must_use]
    pub fn subtask(inner: Self, name: &str) -> Self {
        let message = format!("the subtask `{name}` failed: {}", inner.message);
        let metrics = inner.metrics.clone();
        let cause = Some(Box::new(ErrorCause::Error(inner)));
        Self { metrics, cause, ..Self::failure(Reason::SubtaskFailure, message) }
    }

    /// Sets the cause.
    #[must_use]
    pub fn caused_by(self, cause: ErrorCause) -> Self {
        Self { cause: Some(Box::new(cause)), ..self }
    }

    /// Sets the metrics.
    #[must_use]
    pub fn measured(self, metrics: ResourceMetrics) -> Self {
        Self { metrics: Some(Box::new(metrics)), ..self }
    }

    /// Converts a failure of the turn loop; `None` if the task did not fail.
    pub fn from_outcome(outcome: &TaskOutcome) -> Option<Self> {
        let error = outcome.error.as_ref()?;
        let limit = |reason| (ErrorType::ResourceExhaustion, Some(reason));
        let (kind, reason) = match error.code {
            ErrorCode::MaxTurns => limit(Reason::Turns),
            ErrorCode::TokenLimit if error.reason == "output" => limit(Reason::Output),
            ErrorCode::TokenLimit => limit(Reason::Context),
            ErrorCode::Timeout => limit(Reason::Time),
            ErrorCode::Budget => limit(Reason::Cost),
            ErrorCode::Cancelled => (ErrorType::TaskFailure, None),
            ErrorCode::InitFailed | ErrorCode::TurnFailed => {
                let reason = Reason::named(&error.reason).unwrap_or(Reason::UnexpectedError);
                (ErrorType::TaskFailure, Some(reason))
            }
        };
        Some(Self::new(kind, reason, error.message.clone()).measured(outcome.resource_metrics()))
    }

    /// Returns the journal's code for this error.
    pub fn code(&self) -> ErrorCode {
        match (self.kind, self.reason) {
            (ErrorType::ResourceExhaustion, Some(Reason::Turns)) => ErrorCode::MaxTurns,
            (ErrorType::ResourceExhaustion, Some(Reason::Time)) => ErrorCode::Timeout,
            (ErrorType::ResourceExhaustion, Some(Reason::Cost)) => ErrorCode::Budget,
            (ErrorType::ResourceExhaustion, _) => ErrorCode::TokenLimit,
            (ErrorType::ValidationError | ErrorType::XmlParseError, _)
            | (
                ErrorType::TaskFailure,
                Some(
                    Reason::ConfigurationError
                    | Reason::InputValidationFailure
                    | Reason::TemplateNotFound
                    | Reason::XmlValidationFailure,
                ),
            ) => ErrorCode::InitFailed,
            (ErrorType::TaskFailure, _) => ErrorCode::TurnFailed,
        }
    }

    /// Builds the result of a failed task, with its partial answer.
    pub fn to_result(&self, content: impl Into<String>) -> TaskResult {
        let mut result = TaskResult { status: Status::Failed, ..TaskResult::complete(content) };
        result.note("error", self);
        result.note("recovery", self.recovery());
        result
    }

    /// Reads the error of a failed result.
    pub fn of_result(result: &TaskResult) -> Option<Self> {
        result.notes.get("error").and_then(|error| serde_json::from_value(error.clone()).ok())
    }

    /// Converts the error to that of an event.
    pub(super) fn to_event(&self, code: ErrorCode) -> fusee_journal::event::ErrorDetail {
        let reason = self.reason.map_or("unexpected_error", Reason::as_str).to_owned();
        fusee_journal::event::ErrorDetail { code, reason, message: self.message.clone() }
    }

    /// Suggests what the caller could do, for `notes.recovery`.
    pub fn recovery(&self) -> &'static str {
        let Some(reason) = self.reason else { return "start the task again" };
        match reason {
            Reason::Turns | Reason::Time | Reason::Cost => {
                "raise the limit, or split the task into smaller ones; the partial answer is in `content`"
            }
            Reason::Context | Reason::Output => {
                "give the task less context, or use a model with a larger context window"
            }
            Reason::ContextRetrievalFailure
            | Reason::ContextMatchingFailure
            | Reason::ContextParsingFailure => "correct the paths, the command or the query of the context",
            Reason::XmlValidationFailure => "correct the template at the positions that the message names",
            Reason::OutputFormatFailure => {
                "the answer is in `content`: use it as it is, loosen the declared format, or ask again"
            }
            Reason::ExecutionHalted => {
                "explain in the instructions how to proceed where the model was looping"
            }
            Reason::SubtaskFailure => "see `cause` for the failure of the subtask",
            Reason::InputValidationFailure => "correct the inputs that the message names",
            Reason::TemplateNotFound => "name one of the registered templates",
            Reason::ToolExecutionError => "check the tool's output and correct its arguments",
            Reason::LlmError => "check the model server's message, then start the task again",
            Reason::ConfigurationError => "correct the configuration that the message names",
            Reason::Blocked => "remove the obstacle that `content` names, then start the task again",
            Reason::UnexpectedError => "start the task again; the journal has the details",
        }
    }
}
