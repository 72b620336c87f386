//! Lines from stdin, for the chat and for the questions within it. Lines typed before a question appeared are
//! not answers to it: they stay messages.

use std::collections::VecDeque;
use std::io::BufRead as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fusee::engine::approval::rules::ApprovalRules;
use fusee::engine::approval::{ApprovalAnswer, ApprovalExtent, ApprovalQuestion, ApprovalScope, Approver};
use fusee::engine::journal::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::{Mutex as AsyncMutex, mpsc, watch};

use crate::process::error::CliError;
use crate::process::stdio;
use crate::project::file_mentions;
use crate::project::saved_rules::SavedRules;
use crate::ui::approval_prompt;
use crate::ui::stdin_approver::{self, TypedAnswer};

/// Capacity of the line buffer; further lines stay in the pipe.
const QUEUE_CAPACITY: usize = 16;

/// Maximum length of a line in bytes; longer ones, which only a pipe can deliver, are split into messages.
const LINE_BYTES: usize = 1 << 20;

/// How long `s` lasts.
const CONVERSATION: &str = "in this conversation";

/// How long a question waits for the events before it to be shown.
const SHOWN: Duration = Duration::from_secs(2);

/// What the keyboard needs to word a question and store its answer.
pub(crate) struct QuestionContext {
    pub(crate) directory: PathBuf,
    /// Description of the sandbox that an approved command runs in.
    pub(crate) confined: &'static str,
    /// Where permanent approvals are stored.
    pub(crate) approvals: SavedRules,
}

/// Stdin as a stream of lines.
pub(crate) struct Keyboard {
    context: QuestionContext,
    allowed: Mutex<ApprovalRules>,
    /// Number of questions asked so far, and of those whose events have been shown.
    asked: AtomicU64,
    shown: watch::Sender<u64>,
    lines: AsyncMutex<mpsc::Receiver<String>>,
    ahead: Mutex<VecDeque<String>>,
}

impl Keyboard {
    /// Starts reading. A thread of its own does it, because a blocking read cannot be cancelled.
    pub(crate) fn listen(context: QuestionContext) -> Result<Self, CliError> {
        let (sender, receiver) = mpsc::channel(QUEUE_CAPACITY);
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
            .map_err(|error| CliError::failed(format!("cannot start a thread: {error}")))?;
        Ok(Self {
            context,
            allowed: Mutex::default(),
            asked: AtomicU64::new(0),
            shown: watch::Sender::new(0),
            lines: AsyncMutex::new(receiver),
            ahead: Mutex::default(),
        })
    }

    /// The next message. A trailing backslash continues it on the next line.
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
        let ahead = self.ahead.lock().pop_front();
        match ahead {
            Some(line) => Some(line),
            None => self.lines.lock().await.recv().await,
        }
    }

    /// Whether the next line is `y` or `yes`.
    pub(crate) async fn read_yes(&self) -> bool {
        let line = self.lines.lock().await.recv().await.unwrap_or_default();
        matches!(line.trim().to_lowercase().as_str(), "y" | "yes")
    }

    async fn fresh_line(&self) -> Option<String> {
        let mut lines = self.lines.lock().await;
        while let Ok(line) = lines.try_recv() {
            self.ahead.lock().push_back(line);
        }
        lines.recv().await
    }

    /// Signals that the event of a question has been shown.
    pub(crate) fn has_shown(&self) {
        self.shown.send_modify(|shown| *shown += 1);
    }

    /// Waits for the UI to catch up, so that a question appears below the events that led to it.
    async fn take_turn(&self) {
        let asked = self.asked.fetch_add(1, Ordering::Relaxed) + 1;
        let mut shown = self.shown.subscribe();
        let caught_up = shown.wait_for(|shown| *shown >= asked);
        if tokio::time::timeout(SHOWN, caught_up).await.is_err() {
            self.asked.store(*self.shown.borrow(), Ordering::Relaxed);
        }
    }

    /// A line for the running task, with the files it names.
    fn spoken(&self, line: &str) -> String {
        let (words, problems) = file_mentions::spoken(line.trim(), &self.context.directory);
        problems.iter().for_each(|problem| stdio::error(&format!("warning: {problem}\n")));
        words
    }

    /// Prints the call and its sandbox, below the line with the reason for the question.
    fn put(&self, question: &ApprovalQuestion) {
        let mut text = String::new();
        let rows =
            approval_prompt::subject(&question.name, &question.arguments, Some(&self.context.directory));
        let notice = approval_prompt::length_notice(rows.len());
        for row in rows.into_iter().chain(notice) {
            text.push_str(&format!("    {}\n", row.paint(false)));
        }
        if question.name.starts_with("shell") {
            text.push_str(&format!("    ({})\n", self.context.confined));
        }
        for row in approval_prompt::choices(question, ApprovalExtent::Shown, CONVERSATION) {
            text.push_str(&format!("    {row}\n"));
        }
        stdio::error(&format!("{text}{}", stdin_approver::SHORT_PROMPT));
    }

    /// Records the answer if it applies beyond this question.
    fn record_event(&self, question: &ApprovalQuestion, answer: ApprovalAnswer) -> ApprovalAnswer {
        let rules = question.lasting(answer.extent);
        if answer.lasts != ApprovalScope::Once {
            let mut allowed = self.allowed.lock();
            rules.iter().for_each(|rule| allowed.add(rule.clone()));
        }
        if answer.lasts == ApprovalScope::Always
            && let Err(error) = self.context.approvals.add(rules)
        {
            stdio::error(&format!(
                "warning: cannot save the answer, so it applies to this conversation only: {error}\n"
            ));
        }
        ApprovalAnswer { lasts: ApprovalScope::Once, ..answer }
    }
}

impl Approver for Keyboard {
    fn ask_user<'a>(&'a self, _question: &'a str) -> BoxFuture<'a, Option<String>> {
        Box::pin(async {
            self.take_turn().await;
            loop {
                stdio::error("answer on one line: ");
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

    fn ask<'a>(&'a self, question: &'a ApprovalQuestion) -> BoxFuture<'a, ApprovalAnswer> {
        Box::pin(async move {
            self.take_turn().await;
            if self.allowed.lock().allow(question) {
                return ApprovalAnswer::yes();
            }
            self.put(question);
            let mut extent = ApprovalExtent::Shown;
            loop {
                let Some(line) = self.fresh_line().await else {
                    return ApprovalAnswer::no("nobody is there to approve it");
                };
                match stdin_approver::parse_line(&line) {
                    Some(TypedAnswer::Decision(answer)) => {
                        return self.record_event(question, ApprovalAnswer { extent, ..answer });
                    }
                    Some(TypedAnswer::OtherExtent) => {
                        extent = stdin_approver::other_extent(question, extent, CONVERSATION);
                    }
                    None => stdio::error(stdin_approver::SHORT_PROMPT),
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
