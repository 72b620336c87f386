//! Selects the hooks of an event: a regular expression that has to match the whole name.

use regex::{Regex, RegexBuilder};

use super::tool_names::{self, OtherName};

/// Maximum size of a compiled matcher in bytes.
const MAX_SIZE: usize = 1 << 20;

/// Why a matcher cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct MatcherError(String);

/// A compiled matcher.
#[derive(Clone, Debug)]
pub(super) struct HookMatcher(Option<Regex>);

/// How a matcher fits a name.
#[derive(Clone, Copy)]
pub(super) enum Fit {
    /// It matches the name itself, or everything.
    Own,
    /// It matches only the name of the tool in Claude Code.
    Other(&'static OtherName),
    /// It matches only the name of an MCP server's tool in Claude Code and Codex.
    Mcp,
}

impl HookMatcher {
    /// Compiles a matcher; none, an empty one and `*` match everything.
    pub(super) fn new(matcher: Option<&str>) -> Result<Self, MatcherError> {
        let Some(pattern) = matcher.filter(|matcher| !matcher.is_empty() && *matcher != "*") else {
            return Ok(Self(None));
        };
        let whole = RegexBuilder::new(&format!("^(?:{pattern})$")).size_limit(MAX_SIZE).build();
        whole.map(|regex| Self(Some(regex))).map_err(|error| {
            // The position is that in our whole pattern, and the last line says what is wrong.
            let text = error.to_string();
            let problem = text.lines().last().unwrap_or_default().trim_start_matches("error: ");
            MatcherError(problem.to_owned())
        })
    }

    /// Whether it fits a name. A tool has the names of Claude Code as well; `mcp_name` is that of a server's tool.
    pub(super) fn fit(&self, name: &str, mcp_name: Option<&str>) -> Option<Fit> {
        let Some(regex) = &self.0 else { return Some(Fit::Own) };
        if regex.is_match(name) {
            return Some(Fit::Own);
        }
        if mcp_name.is_some_and(|name| regex.is_match(name)) {
            return Some(Fit::Mcp);
        }
        tool_names::others(name).find(|other| regex.is_match(other.theirs)).map(Fit::Other)
    }
}
