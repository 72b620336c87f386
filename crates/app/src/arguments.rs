//! What was typed. Each command's own arguments are in its file under [`crate::command`]; what several share is
//! in [`shared`]. What is needed to do it is worked out there, from this, the configuration and the environment.

pub(crate) mod shared;

use std::ffi::OsString;
use std::fmt::Write as _;
use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _, Parser};

use crate::command::converse::ConverseArgs;
use crate::command::{Command, Tools};

#[cfg(test)]
mod tests;

/// Tasks for language models: journaled step by step, resumable after a crash, replayable in a test.
#[derive(Parser)]
#[command(name = "fusee", version, help_template = TEMPLATE, max_term_width = 100)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Typed {
    #[command(flatten)]
    pub(crate) conversation: ConverseArgs,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// The list of commands is ours: the short help shows a choice, the long one groups all.
const TEMPLATE: &str = "{about-with-newline}\n{usage-heading} {usage}{after-help}";

/// The commands of the short help.
const SHORT: &[&str] = &["demo", "run", "resume", "runs", "show", "config", "doctor", "init"];

/// All commands, by what they are about.
pub(crate) const GROUPS: &[(&str, &[&str])] = &[
    (
        "Work",
        &[
            "demo",
            "run",
            "task",
            "review",
            "resume",
            "prompt",
            "templates",
            "match",
            "memory",
            "check",
            "fmt",
        ],
    ),
    ("What was done", &["runs", "show", "replay"]),
    ("Set up", &["init", "config", "trust", "doctor", "models", "completions"]),
];

/// An answer to what was typed that needs no command: help, a version, a complaint.
pub(crate) struct Answer(clap::Error);

impl Answer {
    /// Gives it.
    pub(crate) fn give(&self) -> ExitCode {
        // Where this fails there is nobody left to tell.
        let _ = self.0.print();
        ExitCode::from(u8::try_from(self.0.exit_code()).unwrap_or(2))
    }
}

/// Reads the arguments of the process.
pub(crate) fn read(arguments: impl IntoIterator<Item = OsString>) -> Result<Typed, Answer> {
    let mut command = command();
    let matches = command.try_get_matches_from_mut(arguments).map_err(|error| Answer(with_advice(error)))?;
    Typed::from_arg_matches(&matches).map_err(|error| Answer(error.format(&mut command)))
}

/// The parser with its help.
pub(crate) fn command() -> clap::Command {
    let command = Typed::command();
    let (short, long) = (short_help(&command), long_help(&command));
    command.after_help(short).after_long_help(long)
}

/// What `fusee` alone prints.
pub(crate) fn short_help_text() -> String {
    command().render_help().to_string()
}

fn short_help(command: &clap::Command) -> String {
    let mut text = String::from("Commands:\n");
    SHORT.iter().filter_map(|name| command.find_subcommand(name)).for_each(|entry| line(&mut text, entry));
    text.push_str("\n`fusee` alone opens the conversation in a terminal.\n`fusee COMMAND --help` tells all about a command, `fusee --help` names all commands.");
    text
}

fn long_help(command: &clap::Command) -> String {
    let mut text = String::from(
        "Without a command: the conversation, in a terminal or as plain lines (--plain, or input from a pipe). It\n\
         takes -C, -m, --base-url, --api, --continue, --approve, --sandbox and the limits of `fusee run`.\n\n",
    );
    for (group, names) in GROUPS {
        let _ = writeln!(text, "{group}:");
        names
            .iter()
            .filter_map(|name| command.find_subcommand(name))
            .for_each(|entry| line(&mut text, entry));
        text.push('\n');
    }
    text.push_str(
        "Exit codes: 0 completed, 1 the task failed, 2 wrong usage or configuration, 3 a limit was reached,\n\
         4 the model could not be reached, 130 cancelled.\n\n\
         `fusee COMMAND --help` tells all about a command.",
    );
    text
}

fn line(text: &mut String, entry: &clap::Command) {
    let about = entry.get_about().map(ToString::to_string).unwrap_or_default();
    let _ = writeln!(text, "  {:<12} {about}", entry.get_name());
}

impl Typed {
    /// What it does with a model's tools.
    pub(crate) fn tools(&self) -> Tools {
        // A conversation runs them; without a terminal it may come to no more than a help text.
        self.command.as_ref().map_or(Tools::Examined, Command::tools)
    }
}

/// A word too many is mostly a request without quotes.
fn with_advice(mut error: clap::Error) -> clap::Error {
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    let is_word = matches!(error.get(ContextKind::InvalidArg), Some(ContextValue::String(word)) if !word.starts_with('-'));
    if error.kind() == ErrorKind::UnknownArgument && is_word {
        let advice = "a request is one argument: put it into quotes";
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![advice.to_owned().into()]));
    }
    error
}
