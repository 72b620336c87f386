//! Everything that happens, as one enum. The terminal, `--json`, the log and the journal read this one stream.
//!
//! [`Stamped`] is an event with its place in a run; [`Delta`] is the part of the stream that is never
//! journaled; `schema.rs` makes the JSON Schema from these types.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Branch, RunId};

mod schema;
mod stamped;

pub use schema::json_schema;
pub use stamped::Stamped;

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    /// A task began. Always the first event of a task.
    TaskStarted(TaskStarted),
    /// A run goes on after its process ended.
    TaskResumed {
        /// The last event that stood in the journal.
        from_seq: u64,
        /// What changed of limits and approvals, and from which steps on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        amended: Option<Value>,
    },
    /// A request is about to be sent to the model.
    TurnStart {
        /// Turns are counted from 0.
        turn_index: u32,
        /// Names the turn within its run.
        turn_id: String,
        /// Estimated tokens of the request.
        input_tokens: u64,
    },
    /// The reply and all results of its calls are there.
    TurnComplete {
        /// Turns are counted from 0.
        turn_index: u32,
        /// Names the turn within its run.
        turn_id: String,
        /// Tokens of the reply.
        output_tokens: u64,
        /// Tokens of the prompt that came from the server's cache, as it says.
        #[serde(default, skip_serializing_if = "is_zero")]
        cached_tokens: u64,
        /// Calls the reply asked for.
        tool_calls: u32,
        /// Model and tools together.
        duration_ms: u64,
    },
    /// A piece of a reply under way.
    MessageDelta {
        /// The piece.
        text: String,
    },
    /// A piece of the model's reasoning under way.
    ReasoningDelta {
        /// The piece.
        text: String,
    },
    /// A piece of a running command's output.
    ToolOutput {
        /// The call it belongs to.
        call_id: String,
        /// The piece.
        text: String,
    },
    /// A whole message.
    Message {
        /// Who speaks.
        role: Role,
        /// The whole text.
        text: String,
    },
    /// The model's reasoning, whole.
    Reasoning {
        /// The text.
        text: String,
    },
    /// The model asks for a tool.
    ToolCall {
        /// Names the call within its run.
        call_id: String,
        /// The tool.
        name: String,
        /// What it is asked: an object, or the text as it came where that is none.
        arguments: Value,
    },
    /// The answer to a call. Every call gets exactly one.
    ToolResult(ToolResult),
    /// A file of the workspace differs from before.
    FileChanged {
        /// Path within the workspace.
        path: String,
        /// What became of it.
        change: Change,
    },
    /// The conversation was shortened.
    Compaction {
        /// Milliseconds since the epoch.
        timestamp: i64,
        /// The turn it happened before.
        turn_index: u32,
        /// Occupancy before.
        tokens_before: u64,
        /// Occupancy after.
        tokens_after: u64,
        /// Messages removed or shortened.
        items_removed: u32,
    },
    /// The model opened sections of its prompt, which is shown anew.
    Expansion {
        /// The sections it asked for and that were closed, each once.
        section_keys: Vec<String>,
        /// Why, in the model's words.
        reason: String,
        /// All that is open now and was not, closed sections around those asked for included.
        opened: Vec<String>,
    },
    /// A request failed and will be made again.
    Retry {
        /// The attempt that failed, from 1.
        attempt: u32,
        /// The wait before the next.
        after_ms: u64,
        /// What failed.
        reason: String,
    },
    /// A call waits for a person.
    ApprovalRequested {
        /// The call.
        call_id: String,
        /// The tool.
        name: String,
        /// What it is asked.
        arguments: Value,
        /// Why a person is asked.
        reason: String,
    },
    /// A person, or a policy, answered.
    ApprovalResolved {
        /// The call.
        call_id: String,
        /// Whether it may run.
        approved: bool,
        /// Why, for the model.
        reason: Option<String>,
    },
    /// Something a person should know; the run goes on.
    Warning {
        /// The sort of warning, stable.
        code: String,
        /// What it is and what to do.
        message: String,
    },
    /// What a workflow writes to its log.
    Log {
        /// The line.
        message: String,
    },
    /// Something failed. The terminal event says what became of the task.
    Error {
        /// The code of the error table.
        code: ErrorCode,
        /// What happened.
        message: String,
    },
    /// A stage of a flow begins. Its work is a task of its own.
    StageStarted {
        /// The stage.
        stage: String,
        /// Its name for people.
        label: String,
        /// Which attempt at it this is, from 1.
        attempt: u32,
    },
    /// A stage of a flow is over, all its attempts included.
    StageComplete {
        /// The stage.
        stage: String,
        /// How it ended.
        status: StageStatus,
    },
    /// What the runtime knows of a stage that is over.
    FlowStageReport(FlowStageReport),
    /// The phase that a task is in.
    PhaseState {
        /// The phase.
        phase: String,
        /// Whose phase it is.
        #[serde(default)]
        source: PhaseSource,
        /// Assistant messages so far.
        turn_index: u32,
    },
    /// A task goes from one phase to another.
    PhaseTransition {
        /// The phase it was in.
        from: String,
        /// The phase it is in now.
        to: String,
        /// Whose phases they are.
        #[serde(default)]
        source: PhaseSource,
        /// Assistant messages so far.
        turn_index: u32,
        /// Why.
        reason: String,
    },
    /// The question for the phase failed. The task goes on.
    PhaseProbeError {
        /// Assistant messages so far.
        turn_index: u32,
        /// What happened.
        message: String,
    },
    /// What the runtime knows of a task that ended.
    TaskReport(TaskReport),
    /// A report that did not validate and so was not emitted.
    TaskReportInvalid {
        /// The task.
        task_id: String,
        /// Each problem.
        problems: Vec<String>,
    },
    /// A reader was too slow and these events were dropped for it.
    Gap {
        /// The first missing.
        from: u64,
        /// The last missing.
        to: u64,
    },
    /// A task ended. Always the last event of a task, and there is exactly one.
    TaskComplete(TaskComplete),
}

/// Part of the stream that is shown and forgotten.
#[derive(Clone, Debug, PartialEq)]
pub enum Delta {
    /// A piece of a reply.
    Text(String),
    /// A piece of reasoning.
    Reasoning(String),
    /// A piece of a command's output.
    Output {
        /// The call it belongs to.
        call_id: String,
        /// The piece.
        text: String,
    },
}

impl Delta {
    /// The piece.
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Text(text) | Self::Reasoning(text) | Self::Output { text, .. } => text,
        }
    }
}

impl From<Delta> for Event {
    fn from(delta: Delta) -> Self {
        match delta {
            Delta::Text(text) => Self::MessageDelta { text },
            Delta::Reasoning(text) => Self::ReasoningDelta { text },
            Delta::Output { call_id, text } => Self::ToolOutput { call_id, text },
        }
    }
}

/// See [`Event::TaskStarted`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskStarted {
    /// Who asked: the id of the request that began the task.
    pub submission_id: String,
    /// Whether it is a task or a review.
    pub turn_type: TurnType,
    /// Milliseconds since the epoch.
    pub timestamp: i64,
    /// The request.
    pub request: String,
    /// The model, as the user named it.
    pub model: String,
    /// What confines commands: `off` or the layers that hold.
    pub sandbox: String,
    /// The task that began this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// The run whose conversation this one continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continues: Option<String>,
}

/// See [`Event::ToolResult`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolResult {
    /// The call.
    pub call_id: String,
    /// Whether the tool did what was asked.
    pub ok: bool,
    /// What the model is told.
    pub content: String,
    /// Whether something was cut.
    pub truncated: bool,
    /// How long it took.
    pub duration_ms: u64,
    /// Of a command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// How it came to this result, where that is not the usual way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fate: Option<Fate>,
}

/// How a call ended otherwise than by running.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// Stopped by a cancellation.
    Aborted,
    /// Begun before a crash; its effects are not known.
    Interrupted,
    /// Not run: a gate, a guard rail or a person said no.
    Refused,
}

/// See [`Event::TaskComplete`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskComplete {
    /// As in `task_started`.
    pub submission_id: String,
    /// Assistant messages.
    pub total_turns: u32,
    /// Input and output over all model calls, as reported.
    pub total_tokens: u64,
    /// Those of them that came from a server's cache, as reported.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cached_tokens: u64,
    /// From the first step to the last.
    pub duration_ms: u64,
    /// How it ended.
    pub status: TaskStatus,
    /// The answer, or what there is of it.
    pub answer: String,
    /// What the model's tokens cost, in US dollars, where their price is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// On failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<TaskError>,
}

/// Why a task failed, in two vocabularies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("additionalProperties" = false))]
pub struct TaskError {
    /// The code.
    pub code: ErrorCode,
    /// The reason.
    pub reason: String,
    /// What happened, and what to do.
    pub message: String,
}

/// The codes of the error table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ErrorCode {
    /// The task could not begin.
    InitFailed,
    /// A turn could not be finished.
    TurnFailed,
    /// The context is full.
    TokenLimit,
    /// Too many turns.
    MaxTurns,
    /// Stopped by a person.
    Cancelled,
    /// Out of time.
    Timeout,
    /// Out of money.
    Budget,
}

/// How a task ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// With an answer.
    Completed,
    /// Without.
    Failed,
    /// By a person.
    Cancelled,
}

/// Whose phases are told of: a staged task with phase control has both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PhaseSource {
    /// The flow's own, which say what may be called.
    #[default]
    Flow,
    /// Those of phase control, which only steer.
    PhaseControl,
}

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The person, or the runtime in their place.
    User,
    /// The model.
    Assistant,
}

/// The sort of task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TurnType {
    /// A task.
    User,
    /// A review: read-only unless approved.
    Review,
}

/// What became of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// It is new.
    Created,
    /// It differs.
    Modified,
    /// It is gone.
    Deleted,
}

/// What the runtime, and not the model, says of a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskReport {
    /// The task.
    pub task_id: String,
    /// The request.
    pub description: String,
    /// How it ended.
    pub status: TaskStatus,
    /// Runs of the task, this one included.
    pub attempts: u32,
    /// Further attempts that were allowed.
    pub replan_max: u32,
    /// Files that differ, in order of path.
    pub files_changed: Vec<String>,
    /// Files really read, in order of path.
    pub files_read: Vec<String>,
    /// Steps of the plan, where there was one.
    pub plan_steps: u32,
    /// Calls, all tools.
    pub tool_calls_total: u32,
    /// Failed calls, all tools.
    pub tool_errors_total: u32,
    /// Calls by tool.
    pub tool_call_counts: BTreeMap<String, u32>,
    /// Failed calls by tool.
    pub tool_error_counts: BTreeMap<String, u32>,
    /// Replies that had to be asked for again.
    pub analysis_retries: u32,
    /// Hints and refusals given to the model, by sort.
    pub feedback_counts: BTreeMap<String, u32>,
    /// On failure, cut to 500 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What the command that verifies said last, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify: Option<Verification>,
    /// Files that the model read, where there were any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_cache: Option<ReadCache>,
}

/// How often a model read what it had read before.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReadCache {
    /// Files read, each time counted.
    pub reads: u32,
    /// Of them those that had been read before and not changed since: nothing had to be read for them.
    pub hits: u32,
    /// Hits among reads, from 0 to 1.
    pub hit_rate: f64,
}

impl ReadCache {
    /// So many hits among so many reads.
    pub fn of(reads: u32, hits: u32) -> Self {
        let share = f64::from(hits) / f64::from(reads.max(1));
        Self { reads, hits, hit_rate: (share * 1000.0).round() / 1000.0 }
    }
}

/// What a command that verifies the work said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Verification {
    /// The command.
    pub command: String,
    /// Whether it was satisfied when it ran last.
    pub passed: bool,
    /// How often it ran.
    pub runs: u32,
}

/// How a stage ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StageStatus {
    /// It did what it had to.
    Completed,
    /// It did not.
    Failed,
    /// There was nothing to do in it.
    Skipped,
}

/// See [`Event::FlowStageReport`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlowStageReport {
    /// The stage.
    pub stage: String,
    /// Its name for people.
    pub label: String,
    /// How it ended.
    pub status: StageStatus,
    /// Attempts that were made.
    pub attempts: u32,
    /// Files really read in it, in order of path.
    pub files_read: Vec<String>,
    /// Files that differ because of it, in order of path.
    pub files_changed: Vec<String>,
    /// What came of it, in few words.
    pub summary: String,
    /// What the model said of it with `flow_stage_done`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Value>,
}

/// What serde asks for what is left out.
fn is_zero(count: &u64) -> bool {
    *count == 0
}
