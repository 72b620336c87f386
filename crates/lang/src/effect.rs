//! What a workflow wants from the world, as data. A driver performs it, writes it down, and hands the answer back.
//!
//! The machine knows nothing of tasks, tools, people or clocks. Whatever it yields here, it has stopped, and its next
//! state depends on the answer alone; so a driver that keeps the answers can bring a machine to any point again.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map as JsonMap, Value as Json, json};

use crate::atom::Atom;
use crate::fault::{Fault, Place};
use crate::machine::FanOut;
use crate::result::Reply;
use crate::value::{Text, Value};

/// What [`crate::Machine::resume`] comes back with.
pub enum Yield {
    /// The workflow has this value.
    Done(Value),
    /// The workflow failed and nothing caught it.
    Fault(Box<Fault>),
    /// The workflow waits for the answer to this.
    Effect(Effect),
    /// Nothing is wanted: a slice of steps is over. Resume with [`Input::Go`], or look at the clock and raise.
    Pause,
}

/// One thing wanted, and the form that wants it.
pub struct Effect {
    /// What is wanted.
    pub kind: EffectKind,
    /// Where the form is.
    pub place: Place,
}

/// The things a workflow can want.
pub enum EffectKind {
    /// A task to be run; answered by [`Input::Reply`].
    Task(Box<TaskCall>),
    /// A tool to be called; answered by [`Input::Reply`].
    Tool(ToolCall),
    /// Context for a query; answered by [`Input::Json`] with `{ summary, matches }`.
    Context(JsonMap<String, Json>),
    /// Elements to be evaluated beside each other; answered by [`Input::Branches`].
    FanOut(FanOut),
    /// A person to be asked; answered by [`Input::Json`] with a string.
    AskUser {
        /// What to ask.
        question: String,
    },
    /// A line for the log; answered by [`Input::Go`].
    Log {
        /// The line.
        message: String,
    },
    /// Time to pass before a retry; answered by [`Input::Go`].
    Wait {
        /// How long.
        seconds: f64,
    },
    /// Limits to hold for every effect until they are left; answered by [`Input::Go`].
    EnterLimits {
        /// Names this `with-limits` among those that are entered.
        id: LimitsId,
        /// What holds.
        limits: RunLimits,
    },
    /// The innermost limits end; answered by [`Input::Go`].
    LeaveLimits {
        /// Those that were entered under this name.
        id: LimitsId,
    },
}

impl EffectKind {
    /// Name of the kind of step, for the journal.
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
    /// What is called, for the fingerprint of the step.
    pub fn callee(&self) -> &str {
        match self {
            EffectKind::Task(call) => call.callee(),
            EffectKind::Tool(call) => &call.name,
            other => other.name(),
        }
    }

    /// Everything that is handed over, for the fingerprint of the step.
    pub fn arguments(&self) -> Json {
        match self {
            EffectKind::Task(call) => json!({
                "form": call.form,
                "atom": match &call.target {
                    Target::Atom(atom) => json!(atom),
                    Target::Named(_) | Target::Described(_) => Json::Null,
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

/// The answer to a [`Yield`].
pub enum Input {
    /// Start; go on after a pause; done, where no value is expected.
    Go,
    /// What a task or tool answered.
    Reply(Reply),
    /// A value.
    Json(Json),
    /// The values of all branches, in order.
    Branches(Vec<Value>),
    /// A branch failed: its fault is raised where the branches were started.
    BranchFailed(Box<Fault>),
    /// The effect could not be had: this is raised at its form. Also after a pause.
    Failed(Failure),
    /// A limit ended the evaluation. Of a `with-limits`: raised there, and only a `try` around it catches. Of the run
    /// as a whole (`None`): nothing catches.
    LimitReached(Option<LimitsId>, Failure),
}

/// Why an effect could not be had, in the vocabulary of task errors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    /// The type: `TASK_FAILURE`, `RESOURCE_EXHAUSTION`, ….
    #[serde(rename = "type")]
    pub kind: String,
    /// The reason within the type.
    pub reason: Option<String>,
    /// One sentence.
    pub message: String,
    /// The failure below, if there is one.
    pub cause: Option<Json>,
}

/// Names one entered `with-limits`; unique within its machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LimitsId(pub u64);

/// What `with-limits` sets; what is `None` is not changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunLimits {
    /// Most turns of all tasks together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turns: Option<u64>,
    /// Most tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Most seconds of wall time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// Most money.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usd: Option<f64>,
}

/// A call of a task with everything evaluated.
#[derive(Clone, Debug)]
pub struct TaskCall {
    /// Which task.
    pub target: Target,
    /// How it was called.
    pub form: CallForm,
    /// The inputs by name.
    pub inputs: JsonMap<String, Json>,
    /// The request's own settings: `files`, `context`, `history_config`, `limits`, `model`, and with `spawn`,
    /// `call-atomic-task` and `atomic-task` also `description`, `subtype` and `context_management`.
    pub settings: JsonMap<String, Json>,
}

impl TaskCall {
    /// Name of what is called, for the journal and for messages.
    pub fn callee(&self) -> &str {
        match &self.target {
            Target::Named(name) => name,
            Target::Atom(atom) => &atom.name,
            Target::Described(text) => text,
        }
    }
}

/// Which task a call means.
#[derive(Clone, Debug)]
pub enum Target {
    /// A registered template or workflow of this name.
    Named(Text),
    /// A task the workflow defines itself.
    Atom(Arc<Atom>),
    /// Whatever fits these words best.
    Described(String),
}

/// How a task was called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallForm {
    /// By its name, or with `call`, `call-atomic-task`, `atomic-task`.
    Call,
    /// With `spawn`: as a subtask.
    Spawn,
}

/// A call of a tool with everything evaluated.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall {
    /// The tool's own name.
    pub name: Text,
    /// The arguments by name.
    pub arguments: JsonMap<String, Json>,
}
