//! Summary of the events of a run: its timeline, its open questions and its totals. Built event by event, so that a
//! growing run is never read twice; its size is bounded.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use fusee::engine::journal::event::{ErrorDetail, HookDecision, NetworkVerdict, TaskStatus};
use fusee::journal::{Branch, Event, EventRecord};
use fusee::model::{Price, Usage};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::question::OpenQuestion;
use crate::span::{Span, SpanKind, SpanList};

/// Maximum number of lanes; the tasks beyond it share the last one.
const MAX_LANES: usize = 200;

/// Maximum number of changed files that are listed.
const MAX_FILES: usize = 1_000;

/// Maximum number of characters of a label.
const LABEL: usize = 80;

/// The outline of a run.
#[derive(Default)]
pub(crate) struct Outline {
    /// Number of the last event that was added.
    pub(crate) seen: u64,
    pub(crate) questions: Vec<OpenQuestion>,
    pub(crate) totals: Totals,
    pub(crate) start: Option<RunStart>,
    pub(crate) end: Option<RunEnd>,
    /// Origin that was recorded before the start.
    rewound: Option<RunOrigin>,
    started_ms: i64,
    last_ms: i64,
    lanes: Vec<Lane>,
    lane_of: HashMap<Branch, usize>,
    spans: SpanList,
    calls: HashMap<String, OpenCall>,
    turns: HashMap<Branch, (u64, i64, u32)>,
    /// How long the newest reply of each task took, in milliseconds.
    replies: HashMap<Branch, i64>,
    /// Tokens of the newest request of each task.
    inputs: HashMap<Branch, u64>,
    /// Prices of the run's model, for the cost before the run has ended.
    price: Option<Price>,
    stages: HashMap<(Branch, String), (u64, i64)>,
}

/// How a run began.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct RunStart {
    /// Text of the request.
    pub(crate) request: String,
    /// Model as named by the user.
    pub(crate) model: String,
    /// What confines commands: `off`, or the active layers.
    pub(crate) sandbox: String,
    /// Run whose conversation this one continues.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) continues: Option<String>,
    /// Run whose beginning this one shares, up to a turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rewound: Option<RunOrigin>,
}

/// Where a rewound or forked run comes from.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct RunOrigin {
    /// Id of the run.
    pub(crate) run: String,
    /// Number of its turns that are shared.
    pub(crate) turn: u32,
}

/// Final status of a run, as its last event states it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct RunEnd {
    /// Outcome of the main task: `completed`, `failed` or `cancelled`.
    pub(crate) status: String,
    /// The answer, possibly partial.
    pub(crate) answer: String,
    /// Code and message of the error, if the task failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
}

/// Counts of a run.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub(crate) struct Totals {
    /// Model replies.
    pub(crate) turns: u32,
    /// Tokens of all requests and replies; estimated until the run has ended.
    pub(crate) tokens: u64,
    /// Part of them that came from the provider's cache.
    pub(crate) cached_tokens: u64,
    /// Cost in US dollars, if prices are known; estimated until the run has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cost_usd: Option<f64>,
    /// Tokens in the newest request of the main task.
    pub(crate) context_tokens: u64,
    /// Maximum number of tokens in a request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) context_limit: Option<u64>,
    /// Time from a request to its reply, in milliseconds, over all tasks.
    pub(crate) model_ms: u64,
    /// Part of it in which the reply arrived, if that was measured.
    pub(crate) output_ms: u64,
    /// Time of tool calls in milliseconds.
    pub(crate) tool_ms: u64,
    /// Time of waiting for the user in milliseconds.
    pub(crate) user_ms: u64,
    /// Delays before repeated requests, in milliseconds.
    pub(crate) retry_ms: u64,
    /// Requests that were repeated.
    pub(crate) retries: u32,
    /// How often the conversation was shortened.
    pub(crate) compactions: u32,
    /// Calls by tool.
    pub(crate) tools: BTreeMap<String, ToolTotals>,
    /// Files that changed, at most 1000.
    pub(crate) files: BTreeSet<String>,
}

/// Counts of one tool.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub(crate) struct ToolTotals {
    /// Tool calls that the turn requested.
    pub(crate) calls: u32,
    /// Calls that failed.
    pub(crate) errors: u32,
    /// Time in milliseconds.
    pub(crate) ms: u64,
}

/// One task on a timeline.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub(crate) struct Lane {
    /// Path of the task, such as `main/2`.
    task: String,
    /// Request of the task, shortened.
    label: String,
    /// Start, in milliseconds since the run started.
    start: i64,
    /// End, in milliseconds since the run started.
    #[serde(skip_serializing_if = "Option::is_none")]
    end: Option<i64>,
    /// Outcome, once the task has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<String>,
    /// Answer, shortened.
    #[serde(skip_serializing_if = "String::is_empty")]
    answer: String,
    /// Tokens of its requests and replies, once it has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens: Option<u64>,
    /// Cost in US dollars, once it has ended and if prices are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    cost_usd: Option<f64>,
}

/// The timeline of a run.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Timeline {
    /// Start of the run in milliseconds since the Unix epoch.
    pub(crate) started_ms: i64,
    /// Time from the start to the newest event, in milliseconds.
    pub(crate) length_ms: i64,
    /// Number of the newest event that is included.
    pub(crate) seq: u64,
    /// One lane per task.
    pub(crate) lanes: Vec<Lane>,
    /// At most 2000 spans.
    pub(crate) spans: Vec<Span>,
}

struct OpenCall {
    name: String,
    label: String,
    seq: u64,
    at_ms: i64,
    lane: usize,
}

impl Outline {
    /// The outline of a run whose model has these prices.
    pub(crate) fn new(price: Option<Price>) -> Self {
        Self { price, ..Self::default() }
    }

    /// Adds the next event.
    pub(crate) fn add(&mut self, record: &EventRecord) {
        if self.lanes.is_empty() {
            self.started_ms = record.ts_ms;
        }
        self.seen = record.seq;
        self.last_ms = self.last_ms.max(record.ts_ms);
        let lane = self.lane(record);
        self.reply_arrived(record, lane);
        let at = record.ts_ms;
        match &record.event {
            Event::TaskStarted(started) => {
                if let Some(lane) = self.lanes.get_mut(lane).filter(|lane| lane.label.is_empty()) {
                    lane.label = short(&started.request);
                }
                if record.task == Branch::main() {
                    self.start = Some(RunStart {
                        request: started.request.clone(),
                        model: started.model.clone(),
                        sandbox: started.sandbox.clone(),
                        continues: started.continues.clone(),
                        rewound: self.rewound.take(),
                    });
                }
            }
            Event::Rewound { from_run, turn, .. } => {
                let origin = RunOrigin { run: from_run.clone(), turn: *turn };
                match &mut self.start {
                    Some(start) => start.rewound = Some(origin),
                    None => self.rewound = Some(origin),
                }
            }
            Event::Hook(hook) => {
                let took = i64::try_from(hook.duration_ms).unwrap_or(i64::MAX);
                let label = short(&format!("hook {}: {}", hook.event, hook.command));
                let failed = !matches!(hook.decision, HookDecision::None | HookDecision::Allow);
                self.span(lane, SpanKind::Hook, (at.saturating_sub(took), at), record.seq, label, failed);
            }
            Event::Network(access) => {
                let label = format!("{}:{} {}", access.host, access.port, access.verdict.as_str());
                let failed = access.verdict != NetworkVerdict::Allowed;
                self.span(lane, SpanKind::Network, (at, at), record.seq, short(&label), failed);
            }
            // A question of the process that ended is asked again, with the same id.
            Event::TaskResumed { .. } => {
                self.turns.clear();
                self.calls.clear();
                self.end = None;
            }
            Event::TurnStart { turn_index, input_tokens, max_input_tokens, .. } => {
                self.turns.insert(record.task.clone(), (record.seq, at, *turn_index));
                self.inputs.insert(record.task.clone(), *input_tokens);
                self.totals.tokens += input_tokens;
                if record.task == Branch::main() {
                    self.totals.context_tokens = *input_tokens;
                    self.totals.context_limit = *max_input_tokens;
                }
            }
            Event::TurnComplete { output_tokens, cached_tokens, wait_ms, .. } => {
                if let Some(wait) = wait_ms.and_then(|wait| i64::try_from(wait).ok()) {
                    self.spans.divide(lane, wait);
                    let output = self.replies.remove(&record.task).unwrap_or_default() - wait;
                    self.totals.output_ms += u64::try_from(output).unwrap_or_default();
                }
                self.totals.turns += 1;
                self.totals.tokens += output_tokens;
                self.totals.cached_tokens += cached_tokens;
                if let Some(price) = &self.price {
                    let usage = Usage {
                        input_tokens: self.inputs.remove(&record.task).unwrap_or_default(),
                        output_tokens: *output_tokens,
                        cached_tokens: *cached_tokens,
                        ..Usage::default()
                    };
                    *self.totals.cost_usd.get_or_insert(0.0) += price.cost_usd(&usage);
                }
            }
            Event::ToolCall { call_id, name, arguments } => {
                let label = format!("{name} {}", key_argument(arguments));
                let (name, label) = (name.clone(), short(&label));
                self.calls
                    .insert(call_id.clone(), OpenCall { name, label, seq: record.seq, at_ms: at, lane });
            }
            Event::ToolResult(result) => {
                let call = self.calls.remove(&result.call_id);
                let (name, label, seq) =
                    call.map_or_else(Default::default, |call| (call.name, call.label, call.seq));
                let took = i64::try_from(result.duration_ms).unwrap_or(i64::MAX);
                let tool = self.totals.tools.entry(name).or_default();
                tool.calls += 1;
                tool.errors += u32::from(!result.ok);
                tool.ms += result.duration_ms;
                self.totals.tool_ms += result.duration_ms;
                let seq = if seq == 0 { record.seq } else { seq };
                self.span(lane, SpanKind::Tool, (at.saturating_sub(took), at), seq, label, !result.ok);
            }
            Event::FileChanged { path, .. } if self.totals.files.len() < MAX_FILES => {
                self.totals.files.insert(path.clone());
            }
            Event::Compaction { tokens_before, tokens_after, .. } => {
                self.totals.compactions += 1;
                let label = format!("compaction: {tokens_before} to {tokens_after} tokens");
                self.span(lane, SpanKind::Compaction, (at, at), record.seq, label, false);
            }
            Event::Retry { after_ms, reason, .. } => {
                self.totals.retries += 1;
                self.totals.retry_ms += after_ms;
                let end = at.saturating_add(i64::try_from(*after_ms).unwrap_or_default());
                self.span(lane, SpanKind::Retry, (at, end), record.seq, short(reason), true);
                // The next attempt of the turn starts then.
                if let Some(turn) = self.turns.get_mut(&record.task) {
                    turn.1 = end;
                }
            }
            Event::ApprovalRequested { call_id, name, arguments, reason } => {
                self.questions.retain(|question| question.id != *call_id);
                self.questions.push(OpenQuestion {
                    task: record.task.clone(),
                    id: call_id.clone(),
                    tool: name.clone(),
                    arguments: arguments.clone(),
                    reason: reason.clone(),
                    asked_ms: at,
                    seq: record.seq,
                });
            }
            Event::ApprovalResolved { call_id, approved, .. } => {
                if let Some(n) = self.questions.iter().position(|question| question.id == *call_id) {
                    let asked = self.questions.remove(n);
                    self.totals.user_ms += u64::try_from(at - asked.asked_ms).unwrap_or_default();
                    let label = format!("{} waited for you", asked.tool);
                    self.span(lane, SpanKind::User, (asked.asked_ms, at), asked.seq, label, !approved);
                }
            }
            Event::StageStarted { stage, attempt, .. } => {
                let key = (record.task.clone(), stage.clone());
                if *attempt <= 1 || !self.stages.contains_key(&key) {
                    self.stages.insert(key, (record.seq, at));
                }
            }
            Event::StageComplete { stage, status } => {
                if let Some((seq, from)) = self.stages.remove(&(record.task.clone(), stage.clone())) {
                    let failed = *status == fusee::engine::journal::event::StageStatus::Failed;
                    self.span(lane, SpanKind::Stage, (from, at), seq, stage.clone(), failed);
                }
            }
            Event::TaskComplete(complete) => {
                let status = status_word(complete.status).to_owned();
                let end = at - self.started_ms;
                if let Some(lane) = self.lanes.get_mut(lane) {
                    lane.end = Some(end);
                    lane.status = Some(status.clone());
                    lane.answer = short(complete.answer.trim_start());
                    (lane.tokens, lane.cost_usd) = (Some(complete.total_tokens), complete.cost_usd);
                }
                if record.task == Branch::main() {
                    self.totals.tokens = complete.total_tokens;
                    self.totals.cached_tokens = complete.cached_tokens;
                    self.totals.cost_usd = complete.cost_usd;
                    self.questions.clear();
                    let error = |error: &ErrorDetail| {
                        let code = serde_json::to_value(error.code).unwrap_or_default();
                        format!("{}: {}", code.as_str().unwrap_or_default(), error.message)
                    };
                    let error = complete.error.as_ref().map(error);
                    self.end = Some(RunEnd { status, answer: complete.answer.clone(), error });
                }
            }
            _ => {}
        }
    }

    /// The timeline so far. Open spans end now, or with the newest event if the run is not active.
    pub(crate) fn timeline(&self, now_ms: Option<i64>) -> Timeline {
        let mut spans = self.spans.all().to_vec();
        let now = now_ms.unwrap_or(self.last_ms).max(self.last_ms) - self.started_ms;
        let mut going_on = |lane: usize, kind, start: i64, seq, label| {
            let start = start - self.started_ms;
            spans.push(Span { lane, kind, start, end: now.max(start), seq, label, failed: false, count: 1 });
        };
        let lane = |task: &Branch| self.lane_of.get(task).copied().unwrap_or_default();
        if self.end.is_none() {
            for (task, (seq, at, turn)) in &self.turns {
                going_on(lane(task), SpanKind::Model, *at, *seq, format!("turn {}", turn + 1));
            }
            // A call that waits for approval does not run yet.
            let waits = |id: &String| self.questions.iter().any(|question| question.id == *id);
            for (_, call) in self.calls.iter().filter(|(id, _)| !waits(id)) {
                going_on(call.lane, SpanKind::Tool, call.at_ms, call.seq, call.label.clone());
            }
            for question in &self.questions {
                let label = format!("{} waits for you", question.tool);
                going_on(lane(&question.task), SpanKind::User, question.asked_ms, question.seq, label);
            }
        }
        for ((task, stage), (seq, at)) in &self.stages {
            going_on(lane(task), SpanKind::Stage, *at, *seq, stage.clone());
        }
        Timeline {
            started_ms: self.started_ms,
            length_ms: now,
            seq: self.seen,
            lanes: self.lanes.clone(),
            spans,
        }
    }

    /// The first event of a turn after its request shows that the reply has arrived.
    fn reply_arrived(&mut self, record: &EventRecord, lane: usize) {
        let ends = matches!(
            record.event,
            Event::Message { .. }
                | Event::Reasoning { .. }
                | Event::ToolCall { .. }
                | Event::TurnComplete { .. }
                | Event::TaskComplete(_)
                | Event::Error { .. }
        );
        if !ends {
            return;
        }
        if let Some((seq, at, turn)) = self.turns.remove(&record.task) {
            let took = record.ts_ms - at;
            self.totals.model_ms += u64::try_from(took).unwrap_or_default();
            self.replies.insert(record.task.clone(), took);
            let failed = matches!(record.event, Event::Error { .. });
            let label = format!("turn {}", turn + 1);
            self.span(lane, SpanKind::Model, (at, record.ts_ms), seq, label, failed);
        }
    }

    fn lane(&mut self, record: &EventRecord) -> usize {
        if let Some(lane) = self.lane_of.get(&record.task) {
            return *lane;
        }
        let lane = self.lanes.len().min(MAX_LANES - 1);
        if lane == self.lanes.len() {
            let (task, start) = (record.task.to_string(), record.ts_ms - self.started_ms);
            self.lanes.push(Lane { task, start, ..Lane::default() });
        }
        if self.lane_of.len() < MAX_LANES * 10 {
            self.lane_of.insert(record.task.clone(), lane);
        }
        lane
    }

    fn span(&mut self, lane: usize, kind: SpanKind, time: (i64, i64), seq: u64, label: String, failed: bool) {
        let (start, end) = (time.0 - self.started_ms, time.1 - self.started_ms);
        let (start, end) = (start.max(0), end.max(start).max(0));
        self.spans.push(Span { lane, kind, start, end, seq, label, failed, count: 1 });
    }
}

fn status_word(status: TaskStatus) -> &'static str {
    match status {
        TaskStatus::Completed => "completed",
        TaskStatus::Failed => "failed",
        TaskStatus::Cancelled => "cancelled",
    }
}

/// The argument that says most about a call.
pub(crate) fn key_argument(arguments: &Value) -> String {
    const KEY_ARGUMENTS: [&str; 8] =
        ["command", "path", "pattern", "query", "question", "name", "url", "summary"];
    let telling = KEY_ARGUMENTS.iter().find_map(|key| arguments.get(key)?.as_str());
    telling.map_or_else(|| arguments.to_string(), str::to_owned)
}

fn short(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    match line.char_indices().nth(LABEL) {
        Some((at, _)) => format!("{}…", line.get(..at).unwrap_or_default()),
        None => line.to_owned(),
    }
}
