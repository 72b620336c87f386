//! Reads approval answers from stdin. The question itself is displayed by the [`ui`](crate::ui), which
//! reads it from the events.

use std::io::BufRead;

use fusee::engine::approval::{ApprovalAnswer, ApprovalExtent, ApprovalQuestion, ApprovalScope, Approver};
use fusee::engine::journal::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::{Mutex as AsyncMutex, mpsc};

use crate::process::stdio;
use crate::project::saved_rules::SavedRules;
use crate::ui::approval_prompt;

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
            let mut extent = ApprovalExtent::Shown;
            loop {
                let Some(line) = self.line().await else {
                    return ApprovalAnswer::no("nobody is there to approve it");
                };
                match parse_line(&line) {
                    Some(TypedAnswer::Decision(answer)) => {
                        let answer = ApprovalAnswer { extent, ..answer };
                        if answer.lasts == ApprovalScope::Always
                            && let Err(error) = self.approvals.add(question.lasting(extent))
                        {
                            stdio::error(&format!(
                                "warning: cannot save the answer, so it applies to this run only: {error}\n"
                            ));
                        }
                        return answer;
                    }
                    Some(TypedAnswer::OtherExtent) => extent = other_extent(question, extent, RUN),
                    None => stdio::error(SHORT_PROMPT),
                }
            }
        })
    }
}

/// How long `s` lasts for a run.
pub(crate) const RUN: &str = "until the run ends";

/// The prompt below a question and its choices.
pub(crate) const SHORT_PROMPT: &str = "allow? y, s, a, w, or n [REASON]: ";

/// Changes what a lasting answer covers, and prints the choices again.
pub(crate) fn other_extent(
    question: &ApprovalQuestion,
    extent: ApprovalExtent,
    while_open: &str,
) -> ApprovalExtent {
    let other = approval_prompt::toggled(extent);
    if approval_prompt::covers(question, other).is_none() {
        stdio::error(&format!("there is no wider scope for this call\n{SHORT_PROMPT}"));
        return extent;
    }
    let rows = approval_prompt::choices(question, other, while_open);
    let text: String = rows.iter().map(|row| format!("    {row}\n")).collect();
    stdio::error(&format!("{text}{SHORT_PROMPT}"));
    other
}

/// What the user typed below an approval question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TypedAnswer {
    Decision(ApprovalAnswer),
    /// Lasting answers are to cover more, or less again.
    OtherExtent,
}

/// Parses `y`, `s`, `a`, `w`, or `n` with an optional reason; `None` for anything else.
pub(crate) fn parse_line(line: &str) -> Option<TypedAnswer> {
    let line = line.trim();
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let lasting = |lasts| TypedAnswer::Decision(ApprovalAnswer { lasts, ..ApprovalAnswer::yes() });
    match word.trim_end_matches([',', ':', '.', ';']).to_lowercase().as_str() {
        "y" | "yes" if rest.is_empty() => Some(lasting(ApprovalScope::Once)),
        "s" | "session" if rest.is_empty() => Some(lasting(ApprovalScope::Session)),
        "a" | "always" if rest.is_empty() => Some(lasting(ApprovalScope::Always)),
        "w" | "wider" if rest.is_empty() => Some(TypedAnswer::OtherExtent),
        "n" | "no" => {
            let rest = rest.trim();
            let reason = if rest.is_empty() {
                "the user said no".to_owned()
            } else {
                format!("the user said no: {rest}")
            };
            Some(TypedAnswer::Decision(ApprovalAnswer::no(reason)))
        }
        _ => None,
    }
}
