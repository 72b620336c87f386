//! A configuration text as a tree with source positions, for both TOML and JSON. [`file`](super::file) and
//! [`stages`](super::stages) read it using the tables of keys.

mod json;

use fusee::engine::text::Span;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

pub(crate) use json::parse as parse_json;

#[cfg(test)]
mod tests;

/// A value with its position.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    pub(crate) span: Span,
    pub(crate) value: Leaf,
}

/// A value. Numbers keep their text for error messages.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Leaf {
    Text(String),
    Switch(bool),
    Whole {
        number: Option<i128>,
        shown: String,
    },
    Number {
        number: f64,
        shown: String,
    },
    List(Vec<Node>),
    Table(Vec<Entry>),
    /// A value that no key accepts: a date or null.
    Other(String),
}

/// A key of a table and its value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) at: Span,
    pub(crate) node: Node,
}

impl Node {
    /// Converts a parsed TOML document.
    pub(crate) fn of_toml(table: &Spanned<DeTable<'_>>) -> Self {
        Self { span: table.span().into(), value: of_table(table.get_ref()) }
    }

    /// Short description for error messages.
    pub(crate) fn shown(&self) -> String {
        match &self.value {
            Leaf::Text(text) => format!("{text:?}"),
            Leaf::Switch(on) => on.to_string(),
            Leaf::Whole { shown, .. } | Leaf::Number { shown, .. } | Leaf::Other(shown) => shown.clone(),
            Leaf::List(_) => "a list".to_owned(),
            Leaf::Table(_) => "a table".to_owned(),
        }
    }
}

fn of_value(value: &Spanned<DeValue<'_>>) -> Node {
    let leaf = match value.get_ref() {
        DeValue::String(text) => Leaf::Text(text.to_string()),
        DeValue::Boolean(on) => Leaf::Switch(*on),
        DeValue::Integer(whole) => {
            let digits = whole.as_str().replace('_', "");
            Leaf::Whole {
                number: i128::from_str_radix(&digits, whole.radix()).ok(),
                shown: whole.to_string(),
            }
        }
        DeValue::Float(number) => match number.as_str().replace('_', "").parse() {
            Ok(parsed) => Leaf::Number { number: parsed, shown: number.as_str().to_owned() },
            Err(_) => Leaf::Other(number.as_str().to_owned()),
        },
        DeValue::Datetime(time) => Leaf::Other(time.to_string()),
        DeValue::Array(items) => Leaf::List(items.iter().map(of_value).collect()),
        DeValue::Table(table) => of_table(table),
    };
    Node { span: value.span().into(), value: leaf }
}

fn of_table(table: &DeTable<'_>) -> Leaf {
    // The parser sorts keys by name; restore source order.
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(name, _)| name.span().start);
    let entries = entries.into_iter().map(|(name, value)| Entry {
        name: name.get_ref().to_string(),
        at: name.span().into(),
        node: of_value(value),
    });
    Leaf::Table(entries.collect())
}
