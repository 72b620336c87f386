//! Approval rules: decisions by command prefix, and approvals given for more than one call. Data and a pure
//! function; the gate asks the user.

use fusee_tools::tool::apply_patch;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::shell_words::CommandLine;
use super::{ApprovalExtent, ApprovalQuestion};

/// Maximum number of rules per run or project; the oldest are dropped first.
const MAX_RULES: usize = 500;

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
    /// Exactly this command line, without input and in the workspace's directory.
    Line(String),
    /// All calls of a tool that runs no commands.
    Tool(String),
    /// Calls of a tool that change only this file.
    File {
        /// Its name.
        tool: String,
        /// The file, as the call names it.
        path: String,
    },
    /// Calls of a tool with exactly these arguments, apart from a time limit.
    Call {
        /// Its name.
        tool: String,
        /// Compared as JSON values.
        arguments: Value,
    },
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
            RuleSubject::Tool(_) | RuleSubject::File { .. } | RuleSubject::Call { .. } => false,
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
        if self.0.len() >= MAX_RULES {
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

    /// Removes a rule; returns whether it was there.
    pub fn remove(&mut self, rule: &ApprovalRule) -> bool {
        let before = self.0.len();
        self.0.retain(|other| other != rule);
        self.0.len() < before
    }

    /// Whether the rules allow a call without a question.
    #[must_use]
    pub fn allow(&self, question: &ApprovalQuestion) -> bool {
        self.decide(&question.name, &question.arguments) == Some(RuleDecision::Allow)
    }

    /// The decision about a call; `None` if the rules do not cover all of it.
    pub(crate) fn decide(&self, tool: &str, arguments: &Value) -> Option<RuleDecision> {
        if self.0.is_empty() {
            return None;
        }
        if let Some(decision) = self.decide_exact(tool, arguments) {
            return Some(decision);
        }
        match arguments.get("command").and_then(Value::as_str) {
            Some(line) => self.decide_line(line),
            None => {
                let about =
                    |rule: &&ApprovalRule| matches!(&rule.about, RuleSubject::Tool(name) if name == tool);
                let by_name = self.0.iter().filter(about).map(|rule| rule.then).max();
                by_name.or_else(|| self.decide_files(tool, arguments))
            }
        }
    }

    /// The newest rule about exactly this call.
    fn decide_exact(&self, tool: &str, arguments: &Value) -> Option<RuleDecision> {
        let line = plain_line(arguments);
        let exact = |rule: &&ApprovalRule| match &rule.about {
            RuleSubject::Line(known) => line == Some(known.as_str()),
            RuleSubject::Call { tool: name, arguments: known } => {
                name == tool && *known == without_time_limit(arguments)
            }
            RuleSubject::Prefix(_) | RuleSubject::Tool(_) | RuleSubject::File { .. } => false,
        };
        self.0.iter().rev().find(exact).map(|rule| rule.then)
    }

    /// An approval if every file that the call changes is approved for the tool.
    fn decide_files(&self, tool: &str, arguments: &Value) -> Option<RuleDecision> {
        let paths = changed_paths(tool, arguments);
        let approved = |path: &String| {
            self.0.iter().any(|rule| {
                rule.then == RuleDecision::Allow
                    && matches!(&rule.about, RuleSubject::File { tool: name, path: known } if name == tool && known == path)
            })
        };
        (!paths.is_empty() && paths.iter().all(approved)).then_some(RuleDecision::Allow)
    }

    /// The strictest decision about any command of the line, in whatever position. An approval counts only if
    /// the line is understood completely and every command of it is allowed. If there are denied commands and
    /// it cannot be told what the line runs, the user is asked.
    fn decide_line(&self, line: &str) -> Option<RuleDecision> {
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

/// Programs that a rule denies whatever their arguments, and that no other rule mentions. The sandbox does not execute
/// them either, so that it does not matter what starts them.
#[must_use]
pub fn denied_programs(rules: &[ApprovalRule]) -> Vec<String> {
    let denied = rules.iter().filter(|rule| rule.then == RuleDecision::Deny);
    let programs = denied.filter_map(|rule| match &rule.about {
        RuleSubject::Prefix(words) if words.len() == 1 => words.first(),
        _ => None,
    });
    let is_mentioned = |program: &&String| {
        rules.iter().filter(|rule| rule.then != RuleDecision::Deny).any(|rule| match &rule.about {
            RuleSubject::Prefix(words) => words.iter().any(|word| word.ends_with(program.as_str())),
            RuleSubject::Line(line) => line.contains(program.as_str()),
            RuleSubject::Tool(_) | RuleSubject::File { .. } | RuleSubject::Call { .. } => false,
        })
    };
    programs.filter(|program| !is_mentioned(program)).cloned().collect()
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

/// The rules that a lasting approval adds. None for a wider extent that does not exist, as for a command line
/// that is not plain words.
pub(crate) fn lasting(tool: &str, arguments: &Value, extent: ApprovalExtent) -> Vec<ApprovalRule> {
    let rule = |about: RuleSubject| ApprovalRule { about, then: RuleDecision::Allow };
    let call = || RuleSubject::Call { tool: tool.to_owned(), arguments: without_time_limit(arguments) };
    match (arguments.get("command").and_then(Value::as_str), extent) {
        (Some(_), ApprovalExtent::Shown) => {
            vec![rule(plain_line(arguments).map_or_else(call, |line| RuleSubject::Line(line.to_owned())))]
        }
        (Some(line), ApprovalExtent::Wider) => {
            let read = CommandLine::read(line);
            let commands = if read.whole { read.commands } else { Vec::new() };
            commands.into_iter().map(|words| rule(RuleSubject::Prefix(words))).collect()
        }
        (None, ApprovalExtent::Shown) => {
            let paths = changed_paths(tool, arguments);
            if paths.is_empty() {
                return vec![rule(call())];
            }
            let file = |path| rule(RuleSubject::File { tool: tool.to_owned(), path });
            paths.into_iter().map(file).collect()
        }
        (None, ApprovalExtent::Wider) => vec![rule(RuleSubject::Tool(tool.to_owned()))],
    }
}

/// The command line of a call that consists of nothing else.
fn plain_line(arguments: &Value) -> Option<&str> {
    let fields = arguments.as_object()?;
    let only = fields.keys().all(|name| name == "command" || TIME_LIMITS.contains(&name.as_str()));
    fields.get("command").filter(|_| only).and_then(Value::as_str)
}

/// Arguments that limit the time of a call and do not change what it does.
const TIME_LIMITS: [&str; 2] = ["timeout", "timeout_s"];

fn without_time_limit(arguments: &Value) -> Value {
    let mut arguments = arguments.clone();
    if let Some(fields) = arguments.as_object_mut() {
        fields.retain(|name, _| !TIME_LIMITS.contains(&name.as_str()));
    }
    arguments
}

/// The files that a call of an editing tool changes; empty for any other tool.
fn changed_paths(tool: &str, arguments: &Value) -> Vec<String> {
    let text = |name: &str| arguments.get(name).and_then(Value::as_str);
    match tool {
        "write_file" | "edit_file" => text("path").map(str::to_owned).into_iter().collect(),
        "apply_patch" => text("patch").map(apply_patch::changed_paths).unwrap_or_default(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests;
