//! Lines from stdin, for a conversation and for the questions within it. What was typed ahead of a question is no
//! answer to it: it stays a message.

use std::collections::VecDeque;
use std::io::BufRead as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex as StdMutex, MutexGuard, PoisonError};
use std::time::Duration;

use fusee_engine::approval::{Answer, Approver, Lasts, Question};
use fusee_engine::journal::BoxFuture;
use tokio::sync::{Mutex, mpsc, watch};

use crate::approvals::Approvals;
use crate::approver;
use crate::failure::Failure;
use crate::output;
use crate::tui::mention;
use crate::tui::state::{Allowed, asked_about};

/// Lines that wait to be taken; more stay in the pipe.
const WAITING: usize = 16;

/// A line longer than this is cut into messages; nobody types so much, and a pipe may hold anything.
const LINE_BYTES: usize = 1 << 20;

/// What can be answered to a question.
const CHOICES: &str = "allow? y once, s for this conversation, a for always here, or n and why: ";

/// A question waits this long for what led to it to be shown.
const SHOWN: Duration = Duration::from_secs(2);

/// What a question is asked in.
pub(crate) struct Room {
    pub(crate) directory: PathBuf,
    /// What holds a command that is allowed.
    pub(crate) confined: &'static str,
    /// Where answers that are to last are kept.
    pub(crate) approvals: Approvals,
}

/// Stdin, line by line.
pub(crate) struct Keyboard {
    room: Room,
    allowed: StdMutex<Allowed>,
    /// Questions that were put so far, and those whose events the face has shown.
    asked: AtomicU64,
    shown: watch::Sender<u64>,
    lines: Mutex<mpsc::Receiver<String>>,
    ahead: StdMutex<VecDeque<String>>,
}

impl Keyboard {
    /// Begins to read. One thread does it, because a read cannot be taken back once nobody wants it any more.
    pub(crate) fn listen(room: Room) -> Result<Self, Failure> {
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
        Ok(Self {
            room,
            allowed: StdMutex::default(),
            asked: AtomicU64::new(0),
            shown: watch::Sender::new(0),
            lines: Mutex::new(receiver),
            ahead: StdMutex::default(),
        })
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

    /// The face has shown that something is asked.
    pub(crate) fn has_shown(&self) {
        self.shown.send_modify(|shown| *shown += 1);
    }

    /// Lets the face catch up, so that a question stands under what led to it.
    async fn take_turn(&self) {
        let asked = self.asked.fetch_add(1, Ordering::Relaxed) + 1;
        let mut shown = self.shown.subscribe();
        let caught_up = shown.wait_for(|shown| *shown >= asked);
        if tokio::time::timeout(SHOWN, caught_up).await.is_err() {
            self.asked.store(*self.shown.borrow(), Ordering::Relaxed);
        }
    }

    /// A line for the task under way, with the files it names.
    fn spoken(&self, line: &str) -> String {
        let (words, problems) = mention::spoken(line.trim(), &self.room.directory);
        problems.iter().for_each(|problem| output::error(&format!("warning: {problem}\n")));
        words
    }

    fn allowed(&self) -> MutexGuard<'_, Allowed> {
        self.allowed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What it is about and what holds it, under the line that says why.
    fn put(&self, question: &Question) {
        let mut text = String::new();
        for row in asked_about(question, &self.room.directory) {
            text.push_str(&format!("    {}\n", row.paint(false)));
        }
        if question.name.starts_with("shell") {
            text.push_str(&format!("    ({})\n", self.room.confined));
        }
        output::error(&format!("{text}{CHOICES}"));
    }

    /// What follows from an answer beyond this question.
    fn heed(&self, question: &Question, answer: Answer) -> Answer {
        if answer.lasts != Lasts::Once {
            self.allowed().add(question);
        }
        if answer.lasts == Lasts::Always
            && let Err(error) = self.room.approvals.add(question.lasting())
        {
            output::error(&format!("this holds for this conversation only: {error}\n"));
        }
        Answer { lasts: Lasts::Once, ..answer }
    }
}

impl Approver for Keyboard {
    fn ask_user<'a>(&'a self, _question: &'a str) -> BoxFuture<'a, Option<String>> {
        Box::pin(async {
            self.take_turn().await;
            loop {
                output::error("your answer, on one line: ");
                let line = self.fresh_line().await?;
                if !line.trim().is_empty() {
                    return Some(self.spoken(&line));
                }
            }
        })
    }

    fn after_stop<'a>(&'a self, _question: &'a str) -> BoxFuture<'a, Option<String>> {
        Box::pin(async {
            self.take_turn().await;
            Some(self.spoken(&self.fresh_line().await?))
        })
    }

    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Answer> {
        Box::pin(async move {
            self.take_turn().await;
            if self.allowed().covers(question) {
                return Answer::yes();
            }
            self.put(question);
            loop {
                let Some(line) = self.fresh_line().await else {
                    return Answer::no("nobody is there to approve it");
                };
                match approver::understand(&line) {
                    Some(answer) => return self.heed(question, answer),
                    None => output::error(CHOICES),
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
