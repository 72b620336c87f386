//! Resolving references in text: the five predefined entities and numeric character references.

use super::{Reader, is_legal};
use crate::Span;

/// Maximum length of a reference in bytes, including `&` and `;`.
const MAX_LENGTH: usize = 12;

impl Reader<'_> {
    /// The text from `start` to `end` with references resolved and line endings normalized to `\n`. Invalid
    /// references are reported and left as written; illegal characters are reported and dropped.
    pub(super) fn resolved(&mut self, start: usize, end: usize) -> String {
        let raw = &self.text[start..end];
        let mut text = String::with_capacity(raw.len());
        let mut characters = raw.char_indices().peekable();
        while let Some((at, c)) = characters.next() {
            match c {
                '\r' => {
                    // Both `\r\n` and a lone `\r` are normalized to `\n`.
                    characters.next_if(|(_, next)| *next == '\n');
                    text.push('\n');
                }
                '&' => match reference(&raw[at..]) {
                    Ok((value, length)) => {
                        text.push(value);
                        while characters.next_if(|(next, _)| *next < at + length).is_some() {}
                    }
                    Err((problem, length)) => {
                        let span = Span::new(start + at, start + at + length);
                        let help = "write `&amp;` for a literal `&`".to_owned();
                        self.report("xml-reference", span, problem, Some(help));
                        text.push('&');
                    }
                },
                c if is_legal(c) => text.push(c),
                c => {
                    let span = Span::new(start + at, start + at + c.len_utf8());
                    let message = format!("character U+{:04X} is not allowed in XML", u32::from(c));
                    self.report("xml-character", span, message, None);
                }
            }
        }
        text
    }
}

/// The character denoted by the reference at the start of `text` and the reference's length, or a message and
/// the length to mark.
fn reference(text: &str) -> Result<(char, usize), (String, usize)> {
    let length = text.bytes().take(MAX_LENGTH).position(|byte| byte == b';').map(|at| at + 1);
    let Some(length) = length else { return Err(("`&` does not start a reference".to_owned(), 1)) };
    let Some(name) = text.get(1..length - 1) else {
        return Err(("`&` does not start a reference".to_owned(), 1));
    };
    let number = match name.strip_prefix('#') {
        Some(digits) => match digits.strip_prefix('x') {
            Some(hex) => {
                plain(hex, char::is_ascii_hexdigit).and_then(|hex| u32::from_str_radix(hex, 16).ok())
            }
            None => plain(digits, char::is_ascii_digit).and_then(|digits| digits.parse().ok()),
        },
        None => {
            let value = match name {
                "lt" => '<',
                "gt" => '>',
                "amp" => '&',
                "quot" => '"',
                "apos" => '\'',
                _ if is_name(name) => return Err((format!("unknown entity `&{name};`"), length)),
                _ => return Err(("`&` does not start a reference".to_owned(), 1)),
            };
            return Ok((value, length));
        }
    };
    let value = number.and_then(char::from_u32).filter(|c| is_legal(*c));
    value
        .map(|value| (value, length))
        .ok_or_else(|| (format!("`&{name};` is not a valid XML character"), length))
}

fn plain(digits: &str, is: fn(&char) -> bool) -> Option<&str> {
    (!digits.is_empty() && digits.chars().all(|c| is(&c))).then_some(digits)
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':'))
}
