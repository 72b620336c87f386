//! Input history across chats: a file in the user's state directory, one JSON string per line.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

#[cfg(test)]
mod tests;

/// Maximum number of messages.
const MAX_MESSAGES: usize = 1_000;

/// File size in bytes from which the file is rewritten with only the newest messages.
const MAX_BYTES: u64 = 4 << 20;

/// The messages, oldest first, and the position while browsing them.
#[derive(Debug, Default)]
pub(crate) struct InputHistory {
    messages: Vec<String>,
    /// Index of the message shown, and the unsent input to return to.
    browsing: Option<(usize, String)>,
    file: Option<PathBuf>,
}

impl InputHistory {
    /// Reads the history file. A file that cannot be read or written is ignored: the chat works without it.
    pub(crate) fn open(folder: Option<&Path>) -> Self {
        let Some(file) = folder.map(|folder| folder.join("messages.jsonl")) else { return Self::default() };
        let size = fs::metadata(&file).map_or(0, |file| file.len());
        let text =
            if size > 4 * MAX_BYTES { String::new() } else { fs::read_to_string(&file).unwrap_or_default() };
        let mut messages: Vec<String> =
            text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        messages.drain(..messages.len().saturating_sub(MAX_MESSAGES));
        if size > MAX_BYTES {
            let lines: String = messages.iter().map(|message| line(message)).collect();
            let _ = fs::write(&file, lines);
        }
        Self { messages, browsing: None, file: Some(file) }
    }

    /// Appends a message, unless it repeats the last one.
    pub(crate) fn add(&mut self, message: &str) {
        self.browsing = None;
        if self.messages.last().is_some_and(|last| last == message) {
            return;
        }
        self.messages.push(message.to_owned());
        self.messages.drain(..self.messages.len().saturating_sub(MAX_MESSAGES));
        if let Some(file) = &self.file {
            let _ = file.parent().map(fs::create_dir_all);
            let opened = OpenOptions::new().append(true).create(true).mode(0o600).open(file);
            let _ = opened.and_then(|mut file| file.write_all(line(message).as_bytes()));
        }
    }

    /// The newest message that contains the words, whatever their case; with `skipped`, an older one.
    pub(crate) fn search(&self, words: &str, skipped: usize) -> Option<&str> {
        let words = words.to_lowercase();
        let found = self.messages.iter().rev().filter(|message| message.to_lowercase().contains(&words));
        found.map(String::as_str).nth(skipped)
    }

    /// The next older message; `typed` is kept as the unsent input.
    pub(crate) fn older(&mut self, typed: &str) -> Option<&str> {
        let (at, kept) = match self.browsing.take() {
            Some((at, kept)) => (at.saturating_sub(1), kept),
            None => (self.messages.len().checked_sub(1)?, typed.to_owned()),
        };
        self.browsing = Some((at, kept));
        self.messages.get(at).map(String::as_str)
    }

    /// The next newer message, and after the newest one the unsent input.
    pub(crate) fn newer(&mut self) -> Option<String> {
        let (at, kept) = self.browsing.take()?;
        match self.messages.get(at + 1) {
            Some(message) => {
                self.browsing = Some((at + 1, kept));
                Some(message.clone())
            }
            None => Some(kept),
        }
    }
}

fn line(message: &str) -> String {
    format!("{}\n", serde_json::Value::from(message))
}
