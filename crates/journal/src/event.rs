//! The event type. The terminal, `--json`, the log and the journal all consume the same stream of events.
//!
//! [`EventRecord`] adds an event's envelope; [`EventDelta`] is the part of the stream that is never journaled;
//! `schema.rs` generates the JSON Schema from these types.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Branch, RunId};

mod flow;
mod hook;
mod network;
mod record;
mod schema;

pub use flow::{FilesLocated, FlowStageReport, LocatedFile, Sample};
pub use hook::{HookDecision, HookRun};
pub use network::{NetworkAccess, NetworkVerdict};
pub use record::EventRecord;
pub use schema::json_schema;

/// An event of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    /// A task started. Always the first event of a task.
    TaskStarted(TaskStarted),
    /// A run continues after its process ended.
    TaskResumed {
        /// Number of the last event in the journal.
        from_seq: u64,
        /// Changes to limits and approvals, with the steps from which they apply.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        amended: Option<Value>,
    },
    /// The run starts from a turn of another run.
    Rewound {
        /// Id of the run that it starts from.
        from_run: String,
        /// Number of completed turns that are taken over.
        turn: u32,
        /// Whether the files were restored to that turn.
        files: bool,
        /// Whether the conversation ends at that turn.
        conversation: bool,
    },
    /// A request is about to be sent to the model.
    TurnStart {
        /// Index of the turn, from 0.
        turn_index: u32,
        /// Id of the turn, unique within its run.
        turn_id: String,
        /// Estimated number of tokens in the request.
        input_tokens: u64,
        /// Maximum number of turns of the task.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_turns: Option<u32>,
        /// Maximum number of tokens in a request: the limit of the task, or the model's context size if that is
        /// smaller.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_input_tokens: Option<u64>,
    },
    /// The reply and the results of all its tool calls have arrived.
    TurnComplete {
        /// Index of the turn, from 0.
        turn_index: u32,
        /// Id of the turn, unique within its run.
        turn_id: String,
        /// Tokens in the reply.
        output_tokens: u64,
        /// Prompt tokens served from the provider's cache, as reported by it.
        #[serde(default, skip_serializing_if = "is_zero")]
        cached_tokens: u64,
        /// Number of tool calls in the reply.
        tool_calls: u32,
        /// Duration of the model request and the tool calls, in milliseconds.
        duration_ms: u64,
        /// Time from the request to the first piece of the reply, in milliseconds, if it was measured.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        wait_ms: Option<u64>,
    },
    /// A fragment of a streamed reply.
    MessageDelta {
        /// Text of the fragment.
        text: String,
    },
    /// A fragment of streamed reasoning.
    ReasoningDelta {
        /// Text of the fragment.
        text: String,
    },
    /// New output of a running command: what arrived since the call's previous event of this type.
    ToolOutput {
        /// Id of the tool call.
        call_id: String,
        /// The new text, to be appended to what came before. A carriage return at its start replaces the line
        /// that was being written. Of fast output only the newest 16 KiB per event are sent; the result has the rest.
        text: String,
    },
    /// A complete message.
    Message {
        /// Author of the message.
        role: Role,
        /// Complete text of the message.
        text: String,
    },
    /// The model's complete reasoning.
    Reasoning {
        /// Complete text of the reasoning.
        text: String,
    },
    /// The model calls a tool.
    ToolCall {
        /// Id of the call, unique within its run.
        call_id: String,
        /// Name of the tool.
        name: String,
        /// Arguments: an object, or the raw text if the model did not produce one.
        arguments: Value,
    },
    /// The result of a tool call. Every call gets exactly one.
    ToolResult(ToolResult),
    /// A file in the workspace changed.
    FileChanged {
        /// Path relative to the workspace.
        path: String,
        /// Kind of change.
        change: ChangeKind,
    },
    /// The conversation was compacted.
    Compaction {
        /// Milliseconds since the Unix epoch.
        timestamp: i64,
        /// Turn before which it happened.
        turn_index: u32,
        /// Context usage before, in tokens.
        tokens_before: u64,
        /// Context usage after, in tokens.
        tokens_after: u64,
        /// Number of messages removed or shortened.
        items_removed: u32,
    },
    /// The model expanded sections of its prompt, which is then sent again.
    Expansion {
        /// Collapsed sections that the model requested, without duplicates.
        section_keys: Vec<String>,
        /// Reason given by the model.
        reason: String,
        /// All sections that are newly open, including collapsed parents of the requested ones.
        opened: Vec<String>,
    },
    /// A request failed and will be retried.
    Retry {
        /// Number of the failed attempt, from 1.
        attempt: u32,
        /// Delay before the next attempt, in milliseconds.
        after_ms: u64,
        /// Cause of the failure.
        reason: String,
    },
    /// A tool call waits for approval.
    ApprovalRequested {
        /// Id of the tool call.
        call_id: String,
        /// Name of the tool.
        name: String,
        /// Arguments of the call.
        arguments: Value,
        /// Why approval is required.
        reason: String,
    },
    /// The user or a policy decided on an approval request.
    ApprovalResolved {
        /// Id of the tool call.
        call_id: String,
        /// Whether the call may run.
        approved: bool,
        /// Reason given to the model.
        reason: Option<String>,
    },
    /// A problem the user should know about; the run continues.
    Warning {
        /// Stable code of the warning.
        code: String,
        /// Description of the problem and what to do about it.
        message: String,
    },
    /// A line written to the log by a workflow.
    Log {
        /// Text of the line.
        message: String,
    },
    /// An error. The task's last event says how the task ended.
    Error {
        /// Code from the error table.
        code: ErrorCode,
        /// Description of the error.
        message: String,
    },
    /// A hook of the user or of a trusted project ran.
    Hook(HookRun),
    /// A command asked Fusee's proxy for a connection.
    Network(NetworkAccess),
    /// The runtime chose the flow of the run. Not emitted if it is `flat`.
    FlowChosen {
        /// Name of the flow.
        flow: String,
        /// Why this flow was chosen.
        reason: String,
    },
    /// The runtime located the files of a request that names none.
    FilesLocated(FilesLocated),
    /// One of several answers to the same request was judged.
    Sample(Sample),
    /// A stage of a flow starts. The stage runs as a separate task.
    StageStarted {
        /// Name of the stage.
        stage: String,
        /// Display name of the stage.
        label: String,
        /// Number of the attempt, from 1.
        attempt: u32,
    },
    /// A stage of a flow ended, after all its attempts.
    StageComplete {
        /// Name of the stage.
        stage: String,
        /// Outcome of the stage.
        status: StageStatus,
    },
    /// The runtime's report on a finished stage.
    FlowStageReport(FlowStageReport),
    /// The current phase of a task.
    PhaseState {
        /// Name of the phase.
        phase: String,
        /// Where the phase comes from.
        #[serde(default)]
        source: PhaseSource,
        /// Number of assistant messages so far.
        turn_index: u32,
    },
    /// A task changed its phase.
    PhaseTransition {
        /// Previous phase.
        from: String,
        /// Phase the task is in now.
        to: String,
        /// Where the phases come from.
        #[serde(default)]
        source: PhaseSource,
        /// Number of assistant messages so far.
        turn_index: u32,
        /// Reason for the change.
        reason: String,
    },
    /// The model request that determines the phase failed. The task continues.
    PhaseProbeError {
        /// Number of assistant messages so far.
        turn_index: u32,
        /// Description of the error.
        message: String,
    },
    /// The runtime's report on an ended task.
    TaskReport(TaskReport),
    /// A task report failed validation and was not emitted.
    TaskReportInvalid {
        /// Branch of the task, as in the field `task` of every event.
        task_id: String,
        /// Validation problems.
        problems: Vec<String>,
    },
    /// Events that were dropped because the reader was too slow.
    Gap {
        /// Number of the first missing event.
        from: u64,
        /// Number of the last missing event.
        to: u64,
    },
    /// A task ended. Always the last event of a task; there is exactly one.
    TaskComplete(TaskComplete),
}

/// A streamed fragment, which is published but never journaled.
#[derive(Clone, Debug, PartialEq)]
pub enum EventDelta {
    /// A fragment of a reply.
    Text(String),
    /// A fragment of reasoning.
    Reasoning(String),
    /// A fragment of a command's output.
    Output {
        /// Id of the tool call.
        call_id: String,
        /// Text of the fragment.
        text: String,
    },
}

impl EventDelta {
    /// Text of the fragment.
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Text(text) | Self::Reasoning(text) | Self::Output { text, .. } => text,
        }
    }
}

impl Event {
    /// Whether this is a fragment of something, which is shown live and not recorded.
    #[must_use]
    pub fn is_delta(&self) -> bool {
        matches!(self, Self::MessageDelta { .. } | Self::ReasoningDelta { .. } | Self::ToolOutput { .. })
    }
}

impl From<EventDelta> for Event {
    fn from(delta: EventDelta) -> Self {
        match delta {
            EventDelta::Text(text) => Self::MessageDelta { text },
            EventDelta::Reasoning(text) => Self::ReasoningDelta { text },
            EventDelta::Output { call_id, text } => Self::ToolOutput { call_id, text },
        }
    }
}

/// Payload of [`Event::TaskStarted`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskStarted {
    /// Id of the request that started the task.
    pub submission_id: String,
    /// Whether this is a task or a review.
    pub turn_type: TurnType,
    /// Milliseconds since the Unix epoch.
    pub timestamp: i64,
    /// Text of the request.
    pub request: String,
    /// Model as named by the user.
    pub model: String,
    /// Sandbox for commands: `off`, or the active layers.
    pub sandbox: String,
    /// Parent task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// Run whose conversation this one continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continues: Option<String>,
}

/// Payload of [`Event::ToolResult`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolResult {
    /// Id of the tool call.
    pub call_id: String,
    /// Whether the tool succeeded.
    pub ok: bool,
    /// Result text sent to the model.
    pub content: String,
    /// Whether the content was truncated.
    pub truncated: bool,
    /// Duration in milliseconds.
    pub duration_ms: u64,
    /// Exit code, for commands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Why the call did not run to completion; absent if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fate: Option<CallFate>,
}

/// Why a tool call did not run to completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CallFate {
    /// Stopped by a cancellation.
    Aborted,
    /// Started before a crash; its effects are unknown.
    Interrupted,
    /// Not run: denied by a gate, a guard rail or the user.
    Refused,
}

/// Payload of [`Event::TaskComplete`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskComplete {
    /// Same as in `task_started`.
    pub submission_id: String,
    /// Number of assistant messages.
    pub total_turns: u32,
    /// Input and output tokens of all model requests, as reported; by our own count if no usage was reported.
    pub total_tokens: u64,
    /// Part of `total_tokens` served from the provider's cache, as reported.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cached_tokens: u64,
    /// Time from the first step to the last, in milliseconds.
    pub duration_ms: u64,
    /// Outcome of the task.
    pub status: TaskStatus,
    /// The answer, possibly partial.
    pub answer: String,
    /// Cost of the model's tokens in US dollars, if their price is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Error, if the task failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorDetail>,
}

/// Why a task failed, as a code and as a more specific reason.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "TaskError", extend("additionalProperties" = false))]
pub struct ErrorDetail {
    /// Code from the error table.
    pub code: ErrorCode,
    /// Specific reason, such as `configuration_error`.
    pub reason: String,
    /// Description of the failure and what to do about it.
    pub message: String,
}

/// Codes of the error table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ErrorCode {
    /// The task could not start.
    InitFailed,
    /// A turn could not be completed.
    TurnFailed,
    /// The context window is full.
    TokenLimit,
    /// The turn limit was reached.
    MaxTurns,
    /// Cancelled by the user.
    Cancelled,
    /// The time limit was reached.
    Timeout,
    /// The cost budget is exhausted.
    Budget,
}

/// Outcome of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// Ended with an answer.
    Completed,
    /// Ended without an answer.
    Failed,
    /// Cancelled by the user.
    Cancelled,
}

/// Where a phase comes from. A staged task with phase control has phases of both sources.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PhaseSource {
    /// The flow: the phase determines which tools may be called.
    #[default]
    Flow,
    /// Phase control: the phase only guides the model.
    PhaseControl,
}

/// Author of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The user, or the runtime on the user's behalf.
    User,
    /// The language model.
    Assistant,
}

/// Kind of task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TurnType {
    /// A regular task.
    User,
    /// A review: read-only unless approved.
    Review,
}

/// Kind of change to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// The file is new.
    Created,
    /// The content differs.
    Modified,
    /// The file was removed.
    Deleted,
}

/// Report on a task, written by the runtime and not by the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskReport {
    /// Branch of the task, as in the field `task` of every event.
    pub task_id: String,
    /// Text of the request.
    pub description: String,
    /// Outcome of the task.
    pub status: TaskStatus,
    /// Number of attempts, including this one.
    pub attempts: u32,
    /// Number of additional attempts that were allowed.
    pub replan_max: u32,
    /// Files that changed, sorted by path.
    pub files_changed: Vec<String>,
    /// Those of `files_changed` that tools run by convention (Makefile, package.json, `.envrc`, editor tasks,
    /// hooks, CI files), so that they run with the user's rights later. Deleted files are not listed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files_run_by_convention: Vec<String>,
    /// Files that were actually read, sorted by path.
    pub files_read: Vec<String>,
    /// Number of steps in the plan, 0 without a plan.
    pub plan_steps: u32,
    /// Number of tool calls, all tools.
    pub tool_calls_total: u32,
    /// Number of failed tool calls, all tools.
    pub tool_errors_total: u32,
    /// Number of calls per tool.
    pub tool_call_counts: BTreeMap<String, u32>,
    /// Number of failed calls per tool.
    pub tool_error_counts: BTreeMap<String, u32>,
    /// Number of replies that had to be requested again.
    pub analysis_retries: u32,
    /// Number of hints and refusals sent to the model, by kind.
    pub feedback_counts: BTreeMap<String, u32>,
    /// Error message of a failed task, truncated to 500 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Last result of the verification command, if one is configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify: Option<Verification>,
    /// Whether the result is verified: true if the verification command passed last, false if it did not, or if files
    /// changed and there is no such command. Absent if there was nothing to verify.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified: Option<bool>,
    /// Read statistics, if the model read any files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_cache: Option<ReadCache>,
}

/// How often the model read a file it had already read.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReadCache {
    /// Number of file reads.
    pub reads: u32,
    /// Reads of files already read and unchanged since, for which nothing had to be read again.
    pub hits: u32,
    /// Ratio of hits to reads, from 0 to 1.
    pub hit_rate: f64,
}

impl ReadCache {
    /// Computes the hit rate, rounded to three decimals.
    pub fn new(reads: u32, hits: u32) -> Self {
        let share = f64::from(hits) / f64::from(reads.max(1));
        Self { reads, hits, hit_rate: (share * 1000.0).round() / 1000.0 }
    }
}

/// Result of the verification command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Verification {
    /// The command line.
    pub command: String,
    /// Whether its last run passed.
    pub passed: bool,
    /// Number of runs.
    pub runs: u32,
}

/// Outcome of a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StageStatus {
    /// The stage achieved its goal.
    Completed,
    /// The stage did not achieve its goal.
    Failed,
    /// There was nothing to do.
    Skipped,
}

/// Predicate for `skip_serializing_if`.
fn is_zero(count: &u64) -> bool {
    *count == 0
}
