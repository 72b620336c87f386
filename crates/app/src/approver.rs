//! Asking the person at the terminal. The question is shown by the face, which reads it from the events; here the
//! answer is read.

use std::io::BufRead;
use std::sync::Mutex as StdMutex;

use fusee_engine::approval::{Answer, Approver, Lasts, Question};
use fusee_engine::journal::BoxFuture;
use tokio::sync::{Mutex, mpsc};

use crate::approvals::Approvals;
use crate::output;

#[cfg(test)]
mod tests;

/// Answers that were typed ahead of their question; more are not kept.
const TYPED_AHEAD: usize = 16;

/// The person at the terminal.
pub(crate) struct Person {
    /// Where answers that are to last are kept.
    approvals: Approvals,
    /// One thread reads for the whole process: a read cannot be taken back once nobody wants it any more.
    lines: Mutex<Option<mpsc::Receiver<String>>>,
    thread: StdMutex<Option<std::thread::JoinHandle<()>>>,
}

impl Person {
    /// One whose lasting answers are kept there.
    pub(crate) fn new(approvals: Approvals) -> Self {
        Self { approvals, lines: Mutex::default(), thread: StdMutex::default() }
    }

    async fn line(&self) -> Option<String> {
        let mut lines = self.lines.lock().await;
        if let Some(lines) = lines.as_mut() {
            // What was typed before the question is no answer to it.
            while lines.try_recv().is_ok() {}
            return lines.recv().await;
        }
        // Of a run that goes on the first question stands on the screen before it is asked again: whoever is quick has
        // answered it by now.
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
        *self.thread.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(thread);
        Some(receiver)
    }
}

impl Approver for Person {
    fn ask_user<'a>(&'a self, _question: &'a str) -> BoxFuture<'a, Option<String>> {
        Box::pin(async {
            loop {
                let line = self.line().await?;
                match line.trim() {
                    "" => output::error("your answer, on one line: "),
                    answer => return Some(answer.to_owned()),
                }
            }
        })
    }

    fn after_stop<'a>(&'a self, _question: &'a str) -> BoxFuture<'a, Option<String>> {
        Box::pin(self.line())
    }

    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Answer> {
        Box::pin(async move {
            loop {
                let Some(line) = self.line().await else {
                    return Answer::no("nobody is there to approve it");
                };
                match understand(&line) {
                    Some(answer) => {
                        if answer.lasts == Lasts::Always
                            && let Err(error) = self.approvals.add(question.lasting())
                        {
                            output::error(&format!("this holds for this run only: {error}\n"));
                        }
                        return answer;
                    }
                    None => output::error("y, s for the rest of this run, a for always here, or n and why: "),
                }
            }
        })
    }
}

/// `y`, `s`, `a`, or `n` with a reason after it; anything else is neither.
pub(crate) fn understand(line: &str) -> Option<Answer> {
    let line = line.trim();
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    match word.trim_end_matches([',', ':', '.', ';']).to_lowercase().as_str() {
        "y" | "yes" if rest.is_empty() => Some(Answer::yes()),
        "s" | "session" if rest.is_empty() => Some(Answer { lasts: Lasts::Session, ..Answer::yes() }),
        "a" | "always" if rest.is_empty() => Some(Answer { lasts: Lasts::Always, ..Answer::yes() }),
        "n" | "no" => {
            let rest = rest.trim();
            let reason = if rest.is_empty() {
                "the user said no".to_owned()
            } else {
                format!("the user said no: {rest}")
            };
            Some(Answer::no(reason))
        }
        _ => None,
    }
}
