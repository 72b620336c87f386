//! Displays a run of another process as plain lines, with its questions in full, and keeps its open questions for the
//! console.

use std::collections::HashSet;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fusee::engine::approval::ApprovalExtent;
use fusee::engine::journal::event::Event;
use fusee::engine::journal::{EventRecord, RunId};
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::process::stdio;
use crate::ui::activity::{OpenQuestion, RunActivity};
use crate::ui::notifier::NotificationUi;
use crate::ui::stdin_approver::{RUN, SHORT_PROMPT};
use crate::ui::{Ui, approval_prompt};

/// How long a line that looks like an answer is taken for one to a question that was answered elsewhere.
const JUST_ANSWERED: Duration = Duration::from_secs(10);

const AFTER_STOP: &str =
    "    stopped: type a message for the model, or an empty line to continue; /cancel ends the run\n";

/// A run that this process watches, shared by the display and the console.
#[derive(Clone)]
pub(super) struct AttachedRun {
    pub(super) run: RunId,
    pub(super) directory: PathBuf,
    /// Whether a person types the lines.
    pub(super) is_terminal: bool,
    activity: Arc<Mutex<RunActivity>>,
    /// Ids of the questions that were answered here.
    answered: Arc<Mutex<HashSet<String>>>,
    /// Questions that are over, with whether they were approved.
    resolved: Arc<Mutex<Vec<(String, bool)>>>,
    message: Arc<Mutex<SentMessage>>,
    /// When a question was answered elsewhere.
    elsewhere: Arc<Mutex<Option<Instant>>>,
    summary: Arc<Mutex<Option<String>>>,
    changes: watch::Sender<u64>,
}

/// A message from here that stops the turn.
#[derive(Default)]
struct SentMessage {
    /// Whether the question after the stop is still to come.
    is_expected: bool,
    /// The question that it answers.
    answers: Option<String>,
}

impl AttachedRun {
    pub(super) fn new(run: RunId, directory: PathBuf, is_terminal: bool) -> Self {
        Self {
            run,
            directory,
            is_terminal,
            activity: Arc::default(),
            answered: Arc::default(),
            resolved: Arc::default(),
            message: Arc::default(),
            elsewhere: Arc::default(),
            summary: Arc::default(),
            changes: watch::Sender::new(0),
        }
    }

    /// The line shown below the start of the run.
    pub(super) fn set_summary(&self, text: String) {
        *self.summary.lock() = Some(text);
    }

    /// The oldest open question.
    pub(super) fn question(&self) -> Option<OpenQuestion> {
        self.activity.lock().questions.first().cloned()
    }

    /// Marks a question as answered here.
    pub(super) fn mark_answered(&self, id: &str) {
        self.answered.lock().insert(id.to_owned());
    }

    /// Whether a question is over, and whether it was approved.
    pub(super) fn resolution(&self, id: &str) -> Option<bool> {
        self.resolved.lock().iter().rev().find(|(over, _)| over == id).map(|(_, approved)| *approved)
    }

    /// The next stop of a turn is for a message from here.
    pub(super) fn expect_message(&self) {
        self.message.lock().is_expected = true;
    }

    /// Whether a question after a stop is answered by a message from here.
    fn takes_message(&self, id: &str) -> bool {
        let mut message = self.message.lock();
        if !std::mem::take(&mut message.is_expected) {
            return false;
        }
        message.answers = Some(id.to_owned());
        true
    }

    fn is_own_message(&self, id: &str) -> bool {
        self.message.lock().answers.as_deref() == Some(id)
    }

    /// Whether a question was answered elsewhere a moment ago.
    pub(super) fn was_just_answered_elsewhere(&self) -> bool {
        self.elsewhere.lock().is_some_and(|at| at.elapsed() < JUST_ANSWERED)
    }

    /// Notice of every event that was shown.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn note(&self, record: &EventRecord) {
        self.activity.lock().add(record);
        if let Event::ApprovalResolved { call_id, approved, .. } = &record.event {
            self.resolved.lock().push((call_id.clone(), *approved));
        }
    }
}

/// Wraps a UI.
pub(super) struct AttachRenderer<F> {
    pub(super) ui: F,
    pub(super) notifications: NotificationUi,
    pub(super) attached: AttachedRun,
}

impl<F: Ui> AttachRenderer<F> {
    fn show_question(&mut self, record: &EventRecord) -> io::Result<()> {
        let Some(open) = self.attached.activity.lock().questions.last().cloned() else { return Ok(()) };
        // The turn was stopped for a message from here, which answers the question.
        if open.is_after_stop() && self.attached.takes_message(&open.question.call_id) {
            return Ok(());
        }
        self.notifications.show(record)?;
        if open.is_after_stop() {
            self.ui.flush()?;
            stdio::error(AFTER_STOP);
            return Ok(());
        }
        self.ui.show(record)?;
        self.ui.flush()?;
        if self.attached.is_terminal {
            self.put(&open);
        }
        Ok(())
    }

    fn show_answer(&mut self, record: &EventRecord, id: &str) -> io::Result<()> {
        if self.attached.is_own_message(id) {
            return Ok(());
        }
        self.ui.show(record)?;
        if !self.attached.answered.lock().contains(id) {
            self.ui.flush()?;
            stdio::error("    (answered elsewhere)\n");
            *self.attached.elsewhere.lock() = Some(Instant::now());
        }
        Ok(())
    }

    /// Prints what an approval is about and how it can be answered.
    fn put(&self, open: &OpenQuestion) {
        if open.is_text() {
            return stdio::error("    answer on one line: ");
        }
        let question = &open.question;
        let directory = Some(self.attached.directory.as_path());
        let rows = approval_prompt::subject(&question.name, &question.arguments, directory);
        let notice = approval_prompt::length_notice(rows.len());
        let rows = rows.into_iter().chain(notice).map(|row| row.paint(false));
        let choices = approval_prompt::choices(question, ApprovalExtent::Shown, RUN);
        let text: String = rows.chain(choices).map(|row| format!("    {row}\n")).collect();
        stdio::error(&format!("{text}{SHORT_PROMPT}"));
    }
}

impl<F: Ui> Ui for AttachRenderer<F> {
    fn show(&mut self, record: &EventRecord) -> io::Result<()> {
        self.attached.note(record);
        match &record.event {
            Event::ApprovalRequested { .. } => self.show_question(record)?,
            Event::ApprovalResolved { call_id, .. } => self.show_answer(record, call_id)?,
            _ => {
                self.ui.show(record)?;
                self.notifications.show(record)?;
            }
        }
        if let Some(text) = self.attached.summary.lock().take() {
            self.ui.flush()?;
            stdio::error(&format!("{text}\n"));
        }
        self.attached.changes.send_modify(|changes| *changes += 1);
        Ok(())
    }

    fn note_rendered(&mut self, record: &EventRecord) {
        self.ui.note_rendered(record);
    }

    fn flush(&mut self) -> io::Result<()> {
        self.ui.flush()
    }

    fn batch_delay(&self) -> Duration {
        self.ui.batch_delay()
    }

    fn close(&mut self) -> io::Result<()> {
        self.ui.close()
    }
}
