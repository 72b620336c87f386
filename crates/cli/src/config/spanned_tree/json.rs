//! JSON with source positions. serde_json validates the text and reports errors; this parser then reads the
//! valid text a second time to record positions.

use fusee::engine::text::Span;

use super::{Entry, Leaf, Node};

/// Maximum nesting depth.
const MAX_DEPTH: usize = 64;

/// Parses JSON text into a tree, or returns the error and its position.
pub(crate) fn parse(text: &str) -> Result<Node, (Span, String)> {
    if let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(text) {
        let line_start: usize =
            text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum();
        let at = (line_start + error.column().saturating_sub(1)).min(text.len());
        let at = (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
        let words = error.to_string();
        let words = words.split(" at line ").next().unwrap_or_default().to_owned();
        return Err((Span::at(at), words));
    }
    let mut reading = JsonReader { text, at: 0 };
    reading.node(0)
}

/// A parser for text that is known to be valid JSON.
struct JsonReader<'a> {
    text: &'a str,
    at: usize,
}

impl JsonReader<'_> {
    fn node(&mut self, depth: usize) -> Result<Node, (Span, String)> {
        self.space();
        let from = self.at;
        if depth > MAX_DEPTH {
            return Err((Span::at(from), format!("more than {MAX_DEPTH} levels deep")));
        }
        let value = match self.peek() {
            Some(b'{') => self.table(depth)?,
            Some(b'[') => self.list(depth)?,
            Some(b'"') => Leaf::Text(self.string()),
            _ => self.word(),
        };
        Ok(Node { span: Span::new(from, self.at), value })
    }

    fn table(&mut self, depth: usize) -> Result<Leaf, (Span, String)> {
        let mut entries = Vec::new();
        self.at += 1;
        self.space();
        while self.peek() != Some(b'}') {
            let from = self.at;
            let name = self.string();
            let at = Span::new(from, self.at);
            self.space();
            self.at += 1;
            let node = self.node(depth + 1)?;
            entries.push(Entry { name, at, node });
            self.next_item();
        }
        self.at += 1;
        Ok(Leaf::Table(entries))
    }

    fn list(&mut self, depth: usize) -> Result<Leaf, (Span, String)> {
        let mut items = Vec::new();
        self.at += 1;
        self.space();
        while self.peek() != Some(b']') {
            items.push(self.node(depth + 1)?);
            self.next_item();
        }
        self.at += 1;
        Ok(Leaf::List(items))
    }

    fn next_item(&mut self) {
        self.space();
        if self.peek() == Some(b',') {
            self.at += 1;
            self.space();
        }
    }

    fn string(&mut self) -> String {
        let from = self.at;
        self.at += 1;
        while let Some(byte) = self.peek() {
            self.at += if byte == b'\\' { 2 } else { 1 };
            if byte == b'"' {
                break;
            }
        }
        serde_json::from_str(&self.text[from..self.at]).unwrap_or_default()
    }

    fn word(&mut self) -> Leaf {
        let rest = &self.text[self.at..];
        let end = rest.find([',', ']', '}', ' ', '\t', '\r', '\n']).unwrap_or(rest.len());
        let word = &rest[..end];
        self.at += end.max(1);
        match word {
            "true" => Leaf::Switch(true),
            "false" => Leaf::Switch(false),
            _ if !word.contains(['.', 'e', 'E', 'n']) => {
                Leaf::Whole { number: word.parse().ok(), shown: word.to_owned() }
            }
            _ => match word.parse() {
                Ok(number) => Leaf::Number { number, shown: word.to_owned() },
                Err(_) => Leaf::Other(word.to_owned()),
            },
        }
    }

    fn space(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }
}
