//! What files held before a run first changed them, kept with the intent of that change: what `undo` puts back.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use super::replace::Change;
use super::{Workspace, WorkspacePath};
use crate::content::ContentHash;

/// Larger files are not kept.
const MOST_FILE: usize = 4 << 20;
/// Bytes kept of a run's files, as far as this process knows.
const MOST_RUN: usize = 64 << 20;

/// A file as it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// Relative to the workspace.
    pub path: String,
    /// Its permissions.
    pub mode: u32,
    /// What it held.
    #[serde(flatten)]
    pub content: KeptContent,
}

/// What a file held, as far as that is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeptContent {
    /// Text.
    Text(String),
    /// Anything else, as hexadecimal digits.
    Bytes(String),
    /// So many bytes, which is more than is kept.
    TooLarge(u64),
}

impl KeptContent {
    fn of(content: Vec<u8>) -> Self {
        match String::from_utf8(content) {
            Ok(text) => Self::Text(text),
            Err(other) => {
                let digits = other.as_bytes().iter().flat_map(|byte| [byte >> 4, byte & 15]);
                Self::Bytes(digits.filter_map(|digit| char::from_digit(digit.into(), 16)).collect())
            }
        }
    }

    /// The bytes, if they were kept.
    #[must_use]
    pub fn bytes(&self) -> Option<Vec<u8>> {
        match self {
            Self::Text(text) => Some(text.clone().into_bytes()),
            Self::Bytes(digits) => digits
                .as_bytes()
                .chunks(2)
                .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
                .collect(),
            Self::TooLarge(_) => None,
        }
    }
}

/// Which files need not be kept any more, and how much was.
#[derive(Debug, Default)]
pub(super) struct Keeping {
    known: HashSet<String>,
    bytes: usize,
}

impl Keeping {
    /// The run has changed this file before.
    pub(super) fn changed(&mut self, path: &str) {
        if !self.known.contains(path) {
            self.known.insert(path.to_owned());
        }
    }
}

/// A file to be put back: what it must hold now, and what it is to hold; nothing stands for no file.
#[derive(Clone, Debug)]
pub struct PutBack {
    /// Relative to the workspace.
    pub path: String,
    /// What the run left there.
    pub now: Option<ContentHash>,
    /// What was there before, and its permissions.
    pub before: Option<(Vec<u8>, u32)>,
}

impl Workspace {
    /// What these changes are about to take away for the first time in this run.
    pub(crate) fn keep(&self, changes: &[Change], most: u64) -> Vec<Kept> {
        let mut keeping = self.keeping();
        let mut kept = Vec::new();
        for change in changes.iter().filter(|change| change.before.is_some()) {
            if keeping.known.contains(change.path.as_str()) {
                continue;
            }
            let Ok(Some(current)) = self.current(&change.path, most) else { continue };
            let length = current.content.len();
            let content = if length > MOST_FILE || keeping.bytes + length > MOST_RUN {
                KeptContent::TooLarge(length as u64)
            } else {
                keeping.bytes += length;
                KeptContent::of(current.content)
            };
            kept.push(Kept { path: change.path.as_str().to_owned(), mode: current.mode, content });
        }
        kept
    }

    /// What a file holds now: `None` if it is not there. An error says why that cannot be told.
    pub fn holds(&self, path: &str, most: u64) -> Result<Option<ContentHash>, String> {
        let path = self.locate(path).map_err(|problem| problem.to_string())?;
        let current = self.current(&path, most).map_err(|problem| problem.to_string())?;
        Ok(current.map(|current| ContentHash::of(&current.content)))
    }

    /// Puts files back, all of them or none.
    pub fn put_back(&self, files: &[PutBack], token: &str, most: u64) -> Result<(), String> {
        let changes: Result<Vec<Change>, String> = files
            .iter()
            .map(|file| {
                let path: WorkspacePath = self.locate(&file.path).map_err(|problem| problem.to_string())?;
                let (after, mode) = file.before.clone().unzip();
                Ok(Change { path, before: file.now, after, mode })
            })
            .collect();
        self.change(&changes?, token, most).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests;
