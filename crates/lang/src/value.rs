//! Values of the language: JSON values, symbols, functions, task results and caught errors.
//!
//! Values are immutable; lists and maps are shared and never modified, and `set!` changes a variable, not a
//! value. Values can be nested to any depth, so everything that traverses them ([`mod@equal`], [`display`],
//! [`json`], dropping in [`iterative_drop`]) uses its own stack or a bounded depth.

mod display;
mod equal;
mod iterative_drop;
mod json;
mod list;
mod map;
mod text;

use std::sync::Arc;

use crate::builtin::Builtin;
use crate::function::{Cell, Closure};
use crate::result::ResultValue;
use crate::runtime_error::RuntimeError;

pub(crate) use display::{brief, show_within};
pub(crate) use equal::{ValueOrder, compare, equal};
pub(crate) use iterative_drop::drop_iteratively;
pub use json::{JsonProblem, MAX_JSON_DEPTH};
pub(crate) use json::{Results, encode};
pub use list::{List, ListIter};
pub use map::Map;
pub use text::Text;

/// A value. Two words wide; cloning shares its contents.
#[derive(Clone, Default)]
pub enum Value {
    /// `nil`, the null of JSON.
    #[default]
    Nil,
    /// `true` or `false`.
    Bool(bool),
    /// A 64-bit integer.
    Int(i64),
    /// A finite number.
    Float(f64),
    /// A shared string.
    Text(Text),
    /// A symbol, as in `'stop`; a keyword is a symbol that begins with a colon.
    Symbol(Text),
    /// A shared list.
    List(List),
    /// A map with string keys, in insertion order.
    Map(Map),
    /// A function defined by the program.
    Function(Arc<Closure>),
    /// A library function.
    Builtin(&'static Builtin),
    /// Result of a task or tool call.
    Result(Arc<ResultValue>),
    /// A caught error.
    Error(Arc<RuntimeError>),
    /// Internal to the machine; programs and drivers never see one.
    Slot(Slot),
}

/// A shared or still unbound variable. Internal to the machine.
#[derive(Clone)]
pub struct Slot(pub(crate) Option<Arc<Cell>>);

impl Value {
    pub(crate) const UNSET: Value = Value::Slot(Slot(None));

    /// Truthiness: only `false` and `nil` are false.
    pub fn is_true(&self) -> bool {
        !matches!(self, Value::Nil | Value::Bool(false))
    }

    /// Kind of the value with its article, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Value::Nil => "nil",
            Value::Bool(_) => "a boolean",
            Value::Int(_) => "an integer",
            Value::Float(_) => "a number",
            Value::Text(_) => "a string",
            Value::Symbol(name) if name.starts_with(':') => "a keyword",
            Value::Symbol(_) => "a symbol",
            Value::List(_) => "a list",
            Value::Map(_) => "a map",
            Value::Function(_) | Value::Builtin(_) => "a function",
            Value::Result(_) => "a result",
            Value::Error(_) => "an error",
            Value::Slot(_) => "an unbound variable",
        }
    }

    /// Creates a string.
    pub fn text(text: impl Into<Text>) -> Self {
        Value::Text(text.into())
    }

    /// A symbol with this name.
    pub fn symbol(name: impl Into<Text>) -> Self {
        Value::Symbol(name.into())
    }

    /// A list of these items, in order.
    pub fn list(items: impl Into<Vec<Value>>) -> Self {
        Value::List(List::from(items.into()))
    }

    /// The printed form of the value: strings unquoted, everything else as an S-expression.
    ///
    /// Truncated with `…` beyond `max_bytes`.
    pub fn display(&self, max_bytes: usize) -> String {
        match self {
            Value::Text(text) if text.len() <= max_bytes => text.to_string(),
            Value::Text(_) => display::cut(self, max_bytes, display::StringQuoting::Bare),
            _ => display::cut(self, max_bytes, display::StringQuoting::Quoted),
        }
    }
}

impl std::fmt::Debug for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&display::cut(self, 2000, display::StringQuoting::Quoted))
    }
}

/// Equality as defined by `=`, for tests and drivers; returns false after ten million comparisons.
impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        equal(self, other, &mut 10_000_000).unwrap_or(false)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Value::Bool(value)
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Value::Int(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Value::text(value)
    }
}

impl From<String> for Value {
    fn from(value: String) -> Self {
        Value::text(value)
    }
}
