//! Approval rules: decisions by command prefix, and approvals given for more than one call. Data and a pure
//! function; the gate asks the user.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::shell_words::CommandLine;

/// Maximum number of rules per run or project; the oldest are dropped first.
const MOST: usize = 500;

/// Decision about a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleDecision {
    /// Run it without asking.
    Allow,
    /// Ask for approval.
    Ask,
    /// Refuse the call.
    Deny,
}

/// The calls a rule applies to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleSubject {
    /// Commands that begin with these words. In a line of several commands, each is matched separately.
    Prefix(Vec<String>),
    /// Exactly this command line.
    Line(String),
    /// All calls of a tool that runs no commands.
    Tool(String),
}

/// A decision about some calls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalRule {
    /// The calls it applies to.
    pub about: RuleSubject,
    /// The decision.
    pub then: RuleDecision,
}

impl ApprovalRule {
    /// A rule for commands that begin with these words; `None` if the text is not a simple command.
    #[must_use]
    pub fn of_prefix(text: &str, then: RuleDecision) -> Option<Self> {
        let mut line = CommandLine::read(text);
        let plain = line.whole && line.commands.len() == 1;
        plain.then(|| Self { about: RuleSubject::Prefix(line.commands.remove(0)), then })
    }

    /// Whether it applies to a command of this line.
    #[must_use]
    pub fn matches(&self, line: &str) -> bool {
        let read = CommandLine::read(line);
        match &self.about {
            RuleSubject::Prefix(prefix) => {
                let commands =
                    if self.then == RuleDecision::Allow { &read.commands } else { &read.effective };
                commands.iter().any(|command| begins(command, prefix, self.then))
            }
            RuleSubject::Line(known) => known == line,
            RuleSubject::Tool(_) => false,
        }
    }
}

/// Rules from before the run and those added during it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ApprovalRules(Vec<ApprovalRule>);

impl ApprovalRules {
    /// Collects rules, without duplicates.
    pub fn new(rules: impl IntoIterator<Item = ApprovalRule>) -> Self {
        let mut all = Self::default();
        rules.into_iter().for_each(|rule| all.add(rule));
        all
    }

    /// Adds a rule unless it exists; drops the oldest if there are too many.
    pub fn add(&mut self, rule: ApprovalRule) {
        if self.0.contains(&rule) {
            return;
        }
        if self.0.len() >= MOST {
            self.0.remove(0);
        }
        self.0.push(rule);
    }

    /// Iterates over the rules, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &ApprovalRule> {
        self.0.iter()
    }

    /// Whether there are no rules.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The decision about a call; `None` if the rules do not cover all of it.
    pub(crate) fn decide(&self, tool: &str, arguments: &Value) -> Option<RuleDecision> {
        if self.0.is_empty() {
            return None;
        }
        match arguments.get("command").and_then(Value::as_str) {
            Some(line) => self.decide_line(line),
            None => {
                let about =
                    |rule: &&ApprovalRule| matches!(&rule.about, RuleSubject::Tool(name) if name == tool);
                self.0.iter().filter(about).map(|rule| rule.then).max()
            }
        }
    }

    /// The strictest decision about any command of the line, in whatever position. An approval counts only if
    /// the line is understood completely and every command of it is allowed. If there are denied commands and
    /// it cannot be told what the line runs, the user is asked.
    fn decide_line(&self, line: &str) -> Option<RuleDecision> {
        let exact = |rule: &&ApprovalRule| matches!(&rule.about, RuleSubject::Line(known) if known == line);
        if let Some(rule) = self.0.iter().rev().find(exact) {
            return Some(rule.then);
        }
        let read = CommandLine::read(line);
        let strictest = read.effective.iter().filter_map(|command| self.decide_command(command)).max();
        let denies = |rule: &ApprovalRule| rule.then == RuleDecision::Deny;
        match strictest {
            Some(RuleDecision::Deny) => Some(RuleDecision::Deny),
            _ if read.opaque && self.0.iter().any(denies) => Some(RuleDecision::Ask),
            Some(RuleDecision::Allow) => {
                let is_allowed = |command: &Vec<String>| self.decide_command(command).is_some();
                let all = read.whole && read.commands.iter().all(is_allowed);
                all.then_some(RuleDecision::Allow)
            }
            other => other,
        }
    }

    /// The rule with the longest prefix wins; of several, the strictest.
    fn decide_command(&self, command: &[String]) -> Option<RuleDecision> {
        let fitting = self.0.iter().filter_map(|rule| match &rule.about {
            RuleSubject::Prefix(prefix) if begins(command, prefix, rule.then) => {
                Some((prefix.len(), rule.then))
            }
            _ => None,
        });
        fitting.max().map(|(_, then)| then)
    }
}

/// Whether a command begins with these words. A rule that does not allow also matches the program by its full
/// path, and its further words behind options: `git -C . push` is a `git push`.
fn begins(command: &[String], prefix: &[String], then: RuleDecision) -> bool {
    let (Some((program, arguments)), Some((first, wanted))) = (command.split_first(), prefix.split_first())
    else {
        return false;
    };
    if then == RuleDecision::Allow {
        return program == first && arguments.starts_with(wanted);
    }
    let named = program.rsplit('/').next().unwrap_or(program);
    let mut wanted = wanted.iter().peekable();
    let mut after_option = false;
    for word in arguments {
        let Some(next) = wanted.peek() else { break };
        let is_option = word.starts_with('-');
        if word == *next {
            wanted.next();
        } else if !is_option && !after_option {
            // An argument that is neither an option nor an option's own.
            break;
        }
        after_option = is_option;
    }
    (program == first || named == first) && wanted.next().is_none()
}

/// The rules for a lasting approval: each command of the line with all its words, or the exact line if it
/// cannot be parsed, or the tool.
pub(crate) fn lasting(tool: &str, arguments: &Value) -> Vec<ApprovalRule> {
    let rule = |about: RuleSubject| ApprovalRule { about, then: RuleDecision::Allow };
    let Some(line) = arguments.get("command").and_then(Value::as_str) else {
        return vec![rule(RuleSubject::Tool(tool.to_owned()))];
    };
    let read = CommandLine::read(line);
    if !read.whole || read.commands.is_empty() {
        return vec![rule(RuleSubject::Line(line.to_owned()))];
    }
    read.commands.into_iter().map(|words| rule(RuleSubject::Prefix(words))).collect()
}

#[cfg(test)]
mod tests;
