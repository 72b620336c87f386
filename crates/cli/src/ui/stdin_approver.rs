//! Reads approval answers from stdin. The question itself is displayed by the [`face`](crate::ui), which
//! reads it from the events.

use std::io::BufRead;

use fusee::engine::approval::{ApprovalAnswer, ApprovalQuestion, ApprovalScope, Approver};
use fusee::engine::journal::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::{Mutex as AsyncMutex, mpsc};

use crate::process::stdio;
use crate::project::saved_rules::SavedRules;

#[cfg(test)]
mod tests;

/// Maximum number of lines buffered ahead of their question.
const TYPED_AHEAD: usize = 16;

/// Approver that asks the user at the terminal.
pub(crate) struct StdinApprover {
    /// Where "always" answers are saved.
    approvals: SavedRules,
    /// Lines from stdin. One thread reads for the whole process because a blocking read cannot be cancelled.
    lines: AsyncMutex<Option<mpsc::Receiver<String>>>,
    thread: Mutex<Option<std::thread::JoinHandle<()>>>,
}

impl StdinApprover {
    /// An approver that saves "always" answers in `approvals`.
    pub(crate) fn new(approvals: SavedRules) -> Self {
        Self { approvals, lines: AsyncMutex::default(), thread: Mutex::default() }
    }

    async fn line(&self) -> Option<String> {
        let mut lines = self.lines.lock().await;
        if let Some(lines) = lines.as_mut() {
            // Discard what was typed before the question.
            while lines.try_recv().is_ok() {}
            return lines.recv().await;
        }
        // The first question of a resumed run is on screen before it is asked again, so a line typed by now
        // is kept.
        *lines = self.listen();
        lines.as_mut()?.recv().await
    }

    fn listen(&self) -> Option<mpsc::Receiver<String>> {
        let (sender, receiver) = mpsc::channel(TYPED_AHEAD);
        let read = move || {
            for line in std::io::stdin().lock().lines() {
                let Ok(line) = line else { return };
                if sender.blocking_send(line).is_err() {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name("keyboard".to_owned()).spawn(read).ok()?;
        *self.thread.lock() = Some(thread);
        Some(receiver)
    }
}

impl Approver for StdinApprover {
    fn ask_user<'a>(&'a self, _question: &'a str) -> BoxFuture<'a, Option<String>> {
        Box::pin(async {
            loop {
                let line = self.line().await?;
                match line.trim() {
                    "" => stdio::error("answer on one line: "),
                    answer => return Some(answer.to_owned()),
                }
            }
        })
    }

    fn after_stop<'a>(&'a self, _question: &'a str) -> BoxFuture<'a, Option<String>> {
        Box::pin(self.line())
    }

    fn ask<'a>(&'a self, question: &'a ApprovalQuestion) -> BoxFuture<'a, ApprovalAnswer> {
        Box::pin(async move {
            loop {
                let Some(line) = self.line().await else {
                    return ApprovalAnswer::no("nobody is there to approve it");
                };
                match parse_line(&line) {
                    Some(answer) => {
                        if answer.lasts == ApprovalScope::Always
                            && let Err(error) = self.approvals.add(question.lasting())
                        {
                            stdio::error(&format!(
                                "warning: cannot save the answer, so it applies to this run only: {error}\n"
                            ));
                        }
                        return answer;
                    }
                    None => {
                        stdio::error("y once, s the rest of this run, a always in this project, n [REASON]: ")
                    }
                }
            }
        })
    }
}

/// Parses `y`, `s`, `a`, or `n` with an optional reason; `None` for anything else.
pub(crate) fn parse_line(line: &str) -> Option<ApprovalAnswer> {
    let line = line.trim();
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    match word.trim_end_matches([',', ':', '.', ';']).to_lowercase().as_str() {
        "y" | "yes" if rest.is_empty() => Some(ApprovalAnswer::yes()),
        "s" | "session" if rest.is_empty() => {
            Some(ApprovalAnswer { lasts: ApprovalScope::Session, ..ApprovalAnswer::yes() })
        }
        "a" | "always" if rest.is_empty() => {
            Some(ApprovalAnswer { lasts: ApprovalScope::Always, ..ApprovalAnswer::yes() })
        }
        "n" | "no" => {
            let rest = rest.trim();
            let reason = if rest.is_empty() {
                "the user said no".to_owned()
            } else {
                format!("the user said no: {rest}")
            };
            Some(ApprovalAnswer::no(reason))
        }
        _ => None,
    }
}
