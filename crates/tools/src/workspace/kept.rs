//! What files held before a run first changed them, kept with the intent of that change: what `undo` puts back
//! (`standing`). For a tool that is the file it changes; for the first command, which may change any, it is every file
//! that git could not give back.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use super::Workspace;
use super::replace::Change;
use crate::changes::{AtFirst, Room, Tracker};

/// Larger files are not kept.
const MOST_FILE: usize = 4 << 20;
/// Bytes kept of a run's files, as far as this process knows.
const MOST_RUN: usize = 64 << 20;

/// Before the first command: larger files are not kept.
const FIRST_FILE: u64 = 1 << 20;
/// Bytes of all files kept then.
const FIRST_ALL: u64 = 16 << 20;
/// Files kept then.
const FIRST_FILES: usize = 5_000;

/// A file as it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// Relative to the workspace.
    pub path: String,
    /// Its permissions, and where it was kept before a command, its kind.
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

/// What the first look at a workspace kept, for undoing what commands change.
#[derive(Debug, Default)]
pub struct FirstLook {
    /// Files that git could not give back.
    pub kept: Vec<Kept>,
    /// So many more files are not kept, for want of room.
    pub left: usize,
    /// Their bytes.
    pub left_bytes: u64,
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

    /// Looks at the workspace for the first time, and keeps what git could not give back.
    pub(super) fn first_look(&self) -> Option<(Tracker, FirstLook)> {
        let mut keeping = self.keeping();
        let room = Room {
            file_bytes: FIRST_FILE,
            bytes: FIRST_ALL.min((MOST_RUN - keeping.bytes) as u64),
            files: FIRST_FILES,
            except: &|path| keeping.known.contains(path),
        };
        let (tracker, AtFirst { kept, left }) = Tracker::begin(self.root(), &room)?;
        keeping.bytes += kept.iter().map(|(_, _, content)| content.len()).sum::<usize>();
        let keep = |(path, mode, content)| Kept { path, mode, content: KeptContent::of(content) };
        let kept = kept.into_iter().map(keep).collect();
        Some((tracker, FirstLook { kept, left: left.0, left_bytes: left.1 }))
    }
}

#[cfg(test)]
mod tests;
