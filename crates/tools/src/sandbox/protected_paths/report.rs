//! What a check of the protected paths found: which were restored or set aside, and which could not be.

use std::io;
use std::path::{Path, PathBuf};

/// The result of checking protected paths after a command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProtectionReport {
    /// Paths that the command had changed or created and that were restored or set aside.
    pub reverted: Vec<PathBuf>,
    /// Paths whose state could not be restored or checked, each with the reason. They may decide what runs
    /// outside the sandbox.
    pub unrestored: Vec<(PathBuf, String)>,
}

impl ProtectionReport {
    /// Maximum number of paths of each kind that are named in a message between processes.
    const MAX_NAMED: usize = 8;
    /// Maximum length of a path or reason in a message.
    const MAX_LENGTH: usize = 200;
    /// Maximum size of an encoded report.
    pub(in crate::sandbox) const MAX_ENCODED: usize = 3 * Self::MAX_NAMED * (Self::MAX_LENGTH + 2);

    /// Whether nothing was found.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.reverted.is_empty() && self.unrestored.is_empty()
    }

    pub(in crate::sandbox) fn note_reverted(&mut self, path: &Path) {
        if !self.reverted.iter().any(|known| known == path) {
            self.reverted.push(path.to_owned());
        }
    }

    pub(in crate::sandbox) fn note_failure(&mut self, path: &Path, error: &io::Error) {
        // A later attempt may succeed, so only the last state counts.
        self.unrestored.retain(|(known, _)| known != path);
        self.unrestored.push((path.to_owned(), error.to_string()));
    }

    /// Adds what a later check found. What could not be restored earlier is decided by the later check.
    pub(in crate::sandbox) fn followed_by(mut self, later: Self) -> Self {
        later.reverted.iter().for_each(|path| self.note_reverted(path));
        Self { reverted: self.reverted, unrestored: later.unrestored }
    }

    /// Adds what another check found.
    pub(in crate::sandbox) fn add(&mut self, other: Self) {
        other.reverted.iter().for_each(|path| self.note_reverted(path));
        self.unrestored.extend(other.unrestored);
    }

    /// Encodes the report: NUL-terminated strings, each path preceded by its kind.
    pub(in crate::sandbox) fn encode(&self, message: &mut Vec<u8>) {
        let mut push = |mark: u8, text: &[u8]| {
            message.push(mark);
            message.extend(text.iter().filter(|byte| **byte != 0).take(Self::MAX_LENGTH));
            message.push(0);
        };
        for path in self.reverted.iter().take(Self::MAX_NAMED) {
            push(b'R', path.as_os_str().as_encoded_bytes());
        }
        for (path, reason) in self.unrestored.iter().take(Self::MAX_NAMED) {
            push(b'F', path.as_os_str().as_encoded_bytes());
            push(b'W', reason.as_bytes());
        }
    }

    pub(in crate::sandbox) fn decode(message: &[u8]) -> Self {
        let mut report = Self::default();
        for part in message.split(|byte| *byte == 0) {
            let Some((mark, text)) = part.split_first() else { continue };
            let text = String::from_utf8_lossy(text).into_owned();
            match (mark, report.unrestored.last_mut()) {
                (b'R', _) => report.reverted.push(text.into()),
                (b'F', _) => report.unrestored.push((text.into(), String::new())),
                (b'W', Some((_, reason))) => *reason = text,
                _ => {}
            }
        }
        report
    }
}
