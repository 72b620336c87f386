//! Positions in a command line, from the real parser.

use super::position::{Expects, Position};
use crate::cli;

/// What the last word of a line can be.
fn position(line: &str) -> String {
    let mut command = cli::command();
    command.build();
    let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
    let (typed, before) = words.split_last().unwrap();
    let found = Position::find(&command, before, typed);
    let name = |argument: &clap::Arg| {
        let names = argument.get_value_names().unwrap_or_default();
        names.first().map(ToString::to_string).unwrap_or_default()
    };
    let what = match found.expects {
        Expects::Flag => "flag".to_owned(),
        Expects::Value(argument) => format!("value {}", name(argument)),
        Expects::Word { subcommand, argument } => {
            let argument = argument.map(|argument| format!(" or {}", name(argument))).unwrap_or_default();
            format!("{}{argument}", if subcommand { "command" } else { "word" })
        }
    };
    let prefix = if found.prefix.is_empty() { String::new() } else { format!(" after {}", found.prefix) };
    format!("{}: {what}{prefix}", found.command.get_name())
}

#[test]
fn the_parser_says_what_a_word_can_be() {
    for (line, expected) in [
        ("", "fusee: command"),
        ("sho", "fusee: command"),
        ("--", "fusee: flag"),
        ("-m ", "fusee: value MODEL"),
        ("show ", "show: word or RUN"),
        ("show --json ", "show: word or RUN"),
        ("show abc ", "show: word"),
        ("runs ", "runs: command"),
        ("runs undo ", "undo: word or RUN"),
        ("runs diff abc ", "diff: word or OTHER"),
        ("run -m ", "run: value MODEL"),
        ("run -mabc ", "run: word or REQUEST"),
        ("run --model=oll", "run: value MODEL after --model="),
        ("run --model x --flow st", "run: value MODE"),
        ("run --continue ", "run: value RUN"),
        ("run --continue --fl", "run: flag"),
        ("run --template t -i ", "run: value KEY=VALUE"),
        ("task ", "task: word or TASK"),
        ("task --dry-run greet a=1 ", "task: word or KEY=VALUE"),
        ("task -- --x", "task: word or TASK"),
    ] {
        assert_eq!(position(line), expected, "{line}");
    }
}
