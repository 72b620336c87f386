//! Lines from stdin, for a conversation and for the questions within it. What was typed ahead of a question is no
//! answer to it: it stays a message.

use std::collections::VecDeque;
use std::io::BufRead as _;
use std::sync::{Mutex as StdMutex, PoisonError};

use fusee_engine::approval::{Answer, Approver, Lasts, Question};
use fusee_engine::journal::BoxFuture;
use tokio::sync::{Mutex, mpsc};

use crate::approver;
use crate::failure::Failure;
use crate::output;

/// Lines that wait to be taken; more stay in the pipe.
const WAITING: usize = 16;

/// A line longer than this is cut into messages; nobody types so much, and a pipe may hold anything.
const LINE_BYTES: usize = 1 << 20;

/// Stdin, line by line.
pub(crate) struct Keyboard {
    lines: Mutex<mpsc::Receiver<String>>,
    ahead: StdMutex<VecDeque<String>>,
}

impl Keyboard {
    /// Begins to read. One thread does it, because a read cannot be taken back once nobody wants it any more.
    pub(crate) fn listen() -> Result<Self, Failure> {
        let (sender, receiver) = mpsc::channel(WAITING);
        let read = move || {
            let mut stdin = std::io::stdin().lock();
            while let Some(line) = next_line(&mut stdin) {
                if sender.blocking_send(line).is_err() {
                    return;
                }
            }
        };
        std::thread::Builder::new()
            .name("keyboard".to_owned())
            .spawn(read)
            .map_err(|error| Failure::failed(format!("cannot start a thread: {error}")))?;
        Ok(Self { lines: Mutex::new(receiver), ahead: StdMutex::default() })
    }

    /// The next message. A line that ends in a backslash goes on in the next one.
    pub(crate) async fn message(&self) -> Option<String> {
        let mut message = self.line().await?;
        while message.ends_with('\\') && message.len() < LINE_BYTES {
            message.pop();
            message.push('\n');
            match self.line().await {
                Some(more) => message.push_str(&more),
                None => break,
            }
        }
        Some(message)
    }

    async fn line(&self) -> Option<String> {
        let ahead = self.ahead.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        match ahead {
            Some(line) => Some(line),
            None => self.lines.lock().await.recv().await,
        }
    }

    /// Whether the next line means yes.
    pub(crate) async fn yes(&self) -> bool {
        let line = self.lines.lock().await.recv().await.unwrap_or_default();
        matches!(line.trim().to_lowercase().as_str(), "y" | "yes")
    }

    async fn fresh_line(&self) -> Option<String> {
        let mut lines = self.lines.lock().await;
        while let Ok(line) = lines.try_recv() {
            self.ahead.lock().unwrap_or_else(PoisonError::into_inner).push_back(line);
        }
        lines.recv().await
    }
}

impl Approver for Keyboard {
    fn ask_user<'a>(&'a self, _question: &'a str) -> BoxFuture<'a, Option<String>> {
        Box::pin(async {
            loop {
                output::error("your answer, on one line: ");
                let line = self.fresh_line().await?;
                if !line.trim().is_empty() {
                    return Some(line.trim().to_owned());
                }
            }
        })
    }

    fn after_stop<'a>(&'a self, _question: &'a str) -> BoxFuture<'a, Option<String>> {
        Box::pin(self.fresh_line())
    }

    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Answer> {
        Box::pin(async move {
            let (name, reason) = (&question.name, &question.reason);
            let what = crate::face::words::gist(name, &question.arguments);
            let what = fusee_engine::text::render::harmless(&what).into_owned();
            output::error(&format!(
                "allow {name} {what} ({reason})? y, s for the rest of this task, or n and why: "
            ));
            loop {
                let Some(line) = self.fresh_line().await else {
                    return Answer::no("nobody is there to approve it");
                };
                match approver::understand(&line) {
                    // What lasts longer is kept by the conversation in a terminal alone.
                    Some(Answer { lasts: Lasts::Always, .. }) => {
                        return Answer { lasts: Lasts::Session, ..Answer::yes() };
                    }
                    Some(answer) => return answer,
                    None => output::error("y, s for the rest of this task, or n and why: "),
                }
            }
        })
    }
}

fn next_line(stdin: &mut std::io::StdinLock<'_>) -> Option<String> {
    use std::io::Read as _;
    let mut bytes = Vec::new();
    let read = stdin.by_ref().take(LINE_BYTES as u64).read_until(b'\n', &mut bytes);
    match read {
        Ok(0) | Err(_) => None,
        Ok(_) => {
            let text = String::from_utf8_lossy(&bytes);
            Some(text.trim_end_matches(['\n', '\r']).to_owned())
        }
    }
}
