//! What a workflow computes with: JSON's values, symbols, functions, results of tasks and caught errors.
//!
//! Values do not change. A list or a map is shared, never altered; what `set!` changes is a variable. Values nest to
//! any depth, so everything that walks them ([`equal`], [`show`], [`json`], dropping in [`unlink`]) keeps its own
//! stack and counts what it walks.

mod equal;
mod json;
mod list;
mod map;
mod show;
mod text;
mod unlink;

use std::sync::Arc;

use crate::builtin::Builtin;
use crate::fault::Fault;
use crate::function::{Cell, Closure};
use crate::result::TaskResult;

pub(crate) use equal::{Order, compare, equal};
pub use json::{JsonProblem, MAX_JSON_DEPTH};
pub(crate) use json::{Results, encode};
pub use list::{List, ListIter};
pub use map::Map;
pub(crate) use show::{brief, show_within};
pub use text::Text;
pub(crate) use unlink::unlink;

/// A value. Two words; cloning shares.
#[derive(Clone, Default)]
pub enum Value {
    /// `nil`, JSON's null.
    #[default]
    Nil,
    /// `true` or `false`.
    Bool(bool),
    /// An integer of 64 bits.
    Int(i64),
    /// A finite number.
    Float(f64),
    /// A string.
    Text(Text),
    /// A symbol, as in `'stop`; a keyword is a symbol that begins with a colon.
    Symbol(Text),
    /// A list.
    List(List),
    /// A map from strings, in the order of insertion.
    Map(Map),
    /// A function of the program.
    Function(Arc<Closure>),
    /// A function of the library.
    Builtin(&'static Builtin),
    /// What a task or tool answered.
    Result(Arc<TaskResult>),
    /// What `catch` caught.
    Error(Arc<Fault>),
    /// A variable of the machine; programs and drivers never meet one.
    Slot(Slot),
}

/// A variable that functions share, or one that is not bound yet. Of the machine alone.
#[derive(Clone)]
pub struct Slot(pub(crate) Option<Arc<Cell>>);

impl Value {
    pub(crate) const UNSET: Value = Value::Slot(Slot(None));

    /// Only `false` and `nil` are false.
    pub fn is_true(&self) -> bool {
        !matches!(self, Value::Nil | Value::Bool(false))
    }

    /// What kind of value this is, as messages say it.
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

    /// A string.
    pub fn text(text: impl Into<Text>) -> Self {
        Value::Text(text.into())
    }

    /// A symbol.
    pub fn symbol(name: impl Into<Text>) -> Self {
        Value::Symbol(name.into())
    }

    /// A list of these items.
    pub fn list(items: impl Into<Vec<Value>>) -> Self {
        Value::List(List::from(items.into()))
    }

    /// How a workflow's value is printed: strings bare, everything else as an S-expression.
    ///
    /// Bounded: past `max_bytes` the text ends with `…`.
    pub fn display(&self, max_bytes: usize) -> String {
        match self {
            Value::Text(text) if text.len() <= max_bytes => text.to_string(),
            Value::Text(_) => show::cut(self, max_bytes, show::Strings::Bare),
            _ => show::cut(self, max_bytes, show::Strings::Quoted),
        }
    }
}

impl std::fmt::Debug for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&show::cut(self, 2000, show::Strings::Quoted))
    }
}

/// Equal as the language's `=` says, for tests and drivers; gives up as unequal past ten million comparisons.
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
