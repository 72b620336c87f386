//! Placeholders in file-listing commands: each becomes exactly one shell word, whatever its value contains.
//!
//! Values are put into single quotes. That yields one word only where the shell reads words, so a placeholder
//! inside the command's own quotes, a comment or a here-document, or right after `\` or `$`, is rejected.

use serde_json::{Map, Value};

use super::placeholder::{Part, parts, shown, value_of};

/// Suggested fix for every rejection.
pub(crate) const ADVICE: &str = "write it unquoted, as a separate word: its value is quoted for the shell";

/// Lexical context within a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Where {
    Words,
    SingleQuotes,
    DoubleQuotes,
    Backquotes,
    Comment,
}

/// Tracks the lexical context while scanning a command.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    stands: Where,
    /// The previous character, unless it was escaped.
    last: Option<char>,
    /// A here-document or a non-portable kind of quotes was seen; the context after it is uncertain.
    odd: Option<&'static str>,
}

impl Reading {
    pub(crate) fn new() -> Self {
        Self { stands: Where::Words, last: None, odd: None }
    }

    /// Scans text of the command itself.
    pub(crate) fn pass(&mut self, text: &str) {
        for c in text.chars() {
            self.next(c);
        }
    }

    /// Scans a quoted value.
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

    /// Returns where the placeholder is, if it is not allowed there.
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

/// Fills in the command with every placeholder as one shell word. Problems are added to `problems`.
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
                        told(format!("`{{{{{path}}}}}` is {place} in a command: {ADVICE}"));
                    }
                    (Some(value), None) => filled.push_str(&quoted(&shown(value))),
                }
                reading.pass_word();
            }
        }
    }
    filled
}

/// Quotes a value as one shell word.
fn quoted(value: &str) -> String {
    format!("'{}'", value.replace('\'', r"'\''"))
}
