//! Printing values as S-expressions.

use std::fmt::Write;

use super::{ListIter, Map, Value};

/// Whether a string at the top level is quoted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum StringQuoting {
    Bare,
    Quoted,
}

/// The value for use in a message: at most 60 bytes, strings quoted.
pub(crate) fn brief(value: &Value) -> String {
    cut(value, 60, StringQuoting::Quoted)
}

/// The value as printed by [`Value::display`], or `None` if that takes more than `max_bytes`.
pub(crate) fn show_within(value: &Value, max_bytes: usize) -> Option<String> {
    if let Value::Text(text) = value {
        return (text.len() <= max_bytes).then(|| text.to_string());
    }
    let mut writer = ValueWriter { out: String::new(), max_bytes };
    writer.write(value, StringQuoting::Quoted).then_some(writer.out)
}

/// The value, truncated with `…` beyond `max_bytes`.
pub(super) fn cut(value: &Value, max_bytes: usize, strings: StringQuoting) -> String {
    let mut writer = ValueWriter { out: String::new(), max_bytes };
    if !writer.write(value, strings) {
        let end = (0..=max_bytes.min(writer.out.len())).rev().find(|at| writer.out.is_char_boundary(*at));
        writer.out.truncate(end.unwrap_or(0));
        writer.out.push('…');
    }
    writer.out
}

struct ValueWriter {
    out: String,
    max_bytes: usize,
}

/// The remaining items of a partially written list or map.
enum OpenCollection<'v> {
    List(ListIter<'v>),
    Map(indexmap::map::Iter<'v, super::Text, Value>),
}

impl ValueWriter {
    /// Appends the value to `out`; false if the bound was exceeded, with `out` holding what was written so
    /// far.
    fn write(&mut self, value: &Value, strings: StringQuoting) -> bool {
        if let (Value::Text(text), StringQuoting::Bare) = (value, strings) {
            self.out.extend(text.chars().take(self.max_bytes + 1));
            return self.fits();
        }
        let mut open = Vec::new();
        self.begin(value, &mut open);
        while let Some(top) = open.last_mut() {
            if !self.fits() {
                return false;
            }
            let (key, next) = match top {
                OpenCollection::List(items) => (None, items.next()),
                OpenCollection::Map(entries) => {
                    entries.next().map_or((None, None), |(key, value)| (Some(key), Some(value)))
                }
            };
            let Some(next) = next else {
                self.out.push(')');
                open.pop();
                continue;
            };
            if !self.out.ends_with(['(', ' ']) {
                self.out.push(' ');
            }
            if let Some(key) = key {
                self.quoted(key);
                self.out.push(' ');
            }
            self.begin(next, &mut open);
        }
        self.fits()
    }

    fn fits(&self) -> bool {
        self.out.len() <= self.max_bytes
    }

    fn begin<'v>(&mut self, value: &'v Value, open: &mut Vec<OpenCollection<'v>>) {
        match value {
            Value::Nil => self.out.push_str("nil"),
            Value::Bool(value) => self.out.push_str(if *value { "true" } else { "false" }),
            Value::Int(value) => self.format(format_args!("{value}")),
            Value::Float(value) => self.format(format_args!("{value:?}")),
            Value::Text(text) => self.quoted(text),
            Value::Symbol(name) => self.out.extend(name.chars().take(self.max_bytes + 1)),
            Value::List(list) => {
                self.out.push('(');
                open.push(OpenCollection::List(list.iter()));
            }
            Value::Map(map) => self.begin_map(map, open),
            Value::Function(closure) => self.format(format_args!("<function {}>", closure.name())),
            Value::Builtin(builtin) => self.format(format_args!("<function {}>", builtin.name)),
            Value::Result(result) => {
                self.format(format_args!("(result {} ", result.status));
                self.quoted(&result.content);
                self.out.push(')');
            }
            Value::Error(fault) => {
                self.out.push_str("(error ");
                self.quoted(&fault.message);
                self.out.push(')');
            }
            Value::Slot(_) => self.out.push_str("<unbound>"),
        }
    }

    fn begin_map<'v>(&mut self, map: &'v Map, open: &mut Vec<OpenCollection<'v>>) {
        self.out.push_str(if map.is_empty() { "(dict" } else { "(dict " });
        open.push(OpenCollection::Map(map.iter()));
    }

    fn format(&mut self, arguments: std::fmt::Arguments<'_>) {
        // Writing to a String cannot fail.
        let _ = self.out.write_fmt(arguments);
    }

    /// Writes a string with the escapes that the reader understands.
    fn quoted(&mut self, text: &str) {
        let shown = match text.char_indices().nth(self.max_bytes) {
            Some((end, _)) => &text[..end],
            None => text,
        };
        self.out.push('"');
        for c in shown.chars() {
            match c {
                '"' => self.out.push_str("\\\""),
                '\\' => self.out.push_str("\\\\"),
                '\n' => self.out.push_str("\\n"),
                '\r' => self.out.push_str("\\r"),
                '\t' => self.out.push_str("\\t"),
                c if c.is_ascii_control() => self.format(format_args!("\\u{:04x}", u32::from(c))),
                c => self.out.push(c),
            }
        }
        self.out.push('"');
    }
}
