//! Redacts secrets with known values from texts before they are shown or stored.
//!
//! The environment of commands contains no secrets in the first place; this covers secrets in files, server
//! responses and errors. Values that are too short to be real secrets are not redacted, because that would
//! garble normal text.

use std::sync::Arc;

use memchr::memmem::Finder;

/// Minimum length of a secret in bytes; shorter values are not redacted.
pub const SHORTEST: usize = 8;
/// Maximum number of secrets; further ones are not redacted.
const MAX_SECRETS: usize = 256;

/// Replacement for a secret.
const MASK: &str = "[redacted]";

/// The secrets of a run. Clones share them.
#[derive(Clone, Default)]
pub struct Secrets(Arc<Vec<Finder<'static>>>);

impl Secrets {
    /// Collects the values, without the short ones.
    pub fn new<V: AsRef<str>>(values: impl IntoIterator<Item = V>) -> Self {
        let mut known: Vec<String> = values
            .into_iter()
            .flat_map(|value| spellings(value.as_ref().trim()))
            .filter(|value| value.len() >= SHORTEST)
            .collect();
        // Longest first, because one secret may be part of another.
        known.sort_by(|one, other| other.len().cmp(&one.len()).then(one.cmp(other)));
        known.dedup();
        known.truncate(MAX_SECRETS);
        Self(Arc::new(known.iter().map(|value| Finder::new(value.as_bytes()).into_owned()).collect()))
    }

    /// Returns a set extended by more values.
    #[must_use]
    pub fn and(&self, more: &[String]) -> Self {
        let known = self.0.iter().map(|secret| String::from_utf8_lossy(secret.needle()).into_owned());
        Self::new(known.chain(more.iter().cloned()))
    }

    /// Replaces all secrets. A text without any is neither changed nor copied.
    pub fn remove_from(&self, text: &mut String) {
        for secret in self.0.iter() {
            let Some(first) = secret.find(text.as_bytes()) else { continue };
            let length = secret.needle().len();
            let mut clean = String::with_capacity(text.len());
            let (mut from, mut next) = (0, Some(first));
            while let Some(at) = next {
                clean.push_str(&text[from..at]);
                clean.push_str(MASK);
                from = at + length;
                next = secret.find(&text.as_bytes()[from..]).map(|found| found + from);
            }
            clean.push_str(&text[from..]);
            *text = clean;
        }
    }
}

/// Shows only the number of secrets, never their values.
impl std::fmt::Debug for Secrets {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Secrets({})", self.0.len())
    }
}

/// A value in plain form, and as it appears inside a JSON string if that differs.
fn spellings(value: &str) -> Vec<String> {
    let quoted = serde_json::to_string(value).unwrap_or_default();
    let inside = quoted.trim_matches('"');
    if inside == value { vec![value.to_owned()] } else { vec![value.to_owned(), inside.to_owned()] }
}

#[cfg(test)]
mod tests;
