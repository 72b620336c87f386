//! Names of sections: keys, and paths that join them with dots.

use std::fmt;

use serde::Serialize;

/// Longer keys are refused.
const LONGEST: usize = 64;

/// The path of a section: keys from the root, joined with dots.
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

    /// The path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The paths of the sections around this one, the outermost first.
    pub(crate) fn ancestors(&self) -> impl Iterator<Item = &str> {
        self.0.match_indices('.').map(|(at, _)| &self.0[..at])
    }
}

impl fmt::Display for SectionPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A key as it is kept: trimmed and in lower case. The error says what is wrong with it.
pub(crate) fn normalise(key: &str) -> Result<String, String> {
    let normal = key.trim().to_lowercase();
    let legal = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-';
    let first = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    if normal.is_empty() {
        Err("a section has an empty key".to_owned())
    } else if normal.len() > LONGEST {
        Err(format!("the key `{normal}` is longer than {LONGEST} characters"))
    } else if !normal.starts_with(first) || !normal.chars().all(legal) {
        Err(format!(
            "the key `{normal}` is not legal: letters, digits, `_` and `-`, beginning with a letter or a digit"
        ))
    } else {
        Ok(normal)
    }
}

/// A path as a model or a user may write it.
pub(crate) fn normalise_path(path: &str) -> String {
    path.trim().to_lowercase()
}
