//! Lenient parser for the malformed JSON that models write.
//!
//! It accepts only input with a single possible meaning: a code fence around the object, trailing commas,
//! single quotes, Python literals, raw line breaks in strings, escapes that JSON does not have. Truncated
//! text is not completed: half a file must never be written.

use serde_json::{Map, Number, Value};

/// Maximum nesting depth; deeper than any tool's arguments.
const DEPTH: usize = 64;

/// Parses the text. The error describes the problem and its position.
pub(super) fn read(raw: &str) -> Result<Value, String> {
    let text = unfenced(raw.trim());
    if text.is_empty() {
        return Ok(Value::Object(Map::new()));
    }
    let mut reader = Reader { text, at: 0 };
    let value = reader.value(0)?;
    reader.space();
    if reader.at < text.len() {
        return Err(reader.error_at("unexpected text after the end"));
    }
    Ok(value)
}

/// Strips a code fence that encloses the entire text.
fn unfenced(text: &str) -> &str {
    let Some(inner) = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```")) else {
        return text;
    };
    match inner.split_once('\n') {
        Some((language, body)) if language.trim().chars().all(char::is_alphanumeric) => body.trim(),
        _ => inner.trim(),
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn value(&mut self, depth: usize) -> Result<Value, String> {
        if depth > DEPTH {
            return Err(self.error_at("nested too deeply"));
        }
        self.space();
        match self.peek() {
            None => Err(self.error_at("it ends where a value should stand")),
            Some('{') => self.object(depth),
            Some('[') => self.array(depth),
            Some(quote @ ('"' | '\'')) => self.string(quote).map(Value::String),
            Some(_) => self.word(),
        }
    }

    fn object(&mut self, depth: usize) -> Result<Value, String> {
        self.at += 1;
        let mut object = Map::new();
        loop {
            self.space();
            let key = match self.peek() {
                Some('}') => {
                    self.at += 1;
                    return Ok(Value::Object(object));
                }
                Some(quote @ ('"' | '\'')) => self.string(quote)?,
                None => return Err(self.error_at("it ends inside an object")),
                Some(_) => return Err(self.error_at("a parameter name must stand in double quotes")),
            };
            self.space();
            if self.peek() != Some(':') {
                return Err(self.error_at("a `:` is missing after the parameter name"));
            }
            self.at += 1;
            let value = self.value(depth + 1)?;
            if object.insert(key, value).is_some() {
                return Err(self.error_at("a parameter is given twice"));
            }
            self.separator('}')?;
        }
    }

    fn array(&mut self, depth: usize) -> Result<Value, String> {
        self.at += 1;
        let mut items = Vec::new();
        loop {
            self.space();
            if self.peek() == Some(']') {
                self.at += 1;
                return Ok(Value::Array(items));
            }
            items.push(self.value(depth + 1)?);
            self.separator(']')?;
        }
    }

    /// Consumes a comma, which may also precede the closing bracket. The bracket itself is left for the
    /// caller.
    fn separator(&mut self, close: char) -> Result<(), String> {
        self.space();
        match self.peek() {
            Some(',') => {
                self.at += 1;
                Ok(())
            }
            Some(next) if next == close => Ok(()),
            None => Err(self.error_at(&format!("it ends before the closing `{close}`"))),
            Some(_) => Err(self.error_at(&format!("a `,` or `{close}` is missing"))),
        }
    }

    fn string(&mut self, quote: char) -> Result<String, String> {
        self.at += 1;
        let mut out = String::new();
        while let Some(next) = self.peek() {
            self.at += next.len_utf8();
            match next {
                '\\' => self.escape(&mut out)?,
                _ if next != quote => out.push(next),
                // An apostrophe inside single quotes is ambiguous: it could end the string or belong to it.
                '\'' if !self.string_may_end() => {
                    return Err(self.error_at("a single quote inside single quotes; use double quotes"));
                }
                _ => return Ok(out),
            }
        }
        Err(self.error_at("it ends inside a string"))
    }

    fn string_may_end(&self) -> bool {
        let rest = self.text[self.at..].trim_start();
        rest.is_empty() || rest.starts_with([',', ':', '}', ']'])
    }

    fn escape(&mut self, out: &mut String) -> Result<(), String> {
        let Some(next) = self.peek() else { return Err(self.error_at("it ends inside a string")) };
        self.at += next.len_utf8();
        match next {
            '"' | '\\' | '/' | '\'' => out.push(next),
            'b' => out.push('\u{8}'),
            'f' => out.push('\u{c}'),
            'n' => out.push('\n'),
            'r' => out.push('\r'),
            't' => out.push('\t'),
            'u' => {
                let unit = self.four_hex()?;
                out.push(self.scalar(unit)?);
            }
            // `\d` or `\.`: a regex whose backslash was not doubled.
            other => {
                out.push('\\');
                out.push(other);
            }
        }
        Ok(())
    }

    fn scalar(&mut self, unit: u32) -> Result<char, String> {
        let code = if (0xD800..0xDC00).contains(&unit) && self.text[self.at..].starts_with("\\u") {
            self.at += 2;
            let low = self.four_hex()?;
            if !(0xDC00..0xE000).contains(&low) {
                return Err(self.error_at("half a surrogate pair"));
            }
            0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00)
        } else {
            unit
        };
        char::from_u32(code).ok_or_else(|| self.error_at("half a surrogate pair"))
    }

    fn four_hex(&mut self) -> Result<u32, String> {
        let unit = self
            .text
            .get(self.at..self.at + 4)
            .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
            .and_then(|digits| u32::from_str_radix(digits, 16).ok())
            .ok_or_else(|| self.error_at("four hex digits must follow `\\u`"))?;
        self.at += 4;
        Ok(unit)
    }

    fn word(&mut self) -> Result<Value, String> {
        let rest = &self.text[self.at..];
        let end = rest
            .find(|next: char| !(next.is_ascii_alphanumeric() || matches!(next, '+' | '-' | '.' | '_')))
            .unwrap_or(rest.len());
        let word = &rest[..end];
        let value = match word {
            "true" | "True" => Value::Bool(true),
            "false" | "False" => Value::Bool(false),
            "null" | "None" => Value::Null,
            _ => match serde_json::from_str::<Number>(word.strip_prefix('+').unwrap_or(word)) {
                Ok(number) => Value::Number(number),
                Err(_) => return Err(self.error_at("text must stand in double quotes")),
            },
        };
        self.at += end;
        Ok(value)
    }

    fn space(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
    }

    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn error_at(&self, what: &str) -> String {
        let before = &self.text[..self.at];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().map_or(0, |last| last.chars().count()) + 1;
        let near: String = self.text[self.at..].chars().take(24).collect();
        if near.is_empty() {
            format!("{what}, at line {line} column {column}")
        } else {
            format!("{what}, at line {line} column {column} near `{near}`")
        }
    }
}
