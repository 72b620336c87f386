//! What the user has decided about calls before they come: rules by the first words of a command, and answers that
//! were given for longer than one call. Data and a pure function; asking is the gate's.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::line::CommandLine;

/// Decisions of one run or project at most; the oldest go first.
const MOST: usize = 500;

/// What is done with a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// It runs without a question.
    Allow,
    /// A person is asked.
    Ask,
    /// It is refused.
    Deny,
}

/// What a rule is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum About {
    /// Commands that begin with these words. A line of several commands is looked at command by command.
    Prefix(Vec<String>),
    /// This command line and no other.
    Line(String),
    /// All calls of a tool that runs no commands.
    Tool(String),
}

/// A decision about some calls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    /// Which.
    pub about: About,
    /// What is done.
    pub then: Decision,
}

impl Rule {
    /// A rule about commands that begin with the words of this text; `None` if it is no plain beginning of a command.
    #[must_use]
    pub fn of_prefix(text: &str, then: Decision) -> Option<Self> {
        let mut line = CommandLine::read(text);
        let plain = line.whole && line.commands.len() == 1;
        plain.then(|| Self { about: About::Prefix(line.commands.remove(0)), then })
    }

    /// Whether it is about a command of this line.
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

/// Decisions, the ones made before the run and those made in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Rules(Vec<Rule>);

impl Rules {
    /// These.
    pub fn new(rules: impl IntoIterator<Item = Rule>) -> Self {
        let mut all = Self::default();
        rules.into_iter().for_each(|rule| all.add(rule));
        all
    }

    /// One more.
    pub fn add(&mut self, rule: Rule) {
        if self.0.contains(&rule) {
            return;
        }
        if self.0.len() >= MOST {
            self.0.remove(0);
        }
        self.0.push(rule);
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Rule> {
        self.0.iter()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What they say about a call: nothing if they do not cover all of it.
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

    /// The strictest decision about any of its commands; one that allows counts only if each command has one.
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

    /// The rule with the most words counts; of two such the stricter.
    fn decide_command(&self, command: &[String]) -> Option<Decision> {
        let fitting = self.0.iter().filter_map(|rule| match &rule.about {
            About::Prefix(prefix) if begins(command, prefix, rule.then) => Some((prefix.len(), rule.then)),
            _ => None,
        });
        fitting.max().map(|(_, then)| then)
    }
}

/// Whether a command begins with these words. What is not allowed is not allowed by its full path either.
fn begins(command: &[String], prefix: &[String], then: Decision) -> bool {
    let (Some(program), Some(first)) = (command.first(), prefix.first()) else { return false };
    let named = program.rsplit('/').next().unwrap_or(program);
    (program == first || (then != Decision::Allow && named == first))
        && command.len() >= prefix.len()
        && command.iter().zip(prefix).skip(1).all(|(word, wanted)| word == wanted)
}

/// What an answer is about that is to last: each command of the line by all its words, or the line itself where that
/// is not understood, or the tool.
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
