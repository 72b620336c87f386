//! The functions every workflow has: one table a file, from which the checker takes arities, the reference its text
//! and editors their completions. Special forms are in [`crate::form`].

pub(crate) mod arithmetic;
pub(crate) mod compare;
mod control;
pub(crate) mod json;
mod list;
mod map;
pub(crate) mod result;
mod text;

pub(crate) use control::{callable, packed};
pub(crate) use map::field_of;
pub(crate) use text::places_and_values;

use std::sync::LazyLock;

use crate::effect::EffectKind;
use crate::fault::Problem;
use crate::machine::Begun;
use crate::meter::Meter;
use crate::table::Table;
use crate::value::{Text, Value, brief};

/// A function of the library.
pub struct Builtin {
    /// Its name.
    pub name: &'static str,
    /// How a call looks.
    pub signature: &'static str,
    /// What it does, in a sentence.
    pub doc: &'static str,
    pub(crate) arity: Arity,
    pub(crate) run: Run,
}

/// How many arguments a function takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arity {
    /// At least this many.
    pub min: usize,
    /// At most this many, if there is a bound.
    pub max: Option<usize>,
}

impl Arity {
    pub(crate) const fn exactly(count: usize) -> Self {
        Self { min: count, max: Some(count) }
    }

    pub(crate) const fn between(min: usize, max: usize) -> Self {
        Self { min, max: Some(max) }
    }

    pub(crate) const fn at_least(min: usize) -> Self {
        Self { min, max: None }
    }

    pub(crate) fn allows(self, count: usize) -> bool {
        count >= self.min && self.max.is_none_or(|max| count <= max)
    }
}

impl std::fmt::Display for Arity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.min, self.max) {
            (1, Some(1)) => write!(f, "1 argument"),
            (min, Some(max)) if min == max => write!(f, "{min} arguments"),
            (min, Some(max)) => write!(f, "{min} to {max} arguments"),
            (1, None) => write!(f, "at least 1 argument"),
            (min, None) => write!(f, "at least {min} arguments"),
        }
    }
}

/// How a function runs.
pub(crate) enum Run {
    /// At once. May be run again with the same arguments if it asked for memory.
    Pure(fn(&mut Meter, &[Value]) -> Result<Value, Problem>),
    /// By calling functions it was given, which the machine does for it.
    Native(fn(&mut Meter, &[Value]) -> Result<Begun, Problem>),
    /// By asking the driver.
    Effect(fn(&mut Meter, &[Value]) -> Result<EffectKind, Problem>),
    /// By evaluating beside each other what the driver runs: `pmap`.
    FanOut,
}

impl Builtin {
    /// How many arguments it takes.
    pub fn arity(&self) -> Arity {
        self.arity
    }

    /// The function of this name.
    pub fn find(name: &str) -> Option<&'static Builtin> {
        static BY_NAME: LazyLock<Table<Builtin>> =
            LazyLock::new(|| Builtin::all().map(|builtin| (builtin.name, builtin)).collect());
        BY_NAME.get(name).copied()
    }

    /// Every function.
    pub fn all() -> impl Iterator<Item = &'static Builtin> {
        Self::pages().flat_map(|(_, table)| table)
    }

    /// Every function by the part of the library it is in.
    pub fn pages() -> impl Iterator<Item = (&'static str, &'static [Builtin])> {
        const PAGES: [(&str, &[Builtin]); 8] = [
            ("numbers", arithmetic::TABLE),
            ("comparing", compare::TABLE),
            ("strings", text::TABLE),
            ("lists", list::TABLE),
            ("maps", map::TABLE),
            ("json", json::TABLE),
            ("results", result::TABLE),
            ("calling", control::TABLE),
        ];
        PAGES.into_iter()
    }
}

impl std::fmt::Debug for Builtin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// A table entry for a function that runs at once.
const fn pure(
    name: &'static str,
    arity: Arity,
    signature: &'static str,
    doc: &'static str,
    run: fn(&mut Meter, &[Value]) -> Result<Value, Problem>,
) -> Builtin {
    Builtin { name, signature, doc, arity, run: Run::Pure(run) }
}

/// "`name` needs what, not a list (1 2 3)".
fn wrong(name: &str, needs: &str, value: &Value) -> Problem {
    Problem::new("wrong-type", format!("`{name}` needs {needs}, not {} {}", value.kind(), brief(value)))
}

/// The text of a string, of a symbol, or of a result that did not fail.
fn text_of<'v>(name: &str, value: &'v Value) -> Result<&'v Text, Problem> {
    match value {
        Value::Text(text) | Value::Symbol(text) => Ok(text),
        Value::Result(result) => Ok(result.content()?),
        other => Err(wrong(name, "a string", other)),
    }
}

/// The key a string, symbol or keyword stands for.
fn key_of<'v>(name: &str, value: &'v Value) -> Result<&'v str, Problem> {
    match value {
        Value::Text(text) => Ok(text),
        Value::Symbol(text) => Ok(text.strip_prefix(':').unwrap_or(text)),
        other => Err(wrong(name, "a string as the key", other)),
    }
}

fn list_of<'v>(name: &str, value: &'v Value) -> Result<&'v crate::value::List, Problem> {
    match value {
        Value::List(list) => Ok(list),
        other => Err(wrong(name, "a list", other)),
    }
}

fn int_of(name: &str, value: &Value) -> Result<i64, Problem> {
    match value {
        Value::Int(value) => Ok(*value),
        other => Err(wrong(name, "an integer", other)),
    }
}
