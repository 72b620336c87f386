//! Lines that a user types while a run of another process is watched: answers to its questions, messages, commands. They
//! reach the run as signals in its journal.

use std::io::{BufRead as _, Read as _};
use std::time::Duration;

use fusee::engine::approval::{ApprovalAnswer, ApprovalExtent, ApprovalScope, OutsideAnswer, signal_name};
use fusee::engine::journal::{Journal, JournalError};
use fusee::engine::run::{ControlSignal, SignalOutcome};
use tokio::sync::mpsc;

use super::renderer::AttachedRun;
use crate::process::error::CliError;
use crate::process::stdio;
use crate::project::file_mentions;
use crate::project::saved_rules::SavedRules;
use crate::ui::activity::OpenQuestion;
use crate::ui::stdin_approver::{RUN, SHORT_PROMPT, TypedAnswer, other_extent, parse_line};

/// Lines that are read ahead; further ones stay in the pipe.
const AHEAD: usize = 16;

/// Maximum length of a line in bytes.
const LINE_BYTES: u64 = 1 << 20;

/// How long the run is given to take an answer. It looks three times a second.
const TAKEN: Duration = Duration::from_secs(5);

const NOT_USED: &str = "this question was answered elsewhere first; your answer is not used\n";

const COMMANDS: &str = "a line answers the open question, or is a message to the model; /stop stops the turn, \
                        /cancel ends the run, /detach or ctrl-c leaves it running\n";

/// The lines of stdin.
pub(super) struct Console {
    attached: AttachedRun,
    journal: Journal,
    approvals: SavedRules,
    lines: mpsc::Receiver<String>,
    /// The question that is being answered, and what a lasting answer to it covers.
    extent: Option<(String, ApprovalExtent)>,
}

/// Result of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AnswerOutcome {
    Taken,
    /// Somebody else answered first.
    Elsewhere,
    /// The run has not looked yet.
    Waiting,
}

impl Console {
    /// Starts reading. A thread of its own does it, because a blocking read cannot be cancelled.
    pub(super) fn listen(
        attached: AttachedRun,
        journal: Journal,
        approvals: SavedRules,
    ) -> Result<Self, CliError> {
        let (sender, lines) = mpsc::channel(AHEAD);
        let read = move || {
            let mut stdin = std::io::stdin().lock();
            let mut bytes = Vec::new();
            while stdin.by_ref().take(LINE_BYTES).read_until(b'\n', &mut bytes).is_ok_and(|read| read > 0) {
                let line = String::from_utf8_lossy(&bytes).trim_end_matches(['\n', '\r']).to_owned();
                bytes.clear();
                if sender.blocking_send(line).is_err() {
                    return;
                }
            }
        };
        std::thread::Builder::new()
            .name("keyboard".to_owned())
            .spawn(read)
            .map_err(|error| CliError::failed(format!("cannot start a thread: {error}")))?;
        Ok(Self { attached, journal, approvals, lines, extent: None })
    }

    /// Handles lines until the user leaves. A pipe that ends is only watched on.
    pub(super) async fn converse(&mut self) {
        loop {
            // A line of a pipe answers the question that is open when it is read, and no other.
            let about = match self.attached.is_terminal {
                true => None,
                false => Some(self.next_question().await),
            };
            let Some(line) = self.lines.recv().await else { break };
            if about.is_some_and(|id| self.attached.resolution(&id).is_some()) {
                stdio::error(NOT_USED);
                continue;
            }
            match line.trim() {
                "/detach" | "/quit" | "/exit" => return,
                "/help" => stdio::error(COMMANDS),
                "/cancel" => self.send(ControlSignal::Cancel).await,
                "/stop" => self.send(ControlSignal::StopTurn).await,
                text => self.say(text).await,
            }
        }
        if !self.attached.is_terminal {
            std::future::pending::<()>().await;
        }
    }

    /// Waits for a question; returns its id.
    async fn next_question(&self) -> String {
        let mut changes = self.attached.changes();
        loop {
            if let Some(open) = self.attached.question() {
                return open.question.call_id;
            }
            if changes.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    async fn say(&mut self, text: &str) {
        let Some(open) = self.attached.question() else {
            // Typed for a question that somebody else has just answered: no message to the model.
            if parse_line(text).is_some() && self.attached.was_just_answered_elsewhere() {
                return stdio::error(NOT_USED);
            }
            if !text.is_empty() {
                let message = self.with_files(text);
                self.send(ControlSignal::Message(message)).await;
            }
            return;
        };
        if open.is_text() {
            if text.is_empty() && !open.is_after_stop() {
                return stdio::error("    answer on one line: ");
            }
            let answer = OutsideAnswer::Text(self.with_files(text));
            self.answer(&open, answer, true).await;
            return;
        }
        let extent = match &self.extent {
            Some((id, extent)) if *id == open.question.call_id => *extent,
            _ => ApprovalExtent::Shown,
        };
        match parse_line(text) {
            Some(TypedAnswer::Decision(answer)) => {
                let answer = ApprovalAnswer { extent, ..answer };
                let (approved, lasts) = (answer.approved, answer.lasts);
                let outcome = self.answer(&open, OutsideAnswer::Approval(answer), approved).await;
                if outcome != Some(AnswerOutcome::Elsewhere)
                    && lasts == ApprovalScope::Always
                    && let Err(error) = self.approvals.add(open.question.lasting(extent))
                {
                    stdio::error(&format!(
                        "warning: cannot save the answer, so it applies to this run only: {error}\n"
                    ));
                }
            }
            Some(TypedAnswer::OtherExtent) => {
                let extent = other_extent(&open.question, extent, RUN);
                self.extent = Some((open.question.call_id.clone(), extent));
            }
            None => stdio::error(SHORT_PROMPT),
        }
    }

    /// A line for the model, with the files it names.
    fn with_files(&self, text: &str) -> String {
        let (words, problems) = file_mentions::spoken(text, &self.attached.directory);
        problems.iter().for_each(|problem| stdio::error(&format!("warning: {problem}\n")));
        words
    }

    async fn answer(
        &self,
        open: &OpenQuestion,
        answer: OutsideAnswer,
        approved: bool,
    ) -> Option<AnswerOutcome> {
        let outcome = self.deliver(open, &answer, approved).await;
        match &outcome {
            Ok(AnswerOutcome::Taken) => {}
            Ok(AnswerOutcome::Elsewhere) => {
                stdio::error(NOT_USED);
            }
            Ok(AnswerOutcome::Waiting) => {
                stdio::error("the answer is stored; the run has not taken it yet\n");
            }
            Err(error) => stdio::error(&format!("error: the answer could not be stored: {error}\n")),
        }
        outcome.ok()
    }

    /// Leaves the answer for the run and waits until the question is over.
    async fn deliver(
        &self,
        open: &OpenQuestion,
        answer: &OutsideAnswer,
        approved: bool,
    ) -> Result<AnswerOutcome, JournalError> {
        let (id, run) = (&open.question.call_id, &self.attached.run);
        let name = signal_name(&open.task, id);
        let value = serde_json::to_value(answer).unwrap_or_default();
        let Some(signal) = self.journal.offer_signal(run, &name, &value).await? else {
            return Ok(AnswerOutcome::Elsewhere);
        };
        self.attached.mark_answered(id);
        let mut changes = self.attached.changes();
        let over = async {
            loop {
                match self.attached.resolution(id) {
                    Some(approved) => return approved,
                    None if changes.changed().await.is_err() => std::future::pending().await,
                    None => {}
                }
            }
        };
        let Ok(taken) = tokio::time::timeout(TAKEN, over).await else { return Ok(AnswerOutcome::Waiting) };
        // A signal that is still there was left after the run had taken another answer.
        let is_left = self.journal.remove_signal(signal).await?;
        Ok(if is_left || taken != approved { AnswerOutcome::Elsewhere } else { AnswerOutcome::Taken })
    }

    async fn send(&self, signal: ControlSignal) {
        stdio::error(match signal {
            ControlSignal::Cancel => "cancelling the run\n",
            ControlSignal::StopTurn => "stopping the turn\n",
            ControlSignal::Message(_) => {
                self.attached.expect_message();
                "sent: the turn stops, and the model continues with your message\n"
            }
        });
        let said = match signal.send(&self.journal, &self.attached.run).await {
            Ok(SignalOutcome::Taken) => return,
            Ok(SignalOutcome::Busy) => "an earlier message is still pending; try again later".to_owned(),
            Ok(SignalOutcome::NotRunning) => "the run is not active".to_owned(),
            Err(error) => format!("error: {error}"),
        };
        stdio::error(&format!("{said}\n"));
    }
}
