//! Trajectories in Harbor's Agent Trajectory Interchange Format, ATIF-v1.8, from the events of runs.
//!
//! A step is a request to the agent or one reply of the model with its tool calls and their results. Stages and
//! subtasks appear in the order of their events, with their task in `extra`.

use std::collections::{BTreeMap, HashMap};

use fusee::engine::journal::event::Role;
use fusee::engine::journal::{EventRecord, Journal, JournalError, RunId};
use fusee::{Event, TaskComplete};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::usage::for_each_event;

/// Version of the format.
const SCHEMA: &str = "ATIF-v1.8";

/// One trial as an ATIF-v1.8 document.
#[derive(Debug, Serialize)]
pub struct Trajectory {
    schema_version: &'static str,
    session_id: String,
    agent: Agent,
    steps: Vec<Step>,
    final_metrics: FinalMetrics,
    #[serde(skip_serializing_if = "Map::is_empty")]
    extra: Map<String, Value>,
}

#[derive(Debug, Serialize)]
struct Agent {
    name: &'static str,
    version: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    model_name: Option<String>,
}

#[derive(Debug, Default, Serialize)]
struct Step {
    step_id: usize,
    timestamp: String,
    source: Source,
    #[serde(skip_serializing_if = "Option::is_none")]
    model_name: Option<String>,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    observation: Option<Observation>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metrics: Option<Metrics>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    extra: Map<String, Value>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Source {
    #[default]
    System,
    User,
    Agent,
}

#[derive(Debug, Default, Serialize)]
struct Observation {
    results: Vec<Value>,
}

#[derive(Debug, Default, Serialize)]
struct Metrics {
    prompt_tokens: u64,
    completion_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    cached_tokens: Option<u64>,
}

#[derive(Debug, Default, Serialize)]
struct FinalMetrics {
    total_prompt_tokens: u64,
    total_completion_tokens: u64,
    total_cached_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    total_cost_usd: Option<f64>,
    total_steps: usize,
}

/// Builds the trajectory of these runs, one after the other.
pub fn trajectory(journal: &Journal, runs: &[RunId]) -> Result<Trajectory, JournalError> {
    let mut builder = Builder::default();
    for run in runs {
        let mut last = None;
        for_each_event(journal, run, |record| {
            if let Event::TaskComplete(complete) = &record.event {
                last = Some(complete.clone());
            }
            builder.add(record);
        })?;
        builder.end_run(last);
    }
    Ok(builder.finish(runs))
}

#[derive(Default)]
struct Builder {
    steps: Vec<Step>,
    /// The step that the current reply of a task belongs to.
    open: BTreeMap<String, usize>,
    /// The step of a call.
    calls: HashMap<String, usize>,
    /// The request that opened a task, to leave out its repetition as a message.
    requests: BTreeMap<String, String>,
    model: Option<String>,
    totals: FinalMetrics,
    endings: Vec<Value>,
}

impl Builder {
    fn add(&mut self, record: EventRecord) {
        let task = record.task.as_str().to_owned();
        let timestamp = jiff::Timestamp::from_millisecond(record.ts_ms).unwrap_or_default().to_string();
        match record.event {
            Event::TaskStarted(started) => {
                self.model.get_or_insert_with(|| started.model.clone());
                self.requests.insert(task.clone(), started.request.clone());
                self.push(&task, timestamp, Source::User, started.request);
            }
            Event::TurnStart { input_tokens, .. } => {
                let at = self.push(&task, timestamp, Source::Agent, String::new());
                self.steps[at].metrics = Some(Metrics { prompt_tokens: input_tokens, ..Metrics::default() });
                self.open.insert(task, at);
            }
            Event::TurnComplete { output_tokens, cached_tokens, .. } => {
                self.totals.total_completion_tokens += output_tokens;
                if let Some(metrics) = self.current(&task).and_then(|step| step.metrics.as_mut()) {
                    metrics.completion_tokens = output_tokens;
                    metrics.cached_tokens = (cached_tokens > 0).then_some(cached_tokens);
                }
                self.open.remove(&task);
            }
            Event::Message { role: Role::Assistant, text } => match self.current(&task) {
                Some(step) => step.message = text,
                None => {
                    self.push(&task, timestamp, Source::Agent, text);
                }
            },
            Event::Message { role: Role::User, text }
                if self.requests.remove(&task).is_none_or(|request| !text.contains(&request)) =>
            {
                self.push(&task, timestamp, Source::User, text);
            }
            Event::Reasoning { text } => {
                if let Some(step) = self.current(&task) {
                    step.reasoning_content = Some(text);
                }
            }
            Event::ToolCall { call_id, name, arguments } => {
                let at = match self.open.get(&task) {
                    Some(at) => *at,
                    None => self.push(&task, timestamp, Source::Agent, String::new()),
                };
                // Arguments that are not an object cannot be represented as such.
                let (arguments, extra) = match arguments {
                    Value::Object(arguments) => (Value::Object(arguments), None),
                    other => (json!({}), Some(json!({ "raw_arguments": other }))),
                };
                let mut call =
                    json!({"tool_call_id": call_id, "function_name": name, "arguments": arguments});
                if let Some(extra) = extra {
                    call["extra"] = extra;
                }
                self.steps[at].tool_calls.push(call);
                self.calls.insert(call_id, at);
            }
            Event::ToolResult(result) => {
                let Some(at) = self.calls.get(&result.call_id).copied() else { return };
                let mut extra = json!({"ok": result.ok, "duration_ms": result.duration_ms});
                if let Some(code) = result.exit_code {
                    extra["exit_code"] = code.into();
                }
                self.steps[at].observation.get_or_insert_default().results.push(json!({
                    "source_call_id": result.call_id,
                    "content": result.content,
                    "extra": extra,
                }));
            }
            Event::Compaction { tokens_before, tokens_after, .. } => {
                let message =
                    format!("The conversation was compacted from {tokens_before} to {tokens_after} tokens.");
                self.push(&task, timestamp, Source::System, message);
            }
            _ => {}
        }
    }

    fn push(&mut self, task: &str, timestamp: String, source: Source, message: String) -> usize {
        let mut extra = Map::new();
        if task != "main" {
            extra.insert("task".to_owned(), task.into());
        }
        let step_id = self.steps.len() + 1;
        self.steps.push(Step { step_id, timestamp, source, message, extra, ..Step::default() });
        step_id - 1
    }

    fn current(&mut self, task: &str) -> Option<&mut Step> {
        let at = *self.open.get(task)?;
        self.steps.get_mut(at)
    }

    fn end_run(&mut self, complete: Option<TaskComplete>) {
        self.open.clear();
        self.calls.clear();
        self.requests.clear();
        let Some(complete) = complete else { return };
        self.totals.total_prompt_tokens += complete.total_tokens;
        self.totals.total_cached_tokens += complete.cached_tokens;
        if let Some(cost) = complete.cost_usd {
            *self.totals.total_cost_usd.get_or_insert_default() += cost;
        }
        self.endings.push(json!({"status": complete.status, "error": complete.error}));
    }

    fn finish(mut self, runs: &[RunId]) -> Trajectory {
        if self.steps.is_empty() {
            // A run that was killed at once has no events, and a trajectory has at least one step.
            self.push(
                "main",
                jiff::Timestamp::UNIX_EPOCH.to_string(),
                Source::System,
                "The run has no events.".into(),
            );
        }
        let mut totals = self.totals;
        totals.total_prompt_tokens =
            totals.total_prompt_tokens.saturating_sub(totals.total_completion_tokens);
        totals.total_steps = self.steps.len();
        let mut extra = Map::new();
        extra.insert("runs".to_owned(), runs.iter().map(ToString::to_string).collect());
        extra.insert("endings".to_owned(), self.endings.into());
        Trajectory {
            schema_version: SCHEMA,
            session_id: runs.first().map(ToString::to_string).unwrap_or_default(),
            agent: Agent { name: "fusee", version: env!("CARGO_PKG_VERSION"), model_name: self.model },
            steps: self.steps,
            final_metrics: totals,
            extra,
        }
    }
}
