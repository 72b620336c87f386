//! Section keys, and paths that join them with dots.

use std::fmt;

use serde::Serialize;

/// Maximum length of a key, in bytes.
const MAX_LENGTH: usize = 64;

/// Path of a section: keys from the root, joined with dots.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct SectionPath(String);

impl SectionPath {
    pub(crate) fn new(parent: Option<&SectionPath>, key: &str) -> Self {
        match parent {
            Some(parent) => Self(format!("{}.{key}", parent.0)),
            None => Self(key.to_owned()),
        }
    }

    /// Returns the path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the paths of the enclosing sections, outermost first.
    pub(crate) fn ancestors(&self) -> impl Iterator<Item = &str> {
        self.0.match_indices('.').map(|(at, _)| &self.0[..at])
    }
}

impl fmt::Display for SectionPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Normalises a key: trimmed and in lower case. The error says why the key is invalid.
pub(crate) fn normalise(key: &str) -> Result<String, String> {
    let normal = key.trim().to_lowercase();
    let legal = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-';
    let first = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    if normal.is_empty() {
        Err("section key is empty".to_owned())
    } else if normal.len() > MAX_LENGTH {
        Err(format!("section key `{normal}` is longer than {MAX_LENGTH} characters"))
    } else if !normal.starts_with(first) || !normal.chars().all(legal) {
        Err(format!(
            "invalid section key `{normal}`: use letters, digits, `_` and `-`, starting with a letter or digit"
        ))
    } else {
        Ok(normal)
    }
}

/// Normalises a path written by a model or a user.
pub(crate) fn normalise_path(path: &str) -> String {
    path.trim().to_lowercase()
}
