//! Approval rules: decisions by command prefix, and approvals given for more than one call. Data and a pure
//! function; the gate asks the user.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::line::CommandLine;

/// Maximum number of rules per run or project; the oldest are dropped first.
const MOST: usize = 500;

/// Decision about a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
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
pub enum About {
    /// Commands that begin with these words. In a line of several commands, each is matched separately.
    Prefix(Vec<String>),
    /// Exactly this command line.
    Line(String),
    /// All calls of a tool that runs no commands.
    Tool(String),
}

/// A decision about some calls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    /// The calls it applies to.
    pub about: About,
    /// The decision.
    pub then: Decision,
}

impl Rule {
    /// A rule for commands that begin with these words; `None` if the text is not a simple command.
    #[must_use]
    pub fn of_prefix(text: &str, then: Decision) -> Option<Self> {
        let mut line = CommandLine::read(text);
        let plain = line.whole && line.commands.len() == 1;
        plain.then(|| Self { about: About::Prefix(line.commands.remove(0)), then })
    }

    /// Whether it applies to a command of this line.
    #[must_use]
    pub fn matches(&self, line: &str) -> bool {
        let read = CommandLine::read(line);
        match &self.about {
            About::Prefix(prefix) => read.commands.iter().any(|command| begins(command, prefix, self.then)),
            About::Line(known) => known == line,
            About::Tool(_) => false,
        }
    }
}

/// Rules from before the run and those added during it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Rules(Vec<Rule>);

impl Rules {
    /// Collects rules, without duplicates.
    pub fn new(rules: impl IntoIterator<Item = Rule>) -> Self {
        let mut all = Self::default();
        rules.into_iter().for_each(|rule| all.add(rule));
        all
    }

    /// Adds a rule unless it exists; drops the oldest if there are too many.
    pub fn add(&mut self, rule: Rule) {
        if self.0.contains(&rule) {
            return;
        }
        if self.0.len() >= MOST {
            self.0.remove(0);
        }
        self.0.push(rule);
    }

    /// Iterates over the rules, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Rule> {
        self.0.iter()
    }

    /// Whether there are no rules.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The decision about a call; `None` if the rules do not cover all of it.
    pub(crate) fn decide(&self, tool: &str, arguments: &Value) -> Option<Decision> {
        if self.0.is_empty() {
            return None;
        }
        match arguments.get("command").and_then(Value::as_str) {
            Some(line) => self.decide_line(line),
            None => {
                let about = |rule: &&Rule| matches!(&rule.about, About::Tool(name) if name == tool);
                self.0.iter().filter(about).map(|rule| rule.then).max()
            }
        }
    }

    /// The strictest decision about any command of the line; an approval counts only if every command is
    /// allowed.
    fn decide_line(&self, line: &str) -> Option<Decision> {
        let exact = |rule: &&Rule| matches!(&rule.about, About::Line(known) if known == line);
        if let Some(rule) = self.0.iter().rev().find(exact) {
            return Some(rule.then);
        }
        let read = CommandLine::read(line);
        let decisions: Vec<Option<Decision>> =
            read.commands.iter().map(|command| self.decide_command(command)).collect();
        match decisions.iter().flatten().max() {
            Some(Decision::Allow) => {
                let all = read.whole && decisions.iter().all(Option::is_some);
                all.then_some(Decision::Allow)
            }
            other => other.copied(),
        }
    }

    /// The rule with the longest prefix wins; of several, the strictest.
    fn decide_command(&self, command: &[String]) -> Option<Decision> {
        let fitting = self.0.iter().filter_map(|rule| match &rule.about {
            About::Prefix(prefix) if begins(command, prefix, rule.then) => Some((prefix.len(), rule.then)),
            _ => None,
        });
        fitting.max().map(|(_, then)| then)
    }
}

/// Whether a command begins with these words. A rule that does not allow also matches the program by its full
/// path.
fn begins(command: &[String], prefix: &[String], then: Decision) -> bool {
    let (Some(program), Some(first)) = (command.first(), prefix.first()) else { return false };
    let named = program.rsplit('/').next().unwrap_or(program);
    (program == first || (then != Decision::Allow && named == first))
        && command.len() >= prefix.len()
        && command.iter().zip(prefix).skip(1).all(|(word, wanted)| word == wanted)
}

/// The rules for a lasting approval: each command of the line with all its words, or the exact line if it
/// cannot be parsed, or the tool.
pub(crate) fn lasting(tool: &str, arguments: &Value) -> Vec<Rule> {
    let rule = |about: About| Rule { about, then: Decision::Allow };
    let Some(line) = arguments.get("command").and_then(Value::as_str) else {
        return vec![rule(About::Tool(tool.to_owned()))];
    };
    let read = CommandLine::read(line);
    if !read.whole || read.commands.is_empty() {
        return vec![rule(About::Line(line.to_owned()))];
    }
    read.commands.into_iter().map(|words| rule(About::Prefix(words))).collect()
}

#[cfg(test)]
mod tests;
