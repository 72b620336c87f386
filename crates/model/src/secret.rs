//! A value that must not be seen: keys. It has no `Display`, no `Serialize`, and its `Debug` tells nothing.

use std::fmt;

/// An API key or another value that never leaves the process except to its server.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Secret(String);

impl Secret {
    /// Wraps a secret.
    pub fn new(value: impl Into<String>) -> Self {
        Secret(value.into())
    }

    /// The secret itself, for the one place that sends it.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// `text` with every occurrence of the secret blotted out. A server may quote a key back in its error.
    pub fn blot(&self, text: &str) -> String {
        // A secret this short would blot ordinary words, and is no secret.
        if self.0.len() < 4 { text.to_owned() } else { text.replace(&self.0, "[key]") }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret([key])")
    }
}
