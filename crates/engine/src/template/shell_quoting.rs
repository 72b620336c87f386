//! Placeholders in file-listing commands: each becomes exactly one shell word, whatever its value contains.
//!
//! Values are put into single quotes. That yields one word only where the shell reads words, so a placeholder
//! inside the command's own quotes, a comment or a here-document, or right after `\` or `$`, is rejected.

use fusee_text::placeholder::{PlaceholderSyntax, TextPart, parse};
use serde_json::{Map, Value};

use super::render::{shown, value_of};

/// Suggested fix for every rejection.
pub(crate) const ADVICE: &str = "write it unquoted, as a separate word: its value is quoted for the shell";

/// Lexical context within a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum QuoteContext {
    Words,
    SingleQuotes,
    DoubleQuotes,
    Backquotes,
    Comment,
}

/// Tracks the lexical context while scanning a command.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CommandReader {
    stands: QuoteContext,
    /// The previous character, unless it was escaped.
    last: Option<char>,
    /// A here-document or a non-portable kind of quotes was seen; the context after it is uncertain.
    odd: Option<&'static str>,
}

impl CommandReader {
    pub(crate) fn new() -> Self {
        Self { stands: QuoteContext::Words, last: None, odd: None }
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
        let escaped = self.last == Some('\\')
            && !matches!(self.stands, QuoteContext::SingleQuotes | QuoteContext::Comment);
        if escaped {
            self.last = Some('x');
            return;
        }
        let starts_word = self.last.is_none_or(|last| last.is_whitespace() || ";&|()".contains(last));
        match (self.stands, c) {
            (QuoteContext::Words, '\'') => {
                if self.last == Some('$') {
                    self.odd = Some("after quotes that begin with `$'`");
                }
                self.stands = QuoteContext::SingleQuotes;
            }
            (QuoteContext::Words, '"') => self.stands = QuoteContext::DoubleQuotes,
            (QuoteContext::Words, '`') => self.stands = QuoteContext::Backquotes,
            (QuoteContext::Words, '#') if starts_word => self.stands = QuoteContext::Comment,
            (QuoteContext::Words, '<') if self.last == Some('<') => self.odd = Some("after a here-document"),
            (QuoteContext::SingleQuotes, '\'')
            | (QuoteContext::DoubleQuotes, '"')
            | (QuoteContext::Backquotes, '`')
            | (QuoteContext::Comment, '\n') => self.stands = QuoteContext::Words,
            _ => {}
        }
        self.last = Some(c);
    }

    /// Returns where the placeholder is, if it is not allowed there.
    pub(crate) fn refusal(&self) -> Option<&'static str> {
        match (self.stands, self.last) {
            (QuoteContext::SingleQuotes, _) => Some("inside single quotes"),
            (QuoteContext::DoubleQuotes, _) => Some("inside double quotes"),
            (QuoteContext::Backquotes, _) => Some("inside backquotes"),
            (QuoteContext::Comment, _) => Some("inside a comment"),
            (QuoteContext::Words, Some('\\')) => Some("right after a `\\`"),
            (QuoteContext::Words, Some('$')) => Some("right after a `$`"),
            (QuoteContext::Words, _) => self.odd,
        }
    }
}

/// Fills in the command with every placeholder as one shell word. Problems are added to `problems`.
pub(crate) fn fill_command(text: &str, inputs: &Map<String, Value>, problems: &mut Vec<String>) -> String {
    let (mut filled, mut reading) = (String::with_capacity(text.len()), CommandReader::new());
    let mut report = |problem: String| {
        if !problems.contains(&problem) {
            problems.push(problem);
        }
    };
    for part in parse(text, PlaceholderSyntax::Braces) {
        match part {
            TextPart::Text(text) | TextPart::Malformed { text, .. } => {
                reading.pass(text);
                filled.push_str(text);
            }
            TextPart::Name(name) => {
                let path = name.path();
                match (value_of(&name, inputs), reading.refusal()) {
                    (None, _) => report(format!("`{{{{{path}}}}}` has no value")),
                    (Some(_), Some(place)) => {
                        report(format!("`{{{{{path}}}}}` is {place} in a command: {ADVICE}"));
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
