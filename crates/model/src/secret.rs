//! Secret values such as keys. A [`Secret`] has no `Display` and no `Serialize`, and its `Debug` reveals
//! nothing.

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

    /// Redacts every occurrence of the secret in `text`. A server may quote a key in its error.
    pub fn redact(&self, text: &str) -> String {
        // Such a short value would match ordinary words and is not a real secret.
        if self.0.len() < 4 { text.to_owned() } else { text.replace(&self.0, "[key]") }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret([key])")
    }
}
