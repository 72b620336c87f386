//! Why a task failed, in the vocabulary of the task system. The journal's own words for it ([`ErrorCode`]) are
//! those of the turn loop; the two are held together here and in formats.md.

use fusee_journal::event::ErrorCode;
use serde::{Deserialize, Serialize};

use crate::agent::TaskOutcome;
use crate::run::Exit;

/// A failure. An inner one is kept whole as the cause, never flattened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskError {
    /// The sort of failure.
    #[serde(rename = "type")]
    pub kind: ErrorType,
    /// The reason within the sort.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// What happened, and what to do.
    pub message: String,
    /// What was used up until then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metrics: Option<Box<ResourceMetrics>>,
    /// What it comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Box<Cause>>,
}

/// The sorts of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ErrorType {
    /// A limit was reached; the reason says which.
    ResourceExhaustion,
    /// Anything that went wrong while the task ran.
    TaskFailure,
    /// The answer cannot be used at all.
    InvalidOutput,
    /// What was asked, or what it was asked of, is not valid.
    ValidationError,
    /// A template is not XML.
    XmlParseError,
}

/// The reasons within the sorts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// Limit: assistant messages.
    Turns,
    /// Limit: tokens of the context.
    Context,
    /// Limit: tokens of the answer.
    Output,
    /// Limit: working time.
    Time,
    /// Limit: money.
    Cost,
    /// A file or a command that the context needs could not be read or run.
    ContextRetrievalFailure,
    /// The index of files could not answer.
    ContextMatchingFailure,
    /// What was found for the context is not text.
    ContextParsingFailure,
    /// The template does not fit the schema.
    XmlValidationFailure,
    /// The answer is not as declared.
    OutputFormatFailure,
    /// A part took too long.
    ExecutionTimeout,
    /// A guard rail ended it.
    ExecutionHalted,
    /// A task that this one began failed.
    SubtaskFailure,
    /// The inputs do not fit.
    InputValidationFailure,
    /// There is no such template.
    TemplateNotFound,
    /// A tool failed.
    ToolExecutionError,
    /// Whatever the provider answered or failed to answer.
    LlmError,
    /// Found before a request was sent.
    ConfigurationError,
    /// Anything else.
    UnexpectedError,
}

/// What an error comes from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Cause {
    /// Another failure.
    Error(TaskError),
    /// An answer that is not as declared.
    Mismatch(Mismatch),
}

/// Where an answer differs from what was declared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mismatch {
    /// `type_mismatch` or `schema_violation`.
    pub error_type: String,
    /// What is wrong.
    pub message: String,
    /// A JSON pointer into the answer; empty is the whole of it.
    pub location: String,
}

/// What a task used up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ResourceMetrics {
    /// Assistant messages.
    pub turns: u32,
    /// As reported, over all model calls.
    pub input_tokens: u64,
    /// As reported, over all model calls.
    pub output_tokens: u64,
    /// The most that a context held at once, in tokens.
    #[serde(skip_serializing_if = "is_zero")]
    pub peak_context_tokens: u64,
    /// Working time in milliseconds: what all steps took. Waiting for a person is not in it.
    #[serde(skip_serializing_if = "is_zero")]
    pub active_ms: u64,
    /// What of it was spent on the model.
    #[serde(skip_serializing_if = "is_zero")]
    pub model_ms: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl ResourceMetrics {
    /// Of a task that ended.
    pub fn of(outcome: &TaskOutcome) -> Self {
        let usage = outcome.usage;
        Self {
            turns: outcome.total_turns,
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            peak_context_tokens: outcome.peak_context_tokens,
            active_ms: outcome.active_ms,
            model_ms: outcome.model_ms,
        }
    }

    /// What is counted, without what differs from one run to the next.
    #[must_use]
    pub fn counts(self) -> Self {
        Self { peak_context_tokens: 0, active_ms: 0, model_ms: 0, ..self }
    }

    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            turns: self.turns + other.turns,
            input_tokens: self.input_tokens + other.input_tokens,
            output_tokens: self.output_tokens + other.output_tokens,
            // Contexts of two tasks are two: the larger one is the peak.
            peak_context_tokens: self.peak_context_tokens.max(other.peak_context_tokens),
            active_ms: self.active_ms + other.active_ms,
            model_ms: self.model_ms + other.model_ms,
        }
    }
}

impl Reason {
    /// The name in JSON.
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
            Self::ExecutionTimeout => "execution_timeout",
            Self::ExecutionHalted => "execution_halted",
            Self::SubtaskFailure => "subtask_failure",
            Self::InputValidationFailure => "input_validation_failure",
            Self::TemplateNotFound => "template_not_found",
            Self::ToolExecutionError => "tool_execution_error",
            Self::LlmError => "llm_error",
            Self::ConfigurationError => "configuration_error",
            Self::UnexpectedError => "unexpected_error",
        }
    }

    /// The reason of this name.
    pub fn named(name: &str) -> Option<Self> {
        serde_json::from_value(name.into()).ok()
    }
}

impl TaskError {
    /// A failure of a task for this reason.
    pub fn failure(reason: Reason, message: impl Into<String>) -> Self {
        Self::new(ErrorType::TaskFailure, Some(reason), message.into())
    }

    /// A request or a template that is not valid.
    pub fn invalid(reason: Reason, message: impl Into<String>) -> Self {
        Self::new(ErrorType::ValidationError, Some(reason), message.into())
    }

    fn new(kind: ErrorType, reason: Option<Reason>, message: String) -> Self {
        Self { kind, reason, message, metrics: None, cause: None }
    }

    /// The failure of a subtask, wrapped.
    #[must_use]
    pub fn subtask(inner: Self, name: &str) -> Self {
        let message = format!("the subtask `{name}` failed: {}", inner.message);
        let metrics = inner.metrics.clone();
        let cause = Some(Box::new(Cause::Error(inner)));
        Self { metrics, cause, ..Self::failure(Reason::SubtaskFailure, message) }
    }

    /// With what it comes from.
    #[must_use]
    pub fn caused_by(self, cause: Cause) -> Self {
        Self { cause: Some(Box::new(cause)), ..self }
    }

    /// With what was used up.
    #[must_use]
    pub fn measured(self, metrics: ResourceMetrics) -> Self {
        Self { metrics: Some(Box::new(metrics)), ..self }
    }

    /// How the turn loop's failure is called here; `None` of a task that did not fail.
    pub fn of(outcome: &TaskOutcome) -> Option<Self> {
        let error = outcome.error.as_ref()?;
        let limit = |reason| (ErrorType::ResourceExhaustion, Some(reason));
        let (kind, reason) = match error.code {
            ErrorCode::MaxTurns => limit(Reason::Turns),
            ErrorCode::TokenLimit => limit(Reason::Context),
            ErrorCode::Timeout => limit(Reason::Time),
            ErrorCode::Budget => limit(Reason::Cost),
            ErrorCode::Cancelled => (ErrorType::TaskFailure, None),
            ErrorCode::InitFailed | ErrorCode::TurnFailed => {
                let reason = Reason::named(&error.reason).unwrap_or(Reason::UnexpectedError);
                (ErrorType::TaskFailure, Some(reason))
            }
        };
        Some(Self::new(kind, reason, error.message.clone()).measured(ResourceMetrics::of(outcome)))
    }

    /// The journal's code for it.
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
            (ErrorType::TaskFailure | ErrorType::InvalidOutput, _) => ErrorCode::TurnFailed,
        }
    }

    /// The exit code for it, where the task was what a person asked for. A task's own inputs are no wrong usage of
    /// the program.
    pub fn exit(&self) -> Exit {
        match self.code() {
            ErrorCode::InitFailed if self.reason == Some(Reason::InputValidationFailure) => Exit::Failed,
            ErrorCode::InitFailed => Exit::Usage,
            ErrorCode::MaxTurns | ErrorCode::TokenLimit | ErrorCode::Timeout | ErrorCode::Budget => {
                Exit::Limit
            }
            ErrorCode::TurnFailed => Exit::Failed,
            ErrorCode::Cancelled => Exit::Cancelled,
        }
    }

    /// What the caller could do, for `notes.recovery`.
    pub fn recovery(&self) -> &'static str {
        let Some(reason) = self.reason else { return "start the task again" };
        match reason {
            Reason::Turns | Reason::Time | Reason::Cost => {
                "raise the limit, or split the task into smaller ones; the partial answer is in `content`"
            }
            Reason::Context | Reason::Output => "give the task less context, or a model that holds more",
            Reason::ContextRetrievalFailure
            | Reason::ContextMatchingFailure
            | Reason::ContextParsingFailure => "correct the paths, the command or the query of the context",
            Reason::XmlValidationFailure => {
                "`fusee check` shows every problem of the template with its place"
            }
            Reason::OutputFormatFailure => {
                "the answer is in `content`: use it as it is, loosen the declared format, or ask again"
            }
            Reason::ExecutionTimeout => "allow more time, or ask for less at once",
            Reason::ExecutionHalted => "say in the instructions how to go on where the model went in circles",
            Reason::SubtaskFailure => "see the cause: the inner failure is kept whole",
            Reason::InputValidationFailure => "correct the inputs that the message names",
            Reason::TemplateNotFound => "`fusee templates` lists what is there",
            Reason::ToolExecutionError => "see what the tool said, and correct its arguments",
            Reason::LlmError => "see what the model's server said; the task can be started again",
            Reason::ConfigurationError => "correct the configuration that the message names",
            Reason::UnexpectedError => "start the task again; the journal holds what happened",
        }
    }
}
