//! What the last word of a command line can be, read from the parser: a command, a flag, or the value of an argument.

use clap::{Arg, Command};

/// Where the last word stands.
#[derive(Debug)]
pub(super) struct Position<'c> {
    /// The command that the words before it name.
    pub(super) command: &'c Command,
    /// What it can be.
    pub(super) expects: Expects<'c>,
    /// Part of the word that is to be completed.
    pub(super) typed: String,
    /// Part of the word before it, such as `--model=`.
    pub(super) prefix: String,
    /// Arguments that the words before it give, with their values.
    pub(super) given: Vec<(&'c Arg, String)>,
}

/// What a word can be.
#[derive(Debug)]
pub(super) enum Expects<'c> {
    /// A flag of the command.
    Flag,
    /// The value of an argument.
    Value(&'c Arg),
    /// A subcommand or the value of the next positional argument, as far as there are any.
    Word { subcommand: bool, argument: Option<&'c Arg> },
}

impl<'c> Position<'c> {
    /// Finds the position of `typed` after the words `before`.
    pub(super) fn find(root: &'c Command, before: &[String], typed: &str) -> Self {
        let mut line =
            Line { command: root, pending: None, only_values: false, positionals: 0, given: Vec::new() };
        for word in before {
            line.read(word);
        }
        let Line { command, pending, only_values, positionals, given } = line;
        let position = |expects, prefix: &str, typed: &str| Self {
            command,
            expects,
            typed: typed.to_owned(),
            prefix: prefix.to_owned(),
            given: given.clone(),
        };
        if let Some(argument) = pending.filter(|argument| needs_value(argument) || !typed.starts_with('-')) {
            return position(Expects::Value(argument), "", typed);
        }
        if !only_values && typed.starts_with('-') {
            let with_value = typed.split_once('=').and_then(|(flag, value)| {
                let argument = long(command, flag.strip_prefix("--")?)?;
                Some((argument, flag, value))
            });
            return match with_value {
                Some((argument, flag, value)) => {
                    position(Expects::Value(argument), &format!("{flag}="), value)
                }
                None => position(Expects::Flag, "", typed),
            };
        }
        let subcommand = positionals == 0 && !only_values && command.has_subcommands();
        position(Expects::Word { subcommand, argument: positional(command, positionals) }, "", typed)
    }

    /// The value given to the argument with this id.
    pub(super) fn value(&self, id: &str) -> Option<&str> {
        self.given.iter().find(|(argument, _)| argument.get_id() == id).map(|(_, value)| value.as_str())
    }
}

/// The words read so far.
struct Line<'c> {
    command: &'c Command,
    /// The argument whose value the next word is, or may be.
    pending: Option<&'c Arg>,
    /// Whether `--` was given.
    only_values: bool,
    positionals: usize,
    given: Vec<(&'c Arg, String)>,
}

impl<'c> Line<'c> {
    fn read(&mut self, word: &str) {
        if let Some(argument) = self.pending.take()
            && (needs_value(argument) || !word.starts_with('-'))
        {
            self.given.push((argument, word.to_owned()));
        } else if self.only_values {
            self.value(word);
        } else if word == "--" {
            self.only_values = true;
        } else if let Some(flag) = word.strip_prefix("--") {
            match flag.split_once('=') {
                Some((flag, value)) => {
                    self.given.extend(long(self.command, flag).map(|argument| (argument, value.to_owned())));
                }
                None => self.pending = long(self.command, flag).filter(|argument| takes_value(argument)),
            }
        } else if let Some(letters) = word.strip_prefix('-').filter(|letters| !letters.is_empty()) {
            self.short(letters);
        } else {
            self.value(word);
        }
    }

    /// Reads `-abVALUE`.
    fn short(&mut self, letters: &str) {
        for (at, letter) in letters.char_indices() {
            let found = self.command.get_arguments().find(|argument| argument.get_short() == Some(letter));
            let Some(argument) = found.filter(|argument| takes_value(argument)) else { continue };
            match &letters[at + letter.len_utf8()..] {
                "" => self.pending = Some(argument),
                value => self.given.push((argument, value.to_owned())),
            }
            return;
        }
    }

    fn value(&mut self, word: &str) {
        let subcommand =
            self.command.find_subcommand(word).filter(|_| self.positionals == 0 && !self.only_values);
        if let Some(subcommand) = subcommand {
            self.command = subcommand;
            return;
        }
        self.given
            .extend(positional(self.command, self.positionals).map(|argument| (argument, word.to_owned())));
        self.positionals += 1;
    }
}

fn takes_value(argument: &Arg) -> bool {
    argument.get_action().takes_values()
}

/// Whether the word after the flag is always its value.
fn needs_value(argument: &Arg) -> bool {
    argument.get_num_args().is_none_or(|number| number.min_values() > 0)
}

fn long<'c>(command: &'c Command, name: &str) -> Option<&'c Arg> {
    command.get_arguments().find(|argument| argument.get_long() == Some(name))
}

/// The positional argument that takes the word after `count` others; the last one may take several.
fn positional(command: &Command, count: usize) -> Option<&Arg> {
    let mut all: Vec<&Arg> = command.get_positionals().collect();
    all.sort_by_key(|argument| argument.get_index());
    let repeats = |argument: &&&Arg| argument.get_num_args().is_some_and(|number| number.max_values() > 1);
    all.get(count).or_else(|| all.last().filter(repeats)).copied()
}
