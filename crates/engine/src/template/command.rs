//! Placeholders in a command that lists files: each stands for one word of the shell, whatever its value holds.
//!
//! A value is put into single quotes. That makes one word only where the shell reads words, so a placeholder inside
//! of the command's own quotes, a comment, a here-document or right after `\` or `$` is refused.

use serde_json::{Map, Value};

use super::placeholder::{Part, parts, shown, value_of};

/// What every refusal says to do.
pub(crate) const ADVICE: &str =
    "write it without quotes, as a word of its own: its value is quoted for the shell";

/// Where in a command the reading of a text stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Where {
    Words,
    SingleQuotes,
    DoubleQuotes,
    Backquotes,
    Comment,
}

/// Reads the text of a command, piece by piece, and knows what a word would stand in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    stands: Where,
    /// The character before, if it is not escaped itself.
    last: Option<char>,
    /// A here-document or quotes of a kind that only some shells have: nothing after it is sure.
    odd: Option<&'static str>,
}

impl Reading {
    pub(crate) fn new() -> Self {
        Self { stands: Where::Words, last: None, odd: None }
    }

    /// Goes on over text that is the command's own.
    pub(crate) fn pass(&mut self, text: &str) {
        for c in text.chars() {
            self.next(c);
        }
    }

    /// Goes on over a value in its quotes.
    pub(crate) fn pass_word(&mut self) {
        self.last = Some('x');
    }

    fn next(&mut self, c: char) {
        let escaped = self.last == Some('\\') && !matches!(self.stands, Where::SingleQuotes | Where::Comment);
        if escaped {
            self.last = Some('x');
            return;
        }
        let starts_word = self.last.is_none_or(|last| last.is_whitespace() || ";&|()".contains(last));
        match (self.stands, c) {
            (Where::Words, '\'') => {
                if self.last == Some('$') {
                    self.odd = Some("after quotes that begin with `$'`");
                }
                self.stands = Where::SingleQuotes;
            }
            (Where::Words, '"') => self.stands = Where::DoubleQuotes,
            (Where::Words, '`') => self.stands = Where::Backquotes,
            (Where::Words, '#') if starts_word => self.stands = Where::Comment,
            (Where::Words, '<') if self.last == Some('<') => self.odd = Some("after a here-document"),
            (Where::SingleQuotes, '\'')
            | (Where::DoubleQuotes, '"')
            | (Where::Backquotes, '`')
            | (Where::Comment, '\n') => self.stands = Where::Words,
            _ => {}
        }
        self.last = Some(c);
    }

    /// Why a placeholder may not stand here: where it is.
    pub(crate) fn refusal(&self) -> Option<&'static str> {
        match (self.stands, self.last) {
            (Where::SingleQuotes, _) => Some("inside single quotes"),
            (Where::DoubleQuotes, _) => Some("inside double quotes"),
            (Where::Backquotes, _) => Some("inside backquotes"),
            (Where::Comment, _) => Some("inside a comment"),
            (Where::Words, Some('\\')) => Some("right after a `\\`"),
            (Where::Words, Some('$')) => Some("right after a `$`"),
            (Where::Words, _) => self.odd,
        }
    }
}

/// The command with every placeholder as one word of the shell. What is wrong is added to the problems.
pub(crate) fn fill_command(text: &str, inputs: &Map<String, Value>, problems: &mut Vec<String>) -> String {
    let (mut filled, mut reading) = (String::with_capacity(text.len()), Reading::new());
    let mut told = |problem: String| {
        if !problems.contains(&problem) {
            problems.push(problem);
        }
    };
    for part in parts(text) {
        match part {
            Part::Text(text) => {
                reading.pass(text);
                filled.push_str(text);
            }
            Part::Braces => {
                reading.pass("{{");
                filled.push_str("{{");
            }
            Part::Name { name, fields, .. } => {
                let value = value_of(name, &fields, inputs);
                let path: Vec<&str> = std::iter::once(name).chain(fields).collect();
                let path = path.join(".");
                match (value, reading.refusal()) {
                    (None, _) => told(format!("`{{{{{path}}}}}` has no value")),
                    (Some(_), Some(place)) => {
                        told(format!("`{{{{{path}}}}}` stands {place} in a command: {ADVICE}"));
                    }
                    (Some(value), None) => filled.push_str(&quoted(&shown(value))),
                }
                reading.pass_word();
            }
        }
    }
    filled
}

/// A value as one word of the shell.
fn quoted(value: &str) -> String {
    format!("'{}'", value.replace('\'', r"'\''"))
}
