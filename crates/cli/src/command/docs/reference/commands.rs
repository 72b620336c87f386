//! The commands page, generated from the argument parser.

use clap::{Arg, Command};

use super::{cell, heading};
use crate::cli;

/// Renders the page.
pub(crate) fn page() -> String {
    let mut text = heading("Commands", "crates/cli/src/command");
    text.push_str(
        "`fusee COMMAND --help` prints the same text. Exit codes: 0 completed, 1 task failed, 2 usage or configuration \
         error, 3 limit reached, 4 model unreachable, 5 review findings at or above --fail-on, 130 cancelled.\n",
    );
    let mut root = cli::command();
    root.build();
    text.push_str("\n## Chat\n");
    text.push_str(CONVERSATION);
    arguments_of(&mut text, &root);
    for (group, names) in cli::GROUPS {
        text.push_str(&format!("\n## {group}\n"));
        for name in *names {
            if let Some(command) = root.find_subcommand(name) {
                section(&mut text, command, &format!("fusee {name}"), 3);
            }
        }
    }
    text
}

/// Description of `fusee` without a command.
const CONVERSATION: &str = "\nIn a terminal, or with piped input, `fusee` without a command opens a chat: \
    each message is a task that continues the conversation. `/help` lists the commands of the chat.\n";

fn section(text: &mut String, command: &Command, path: &str, level: usize) {
    let about = command.get_long_about().or_else(|| command.get_about()).map(ToString::to_string);
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage:").trim().to_owned();
    text.push_str(&format!(
        "\n{} `{path}`\n\n{}\n\n```\n{usage}\n```\n",
        "#".repeat(level),
        paragraphs(about)
    ));
    arguments_of(text, command);
    for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set() && inner.get_name() != "help")
    {
        section(text, inner, &format!("{path} {}", inner.get_name()), level + 1);
    }
}

fn arguments_of(text: &mut String, command: &Command) {
    let arguments: Vec<&Arg> = command
        .get_arguments()
        .filter(|argument| {
            !argument.is_hide_set() && !matches!(argument.get_id().as_str(), "help" | "version")
        })
        .collect();
    if !arguments.is_empty() {
        text.push_str("\n| argument | |\n|---|---|\n");
        for argument in arguments {
            text.push_str(&format!("| `{}` | {} |\n", cell(&name(argument)), cell(&meaning(argument))));
        }
    }
}

/// Joins lines that were wrapped in the source and keeps paragraphs.
fn paragraphs(about: Option<String>) -> String {
    let about = about.unwrap_or_default();
    let parts = about.split("\n\n").map(|part| part.split_whitespace().collect::<Vec<_>>().join(" "));
    parts.collect::<Vec<_>>().join("\n\n")
}

fn name(argument: &Arg) -> String {
    let value = argument
        .get_value_names()
        .map(|names| names.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "));
    let takes_value = argument.get_action().takes_values();
    let value = value.filter(|_| takes_value);
    let flags: Vec<String> = argument
        .get_short()
        .map(|short| format!("-{short}"))
        .into_iter()
        .chain(argument.get_long().map(|long| format!("--{long}")))
        .collect();
    match (flags.as_slice(), value) {
        ([], value) => value.unwrap_or_else(|| argument.get_id().to_string()),
        (flags, Some(value)) => format!("{} {value}", flags.join(", ")),
        (flags, None) => flags.join(", "),
    }
}

fn meaning(argument: &Arg) -> String {
    let mut text = argument.get_help().map(ToString::to_string).unwrap_or_default();
    let words: Vec<String> = argument
        .get_possible_values()
        .iter()
        .filter(|value| !value.is_hide_set())
        .map(|value| format!("`{}`", value.get_name()))
        .collect();
    if !words.is_empty() && argument.get_action().takes_values() {
        text.push_str(&format!(" ({})", words.join(", ")));
    }
    let defaults: Vec<String> =
        argument.get_default_values().iter().map(|value| value.to_string_lossy().into_owned()).collect();
    if !defaults.is_empty() && argument.get_action().takes_values() {
        text.push_str(&format!(" [default: {}]", defaults.join(", ")));
    }
    text
}
