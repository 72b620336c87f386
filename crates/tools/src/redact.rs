//! Secrets that are known by value, taken out of texts before anybody is shown them or they are written down.
//!
//! The environment of a command has no secrets to begin with; this is for those that stand in files, in answers of
//! servers, in errors. What is too short to be a secret of worth is left: it would tear holes into plain text.

use std::sync::Arc;

use memchr::memmem::Finder;

/// Shorter values are not looked for.
pub const SHORTEST: usize = 8;
/// More secrets than anybody has; the rest is not looked for.
const MOST: usize = 256;

/// What stands in a secret's place.
const MASK: &str = "[redacted]";

/// The secrets of a run. Cloning shares them.
#[derive(Clone, Default)]
pub struct Secrets(Arc<Vec<Finder<'static>>>);

impl Secrets {
    /// These values, except for the short ones.
    pub fn new<V: AsRef<str>>(values: impl IntoIterator<Item = V>) -> Self {
        let mut known: Vec<String> = values
            .into_iter()
            .flat_map(|value| spellings(value.as_ref().trim()))
            .filter(|value| value.len() >= SHORTEST)
            .collect();
        // The longest first: one may be a part of another.
        known.sort_by(|one, other| other.len().cmp(&one.len()).then(one.cmp(other)));
        known.dedup();
        known.truncate(MOST);
        Self(Arc::new(known.iter().map(|value| Finder::new(value.as_bytes()).into_owned()).collect()))
    }

    /// These and more.
    #[must_use]
    pub fn and(&self, more: &[String]) -> Self {
        let known = self.0.iter().map(|secret| String::from_utf8_lossy(secret.needle()).into_owned());
        Self::new(known.chain(more.iter().cloned()))
    }

    /// Whether a text holds one.
    #[must_use]
    pub fn are_in(&self, text: &str) -> bool {
        self.0.iter().any(|secret| secret.find(text.as_bytes()).is_some())
    }

    /// Takes them out. A text without any is left as it is, and nothing is copied.
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

/// How many there are, and none of them.
impl std::fmt::Debug for Secrets {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Secrets({})", self.0.len())
    }
}

/// A value as it stands, and as it stands in JSON where that differs.
fn spellings(value: &str) -> Vec<String> {
    let quoted = serde_json::to_string(value).unwrap_or_default();
    let inside = quoted.trim_matches('"');
    if inside == value { vec![value.to_owned()] } else { vec![value.to_owned(), inside.to_owned()] }
}

#[cfg(test)]
mod tests;
