//! Text with its references resolved: the five names that need no DTD, and characters by number.

use super::{Reader, is_legal};
use crate::Span;

/// A reference longer than this is none.
const LONGEST: usize = 12;

impl Reader<'_> {
    /// The text from `start` to `end` with references resolved and line ends as `\n`. What is wrong in it is
    /// reported and stands in the result as it was written.
    pub(super) fn resolved(&mut self, start: usize, end: usize) -> String {
        let raw = &self.text[start..end];
        let mut text = String::with_capacity(raw.len());
        let mut characters = raw.char_indices().peekable();
        while let Some((at, c)) = characters.next() {
            match c {
                '\r' => {
                    // A line end of two characters is one; a lone carriage return is one too.
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
                        let help = "a `&` in text is written `&amp;`".to_owned();
                        self.report("xml-reference", span, problem, Some(help));
                        text.push('&');
                    }
                },
                c if is_legal(c) => text.push(c),
                c => {
                    let span = Span::new(start + at, start + at + c.len_utf8());
                    let message = format!("the character U+{:04X} may not stand in XML", u32::from(c));
                    self.report("xml-character", span, message, None);
                }
            }
        }
        text
    }
}

/// The character that a reference at the beginning of `text` means, and its length; or what is wrong and where it ends.
fn reference(text: &str) -> Result<(char, usize), (String, usize)> {
    let length = text.bytes().take(LONGEST).position(|byte| byte == b';').map(|at| at + 1);
    let Some(length) = length else { return Err(("`&` begins no reference".to_owned(), 1)) };
    let Some(name) = text.get(1..length - 1) else { return Err(("`&` begins no reference".to_owned(), 1)) };
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
                _ if is_name(name) => return Err((format!("there is no entity `&{name};`"), length)),
                _ => return Err(("`&` begins no reference".to_owned(), 1)),
            };
            return Ok((value, length));
        }
    };
    let value = number.and_then(char::from_u32).filter(|c| is_legal(*c));
    value.map(|value| (value, length)).ok_or_else(|| (format!("`&{name};` is no character of XML"), length))
}

fn plain(digits: &str, is: fn(&char) -> bool) -> Option<&str> {
    (!digits.is_empty() && digits.chars().all(|c| is(&c))).then_some(digits)
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':'))
}
