//! Effects: what a workflow requests from the outside, as data. A driver performs them, journals them and
//! returns the results.
//!
//! The machine has no access to tasks, tools, users or clocks. It stops at every effect, and its next state
//! depends only on the result, so a driver that stores the results can bring a machine back to any point.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map as JsonMap, Value as Json, json};

use crate::defatom::Atom;
use crate::machine::FanOut;
use crate::result::TaskResult;
use crate::runtime_error::{RuntimeError, SourceLocation};
use crate::value::{Text, Value};

/// Why [`crate::Machine::resume`] returned.
pub enum Yield {
    /// The workflow completed with this value.
    Done(Value),
    /// The workflow failed with an uncaught error.
    Fault(Box<RuntimeError>),
    /// The workflow waits for the result of this effect.
    Effect(Effect),
    /// A slice of steps is used up. Resume with [`ResumeInput::Go`], or with a failure if time is up.
    Pause,
}

/// An effect and the form that requested it.
pub struct Effect {
    /// The requested effect.
    pub kind: EffectKind,
    /// Location of the form.
    pub location: SourceLocation,
}

/// What a program asks of its driver.
pub enum EffectKind {
    /// Run a task; answered with [`ResumeInput::Reply`].
    Task(Box<TaskCall>),
    /// Call a tool; answered with [`ResumeInput::Reply`].
    Tool(ToolEffect),
    /// Query context; answered with [`ResumeInput::Json`], an object `{ summary, matches }`.
    Context(JsonMap<String, Json>),
    /// Evaluate elements concurrently; answered with [`ResumeInput::Branches`].
    FanOut(FanOut),
    /// Ask the user; answered with [`ResumeInput::Json`], a string.
    AskUser {
        /// The text of the question.
        question: String,
    },
    /// Write a log message; answered with [`ResumeInput::Go`].
    Log {
        /// The log message.
        message: String,
    },
    /// Wait before a retry; answered with [`ResumeInput::Go`].
    Wait {
        /// Duration of the wait.
        seconds: f64,
    },
    /// Apply limits to all effects until [`EffectKind::LeaveLimits`]; answered with [`ResumeInput::Go`].
    EnterLimits {
        /// Identifies this `with-limits` among the active ones.
        id: LimitsId,
        /// The limits to apply.
        limits: RunLimits,
    },
    /// Remove the innermost limits; answered with [`ResumeInput::Go`].
    LeaveLimits {
        /// Id they were entered with.
        id: LimitsId,
    },
}

impl EffectKind {
    /// Name of the step kind in the journal.
    pub fn name(&self) -> &'static str {
        match self {
            EffectKind::Task(_) => "task",
            EffectKind::Tool(_) => "tool",
            EffectKind::Context(_) => "context",
            EffectKind::FanOut(_) => "fan_out",
            EffectKind::AskUser { .. } => "ask_user",
            EffectKind::Log { .. } => "log",
            EffectKind::Wait { .. } => "wait",
            EffectKind::EnterLimits { .. } => "enter_limits",
            EffectKind::LeaveLimits { .. } => "leave_limits",
        }
    }
}

impl EffectKind {
    /// Name of the callee, part of the step's fingerprint.
    pub fn callee(&self) -> &str {
        match self {
            EffectKind::Task(call) => call.callee(),
            EffectKind::Tool(call) => &call.name,
            other => other.name(),
        }
    }

    /// All arguments of the effect, part of the step's fingerprint.
    pub fn arguments(&self) -> Json {
        match self {
            EffectKind::Task(call) => json!({
                "form": call.form,
                "atom": match &call.target {
                    TaskTarget::Atom(atom) => json!(atom),
                    TaskTarget::Named(_) | TaskTarget::Described(_) => Json::Null,
                },
                "inputs": call.inputs,
                "settings": call.settings,
            }),
            EffectKind::Tool(call) => Json::Object(call.arguments.clone()),
            EffectKind::Context(query) => Json::Object(query.clone()),
            EffectKind::FanOut(fan_out) => json!({ "count": fan_out.len(), "limit": fan_out.limit() }),
            EffectKind::AskUser { question } => json!({ "question": question }),
            EffectKind::Log { message } => json!({ "message": message }),
            EffectKind::Wait { seconds } => json!({ "seconds": seconds }),
            EffectKind::EnterLimits { id, limits } => json!({ "id": id.0, "limits": limits }),
            EffectKind::LeaveLimits { id } => json!({ "id": id.0 }),
        }
    }
}

/// Input to [`crate::Machine::resume`]: the answer to the previous [`Yield`].
pub enum ResumeInput {
    /// Start, continue after a pause, or confirm an effect without a value.
    Go,
    /// Reply of a task or tool.
    Reply(TaskResult),
    /// Result of an effect as JSON.
    Json(Json),
    /// Values of all branches, in order.
    Branches(Vec<Value>),
    /// A branch failed; its fault is raised at the form that started the branches.
    BranchFailed(Box<RuntimeError>),
    /// The effect failed; the error is raised at its form. Also accepted after a pause.
    Failed(EffectFailure),
    /// A limit was reached. With the id of a `with-limits`, the error is raised there and only a `try` around
    /// it can catch it. With `None`, the run's own limit was reached and nothing can catch the error.
    LimitReached(Option<LimitsId>, EffectFailure),
}

/// Why an effect failed, in terms of task errors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EffectFailure {
    /// Error type: `TASK_FAILURE`, `RESOURCE_EXHAUSTION`, ….
    #[serde(rename = "type")]
    pub kind: String,
    /// Reason within the type.
    pub reason: Option<String>,
    /// One-sentence description.
    pub message: String,
    /// Underlying error, if there is one.
    pub cause: Option<Json>,
}

/// Id of an active `with-limits`, unique within its machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LimitsId(pub u64);

/// Limits set by `with-limits`; `None` leaves a limit unchanged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunLimits {
    /// Maximum turns of all tasks together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turns: Option<u64>,
    /// Maximum tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Maximum wall-clock time in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// Maximum cost in US dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usd: Option<f64>,
}

/// A task call with all arguments evaluated.
#[derive(Clone, Debug)]
pub struct TaskCall {
    /// The task to run.
    pub target: TaskTarget,
    /// Form the task was called with.
    pub form: CallForm,
    /// Inputs by parameter name.
    pub inputs: JsonMap<String, Json>,
    /// Settings of the request: `files`, `context`, `history_config`, `limits`, `model`; with `spawn`,
    /// `call-atomic-task` and `atomic-task` also `description`, `subtype` and `context_management`.
    pub settings: JsonMap<String, Json>,
}

impl TaskCall {
    /// Name of the callee for the journal and for messages.
    pub fn callee(&self) -> &str {
        match &self.target {
            TaskTarget::Named(name) => name,
            TaskTarget::Atom(atom) => &atom.name,
            TaskTarget::Described(text) => text,
        }
    }
}

/// The task a call refers to.
#[derive(Clone, Debug)]
pub enum TaskTarget {
    /// A registered template or workflow with this name.
    Named(Text),
    /// A task defined by the workflow itself.
    Atom(Arc<Atom>),
    /// The task that best matches this description, or the template with this `TYPE:SUBTYPE`.
    Described(String),
}

/// Form a task was called with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallForm {
    /// By name, or with `call`, `call-atomic-task` or `atomic-task`.
    Call,
    /// With `spawn`, as a subtask.
    Spawn,
}

/// A tool call with all arguments evaluated.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolEffect {
    /// Canonical name of the tool.
    pub name: Text,
    /// Arguments by parameter name.
    pub arguments: JsonMap<String, Json>,
}
