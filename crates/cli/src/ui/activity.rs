//! What a run is doing, from its events: its open questions and its latest action. `fusee runs` lists it, `fusee attach`
//! keeps it up to date.

use fusee::engine::approval::ApprovalQuestion;
use fusee::engine::journal::event::Event;
use fusee::engine::journal::{Branch, EventRecord, Journal, RunRow, RunStatus};
use serde::Serialize;

use super::{event_pages, format};
use crate::process::error::CliError;

/// Name of the questions whose answer is text.
const ASK_USER: &str = "ask_user";

/// Start of the ids of questions about stopped turns.
const STOPPED: &str = "stopped-";

/// Maximum number of characters of what a run is doing.
const SHOWN: usize = 200;

/// State of a run as a user sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RunState {
    /// A question waits for an answer.
    NeedsYou,
    /// A process works on it.
    Running,
    /// A rewind or a fork that nobody has worked on; it can be resumed or continued.
    Ready,
    /// Its process ended before it did; it can be resumed.
    Interrupted,
    /// It completed.
    Done,
    /// Ended without an answer, or with one that was rejected.
    Failed,
    /// It was cancelled.
    Cancelled,
}

/// A question that waits for an answer.
#[derive(Clone, Debug)]
pub(crate) struct OpenQuestion {
    pub(crate) task: Branch,
    pub(crate) question: ApprovalQuestion,
    /// The event that asked it.
    pub(crate) record: EventRecord,
}

impl OpenQuestion {
    /// Whether it is answered with a text, and not with an approval.
    pub(crate) fn is_text(&self) -> bool {
        self.question.name == ASK_USER
    }

    /// Whether it asks how to go on after the turn was stopped, which an empty text answers too.
    pub(crate) fn is_after_stop(&self) -> bool {
        self.is_text() && self.question.call_id.starts_with(STOPPED)
    }

    fn describe(&self) -> String {
        let ApprovalQuestion { name, arguments, .. } = &self.question;
        if self.is_text() {
            let question = arguments["question"].as_str().unwrap_or_default();
            return format!("asks: {}", format::one_line(question, SHOWN));
        }
        format!("waits for approval: {}", call(name, arguments))
    }
}

/// What the events of a run say so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunActivity {
    /// Open questions, oldest first.
    pub(crate) questions: Vec<OpenQuestion>,
    /// Completed model replies.
    pub(crate) turns: u64,
    /// Tool calls.
    pub(crate) calls: u64,
    /// Number of the newest event.
    pub(crate) seq: u64,
    latest: String,
}

impl RunActivity {
    /// Reads the events of a run.
    pub(crate) fn read(journal: &Journal, row: &RunRow) -> Result<Self, CliError> {
        let mut activity = Self::default();
        event_pages::for_each_event(journal, &row.id, |event| {
            activity.add(&event);
            Ok(())
        })?;
        Ok(activity)
    }

    /// Adds the next event.
    pub(crate) fn add(&mut self, record: &EventRecord) {
        self.seq = record.seq;
        match &record.event {
            Event::TurnStart { turn_index, .. } => {
                self.turns += 1;
                self.latest = format!("waits for reply {}", turn_index + 1);
            }
            Event::ToolCall { name, arguments, .. } => {
                self.calls += 1;
                self.latest = call(name, arguments);
            }
            Event::ApprovalRequested { call_id, name, arguments, reason } => {
                // A resumed run asks again, with the same id.
                self.questions.retain(|open| open.question.call_id != *call_id);
                let question = ApprovalQuestion {
                    call_id: call_id.clone(),
                    name: name.clone(),
                    arguments: arguments.clone(),
                    reason: reason.clone(),
                };
                let (task, record) = (record.task.clone(), record.clone());
                self.questions.push(OpenQuestion { task, question, record });
            }
            Event::ApprovalResolved { call_id, .. } => {
                self.questions.retain(|open| open.question.call_id != *call_id);
            }
            Event::TaskComplete(_) if record.task == Branch::main() => self.questions.clear(),
            _ => {}
        }
    }

    /// What the run is doing, on one line; empty before its first turn.
    pub(crate) fn describe(&self) -> String {
        match self.questions.as_slice() {
            [] => self.latest.clone(),
            [question] => question.describe(),
            [question, rest @ ..] => format!("{} (and {} more)", question.describe(), rest.len()),
        }
    }
}

/// The state of a run and what it is doing. Events are read only if the run is active.
pub(crate) fn state_of(journal: &Journal, row: &RunRow) -> (RunState, String) {
    match row.status {
        RunStatus::Completed => (RunState::Done, String::new()),
        RunStatus::Failed => (RunState::Failed, String::new()),
        RunStatus::Cancelled => (RunState::Cancelled, String::new()),
        RunStatus::Open if journal.is_active(&row.id) => {
            // Damage only leaves this out: `fusee doctor` finds it.
            let activity = RunActivity::read(journal, row).unwrap_or_default();
            let state = if activity.questions.is_empty() { RunState::Running } else { RunState::NeedsYou };
            (state, activity.describe())
        }
        RunStatus::Open if is_ready(journal, row) => (RunState::Ready, String::new()),
        RunStatus::Open => (RunState::Interrupted, String::new()),
    }
}

/// Whether nothing has happened in an open run since it was made from another one.
pub(crate) fn is_ready(journal: &Journal, row: &RunRow) -> bool {
    let last = || {
        let last = journal.event_index(&row.id, u64::MAX).ok()?.last;
        journal.events(&row.id, last.saturating_sub(1), u64::MAX, 1).ok()?.pop()
    };
    matches!(last().map(|record| record.event), Some(Event::Rewound { .. }))
}

fn call(name: &str, arguments: &serde_json::Value) -> String {
    let gist = format::summarize_arguments(name, arguments);
    format::one_line(format!("{name} {gist}").trim_end(), SHOWN)
}
