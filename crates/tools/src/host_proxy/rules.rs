//! The hosts that commands may reach.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

/// Maximum length of a host name.
const MAX_NAME: usize = 253;

/// Hosts that may be reached by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostRules {
    /// Names such as `crates.io`, or `*.pypi.org` for everything below a name.
    pub allow: Vec<String>,
    /// Whether the user is asked about other hosts.
    #[serde(default)]
    pub ask: bool,
}

/// Why a pattern cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a host name such as crates.io or *.pypi.org")]
pub struct HostPatternError(String);

impl HostRules {
    /// Whether nothing can be reached by these rules.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.allow.is_empty() && !self.ask
    }

    /// Checks a pattern.
    pub fn check(pattern: &str) -> Result<(), HostPatternError> {
        let name = pattern.strip_prefix("*.").unwrap_or(pattern);
        let plain = |label: &str| {
            let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
            !label.is_empty() && label.len() <= 63 && label.chars().all(fits)
        };
        let is_name = !name.is_empty() && name.len() <= MAX_NAME && name.split('.').all(plain);
        if is_name || pattern == "*" || pattern.parse::<IpAddr>().is_ok() {
            Ok(())
        } else {
            Err(HostPatternError(pattern.to_owned()))
        }
    }

    /// Whether a host is allowed.
    #[must_use]
    pub fn allows(&self, host: &str) -> bool {
        let host = normal(host);
        self.allow.iter().any(|pattern| {
            let pattern = normal(pattern);
            match pattern.strip_prefix('*') {
                Some("") => true,
                Some(end) => host.len() > end.len() && host.ends_with(end),
                None => host == pattern,
            }
        })
    }
}

/// A host as it is compared: without case, brackets and the dot of the root.
pub(super) fn normal(host: &str) -> String {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    bare.strip_suffix('.').unwrap_or(bare).to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::HostRules;

    #[test]
    fn a_name_allows_itself_and_a_star_what_is_below() {
        let allow = ["crates.io", "*.pypi.org"].map(str::to_owned).to_vec();
        let rules = HostRules { allow, ask: false };
        for host in ["crates.io", "CRATES.IO.", "files.pypi.org", "a.b.pypi.org"] {
            assert!(rules.allows(host), "{host}");
        }
        for host in [
            "static.crates.io",
            "crates.io.evil.org",
            "evilcrates.io",
            "pypi.org",
            "evilpypi.org",
            ".pypi.org.x",
            "",
        ] {
            assert!(!rules.allows(host), "{host}");
        }
    }

    #[test]
    fn patterns_are_names() {
        for pattern in ["crates.io", "*.pypi.org", "localhost", "a_b.example", "8.8.8.8", "*"] {
            assert_eq!(HostRules::check(pattern), Ok(()), "{pattern}");
        }
        for pattern in
            ["", "https://x.org", "x.org/path", "x.org:443", "a..b", "*x.org", "a.*.org", "a b", "*."]
        {
            assert!(HostRules::check(pattern).is_err(), "{pattern}");
        }
    }
}
