//! State of a run as other programs see it, computed from its events: live, or afterwards from the journal.

use fusee::journal::event::{Event, EventRecord, TaskComplete, TaskReport, TaskStatus};
use fusee::journal::{Branch, RunId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::question::{OpenQuestion, shown};

/// Changed files that are listed.
const MAX_FILES: usize = 200;

/// Result of `fusee_run`, `fusee_wait` and `fusee_status`.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub(crate) struct RunState {
    /// Id of the run
    pub(crate) run: String,
    /// State of the run
    pub(crate) status: RunProgress,
    /// The answer, once the run has completed
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) answer: Option<String>,
    /// Why the run failed
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
    /// What the run is doing
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) doing: Option<String>,
    /// Questions that wait for an answer
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) waiting: Vec<OpenQuestion>,
    /// Number of model replies so far
    pub(crate) turns: u32,
    /// Tokens of all model requests, once the run has ended
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tokens: Option<u64>,
    /// Cost in US dollars, if the price of the model is known
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cost_usd: Option<f64>,
    /// Files that the run changed
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) files_changed: Vec<String>,
    /// Whether the last verification passed
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) verified: Option<bool>,
    /// Report of the main task
    #[serde(skip)]
    pub(crate) report: Option<TaskReport>,
    /// Time of the first event in milliseconds since the Unix epoch
    #[serde(skip)]
    pub(crate) started_ms: i64,
    /// Time of the newest event in milliseconds since the Unix epoch
    #[serde(skip)]
    pub(crate) updated_ms: i64,
}

/// Where a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RunProgress {
    /// It is being worked on.
    Working,
    /// It waits for an answer.
    Waiting,
    /// Its process ended; it can be continued.
    Interrupted,
    /// It ended with an answer.
    Completed,
    /// It ended without an answer.
    Failed,
    /// It was cancelled.
    Cancelled,
}

impl RunProgress {
    /// Whether nothing more happens.
    pub(crate) fn has_ended(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

impl RunState {
    /// A run without events.
    pub(crate) fn new(run: &RunId) -> Self {
        Self {
            run: run.to_string(),
            status: RunProgress::Working,
            answer: None,
            error: None,
            doing: Some("starting".to_owned()),
            waiting: Vec::new(),
            turns: 0,
            tokens: None,
            cost_usd: None,
            files_changed: Vec::new(),
            verified: None,
            report: None,
            started_ms: 0,
            updated_ms: 0,
        }
    }

    /// Takes in an event; returns whether the visible state changed.
    pub(crate) fn apply(&mut self, record: &EventRecord) -> bool {
        if self.started_ms == 0 {
            self.started_ms = record.ts_ms;
        }
        self.updated_ms = self.updated_ms.max(record.ts_ms);
        let is_main = record.task == Branch::main();
        match &record.event {
            Event::TaskStarted(_) => self.doing = Some("preparing the request".to_owned()),
            Event::TaskResumed { .. } => self.resume(),
            Event::TurnStart { turn_index, .. } => {
                self.turns = self.turns.max(turn_index + 1);
                self.doing = Some(format!("turn {}: waiting for the model", turn_index + 1));
            }
            Event::ToolCall { name, arguments, .. } => {
                self.doing = Some(format!("turn {}: {name} {}", self.turns, shown(arguments)));
            }
            Event::ToolResult(result) => self.close_question(&result.call_id),
            Event::FileChanged { path, .. } => self.add_file(path),
            Event::Retry { after_ms, reason, .. } => {
                self.doing = Some(format!("retrying the model in {} ms: {reason}", after_ms));
            }
            Event::ApprovalRequested { call_id, name, arguments, reason } => {
                self.waiting.push(OpenQuestion::new(&record.task, call_id, name, arguments, reason));
                self.status = RunProgress::Waiting;
            }
            Event::ApprovalResolved { call_id, .. } => self.close_question(call_id),
            Event::StageStarted { label, attempt, .. } => {
                self.doing = Some(format!("stage {label}, attempt {attempt}"));
            }
            Event::TaskReport(report) if is_main => {
                self.verified = report.verify.as_ref().map(|verify| verify.passed);
                self.report = Some(report.clone());
            }
            Event::TaskComplete(end) if is_main => self.end(end),
            _ => return false,
        }
        true
    }

    fn resume(&mut self) {
        if self.waiting.is_empty() {
            self.status = RunProgress::Working;
        }
        (self.answer, self.error) = (None, None);
        self.doing = Some("continuing after an interruption".to_owned());
    }

    fn end(&mut self, end: &TaskComplete) {
        self.status = match end.status {
            TaskStatus::Completed => RunProgress::Completed,
            TaskStatus::Failed => RunProgress::Failed,
            TaskStatus::Cancelled => RunProgress::Cancelled,
        };
        self.turns = self.turns.max(end.total_turns);
        self.tokens = Some(end.total_tokens);
        self.cost_usd = end.cost_usd;
        self.answer = Some(end.answer.clone()).filter(|answer| !answer.is_empty());
        self.error = end.error.as_ref().map(|error| error.message.clone());
        self.doing = None;
        self.waiting.clear();
    }

    /// The run ended without a last event, for example because its task panicked.
    pub(crate) fn lose(&mut self, cause: &str) {
        self.status = RunProgress::Failed;
        self.error = Some(format!("internal error: {cause}"));
        self.doing = None;
        self.waiting.clear();
    }

    fn close_question(&mut self, call_id: &str) {
        self.waiting.retain(|question| question.call != call_id);
        if self.waiting.is_empty() && self.status == RunProgress::Waiting {
            self.status = RunProgress::Working;
        }
    }

    fn add_file(&mut self, path: &str) {
        if self.files_changed.len() < MAX_FILES && !self.files_changed.iter().any(|known| known == path) {
            self.files_changed.push(path.to_owned());
        }
    }

    /// The state in words, for a model.
    pub(crate) fn describe(&self) -> String {
        let run = &self.run;
        let doing = self.doing.as_deref().unwrap_or("working");
        match self.status {
            RunProgress::Completed => {
                let turns =
                    if self.turns == 1 { "1 turn".to_owned() } else { format!("{} turns", self.turns) };
                format!("Run {run} completed after {turns}. Continue the conversation with fusee_reply.")
            }
            RunProgress::Failed => {
                let cause = self.error.as_deref().unwrap_or("it gave no reason");
                format!("Run {run} failed: {cause}")
            }
            RunProgress::Cancelled => format!("Run {run} was cancelled."),
            RunProgress::Working => {
                format!(
                    "Run {run} is still working ({doing}). Call fusee_wait with this run id to get its result."
                )
            }
            RunProgress::Interrupted => {
                format!("Run {run} was interrupted. Call fusee_wait with this run id to continue it.")
            }
            RunProgress::Waiting => {
                let questions: Vec<String> = self.waiting.iter().map(OpenQuestion::describe).collect();
                format!(
                    "Run {run} waits for an answer.\n{}\nAnswer with fusee_answer, then call fusee_wait.",
                    questions.join("\n")
                )
            }
        }
    }
}

#[cfg(test)]
mod tests;
