//! The lexer: characters to tokens. [`read`](super::read()) builds the tree from them.

use super::tree::NodeKind;
use crate::{Diagnostic, Diagnostics, Source, Span};

/// A token with its span.
pub(super) struct Token {
    pub(super) kind: TokenKind,
    pub(super) span: Span,
}

pub(super) enum TokenKind {
    Open,
    Close,
    Quote,
    Comment,
    /// Any other token; the second field is the value of a string whose spelling contains escapes.
    Atom(NodeKind, Option<Box<str>>),
}

/// Produces tokens and collects lexical errors.
pub(super) struct Lexer<'s> {
    source: &'s Source,
    text: &'s str,
    at: usize,
    /// Whether an unclosed string was seen. From then on, strings must end on their line, so that a text with
    /// many stray quotes is not scanned to its end for each of them.
    ran_out: bool,
    pub(super) problems: Diagnostics,
}

impl<'s> Lexer<'s> {
    pub(super) fn new(source: &'s Source) -> Self {
        let text = source.text();
        let at = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
        Self { source, text, at, ran_out: false, problems: Diagnostics::new() }
    }

    pub(super) fn next(&mut self) -> Option<Token> {
        loop {
            let rest = self.rest();
            self.at += rest.len() - rest.trim_start().len();
            let start = self.at;
            let c = self.rest().chars().next()?;
            let kind = match c {
                '(' => self.single(TokenKind::Open),
                ')' => self.single(TokenKind::Close),
                '\'' => self.single(TokenKind::Quote),
                ';' => {
                    self.at += self.rest().find('\n').unwrap_or(self.rest().len());
                    TokenKind::Comment
                }
                '"' => self.string(),
                _ if is_name(c) => self.word(),
                _ => {
                    self.at += c.len_utf8();
                    self.stray(c, Span::new(start, self.at));
                    continue;
                }
            };
            let mut span = Span::new(start, self.at);
            if matches!(kind, TokenKind::Comment) {
                span = Span::new(start, start + self.source.slice(span).trim_end().len());
            }
            return Some(Token { kind, span });
        }
    }

    fn rest(&self) -> &'s str {
        self.text.get(self.at..).unwrap_or("")
    }

    fn single(&mut self, kind: TokenKind) -> TokenKind {
        self.at += 1;
        kind
    }

    fn stray(&mut self, c: char, span: Span) {
        let help = match c {
            '[' | ']' | '{' | '}' => "lists are written with ( and ), maps with (dict key value …)",
            '`' | ',' => "quasiquote is not supported; build the list with (list …)",
            _ => "control characters are not allowed",
        };
        let message = match c.is_control() {
            true => format!("unexpected control character U+{:04X}", u32::from(c)),
            false => format!("unexpected character `{c}`"),
        };
        self.problems.push(Diagnostic::error("unexpected-character", self.source, span, message).help(help));
    }

    fn word(&mut self) -> TokenKind {
        let start = self.at;
        let bytes = self.text.as_bytes();
        while bytes
            .get(self.at)
            .is_some_and(|byte| IS_NAME.get(usize::from(*byte)).is_some_and(|is_name| *is_name))
        {
            self.at += 1;
        }
        // The ASCII prefix is consumed; the rest of the word, if any, starts with a non-ASCII character.
        self.at += self.rest().find(|c| !is_name(c)).unwrap_or(self.rest().len());
        let span = Span::new(start, self.at);
        TokenKind::Atom(self.atom(self.source.slice(span), span), None)
    }

    fn atom(&mut self, word: &str, span: Span) -> NodeKind {
        match word {
            "true" => return NodeKind::Bool(true),
            "false" => return NodeKind::Bool(false),
            "nil" => return NodeKind::Nil,
            _ => {}
        }
        if looks_like_a_number(word) {
            return self.number(word, span);
        }
        let help = match word.as_bytes() {
            [b':'] => "a keyword needs a name, as in :limit",
            [b'#', ..] => "booleans are written true and false; # syntax is not supported",
            [b':', ..] => return NodeKind::Keyword,
            _ => return NodeKind::Symbol,
        };
        let message = format!("`{word}` is not a name");
        self.problems.push(Diagnostic::error("bad-name", self.source, span, message).help(help));
        NodeKind::Unreadable
    }

    fn number(&mut self, word: &str, span: Span) -> NodeKind {
        let digits = word.strip_prefix(['+', '-']).unwrap_or(word);
        let help = if digits.bytes().all(|b| b.is_ascii_digit()) {
            match word.parse::<i64>() {
                Ok(value) => return NodeKind::Int(value),
                Err(_) => "integers have 64 bits; write a larger number as a float, as in 1e30",
            }
        } else if is_decimal(digits) {
            match word.parse::<f64>() {
                Ok(value) if value.is_finite() => return NodeKind::Float(value),
                _ => "the largest number is about 1.8e308",
            }
        } else if digits.starts_with('.') || digits.ends_with('.') {
            "a decimal point needs digits on both sides, as in 0.5"
        } else {
            "names cannot start with a digit; numbers are written like 12, -3, 0.5 or 1e9"
        };
        let shown: String = word.chars().take(40).collect();
        let message = format!("`{shown}` is not a number");
        self.problems.push(Diagnostic::error("bad-number", self.source, span, message).help(help));
        NodeKind::Unreadable
    }

    fn string(&mut self) -> TokenKind {
        let start = self.at;
        let limit = if self.ran_out { self.end_of_line() } else { self.text.len() };
        let mut at = start + 1;
        while let Some(offset) = self.text.get(at..limit).and_then(|rest| rest.find('"')) {
            at += offset + 1;
            let before = self.text.get(start + 1..at - 1).unwrap_or("");
            let backslashes = before.len() - before.trim_end_matches('\\').len();
            if backslashes.is_multiple_of(2) {
                self.at = at;
                return TokenKind::Atom(NodeKind::String, self.value_of_string(Span::new(start + 1, at - 1)));
            }
        }
        self.ran_out = true;
        self.at = self.end_of_line();
        let span = Span::new(start, self.at);
        let problem = Diagnostic::error("unclosed-string", self.source, span, "this string is not closed");
        self.problems.push(problem.help("close it with \"; a quote inside a string is written \\\""));
        TokenKind::Atom(NodeKind::Unreadable, None)
    }

    fn end_of_line(&self) -> usize {
        self.at + self.rest().find('\n').unwrap_or(self.rest().len())
    }

    /// The value of a string, or `None` if it equals the spelling.
    fn value_of_string(&mut self, inside: Span) -> Option<Box<str>> {
        let spelled = self.source.slice(inside);
        let refused = |c: char| c.is_ascii_control() && !matches!(c, '\n' | '\r' | '\t');
        for (offset, c) in spelled.char_indices().filter(|(_, c)| refused(*c)) {
            let span = Span::new(inside.start() + offset, inside.start() + offset + 1);
            let message = format!("control character U+{:04X} in a string", u32::from(c));
            let help = format!("write it as \\u{:04x}", u32::from(c));
            self.problems.push(Diagnostic::error("control-character", self.source, span, message).help(help));
        }
        if !spelled.contains('\\') {
            return None;
        }
        let mut value = String::with_capacity(spelled.len());
        let mut rest = spelled;
        while let Some(backslash) = rest.find('\\') {
            value.push_str(&rest[..backslash]);
            rest = &rest[backslash..];
            let offset = inside.end() - rest.len();
            let (c, length) = match escape(rest) {
                Ok(escape) => escape,
                Err((length, help)) => {
                    let span = Span::new(offset, offset + length);
                    let message = format!("`{}` is not a valid escape", self.source.slice(span));
                    self.problems
                        .push(Diagnostic::error("bad-escape", self.source, span, message).help(help));
                    ('\u{fffd}', length)
                }
            };
            value.push(c);
            rest = rest.get(length..).unwrap_or("");
        }
        value.push_str(rest);
        Some(value.into())
    }
}

/// The character denoted by an escape and the length of its spelling; or the length of the invalid escape and
/// a hint.
fn escape(text: &str) -> Result<(char, usize), (usize, &'static str)> {
    let Some(c) = text.chars().nth(1) else {
        return Err((text.len(), "a backslash is written \\\\"));
    };
    let plain = match c {
        '"' | '\\' | '/' => c,
        'b' => '\u{8}',
        'f' => '\u{c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'u' => return unicode_escape(text),
        _ => {
            return Err((
                1 + c.len_utf8(),
                "valid escapes are \\\" \\\\ \\/ \\b \\f \\n \\r \\t and \\u1234",
            ));
        }
    };
    Ok((plain, 2))
}

fn unicode_escape(text: &str) -> Result<(char, usize), (usize, &'static str)> {
    const FOUR_DIGITS: &str = "\\u needs four hexadecimal digits";
    const PAIR: &str = "write a character above U+FFFF directly or as two escapes, as in \\ud83d\\ude00";
    let unit = |text: &str| {
        let digits = text.strip_prefix("\\u")?.get(..4)?;
        digits.bytes().all(|b| b.is_ascii_hexdigit()).then(|| u32::from_str_radix(digits, 16).ok())?
    };
    let Some(first) = unit(text) else {
        let digits = text.bytes().skip(2).take(4).take_while(u8::is_ascii_hexdigit).count();
        return Err((2 + digits, FOUR_DIGITS));
    };
    if let Some(c) = char::from_u32(first) {
        return Ok((c, 6));
    }
    let second = text.get(6..).and_then(unit);
    match (first, second) {
        (0xd800..=0xdbff, Some(low @ 0xdc00..=0xdfff)) => {
            let scalar = 0x10000 + ((first - 0xd800) << 10) + (low - 0xdc00);
            char::from_u32(scalar).map(|c| (c, 12)).ok_or((12, PAIR))
        }
        _ => Err((6, PAIR)),
    }
}

/// [`is_name`] for ASCII characters, the common case.
const IS_NAME: [bool; 128] = {
    let mut table = [false; 128];
    let mut byte = 0x21;
    while byte < 0x7f {
        table[byte as usize] =
            !matches!(byte, b'(' | b')' | b'[' | b']' | b'{' | b'}' | b'"' | b'\'' | b'`' | b',' | b';');
        byte += 1;
    }
    table
};

fn is_name(c: char) -> bool {
    if c.is_ascii() {
        return IS_NAME.get(c as usize).is_some_and(|is_name| *is_name);
    }
    !(c.is_whitespace() || c.is_control())
}

fn looks_like_a_number(word: &str) -> bool {
    let unsigned = word.strip_prefix(['+', '-']).unwrap_or(word);
    let mut bytes = unsigned.bytes();
    match bytes.next() {
        Some(b'0'..=b'9') => true,
        Some(b'.') => bytes.next().is_some_and(|b| b.is_ascii_digit()),
        _ => false,
    }
}

/// `12.5`, `1e9`, `1.5e-3`: digits, followed by a fraction, an exponent or both.
fn is_decimal(unsigned: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent.strip_prefix(['+', '-']).unwrap_or(exponent))),
        None => (unsigned, None),
    };
    let mantissa_fits = match mantissa.split_once('.') {
        Some((whole, fraction)) => digits(whole) && digits(fraction),
        None => digits(mantissa),
    };
    mantissa_fits && exponent.is_none_or(digits)
}
