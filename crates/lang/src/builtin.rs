//! The library functions, one table per file. The tables are the single source of arities for the checker, of
//! the reference text and of editor completions. Special forms are in [`crate::form`].

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
use crate::fuel::Fuel;
use crate::lookup::LookupTable;
use crate::machine::NativeStart;
use crate::runtime_error::UnlocatedError;
use crate::value::{Text, Value, brief};

/// Declares the table of a section. A row is signature, arity, description `=>` implementation; the signature
/// begins with the function's name.
macro_rules! builtins {
    ($($signature:literal $arity:ident($($count:literal),*) $doc:literal => $run:expr;)*) => {
        pub(super) const TABLE: &[super::Builtin] = &[$(super::Builtin {
            name: super::head($signature),
            signature: $signature,
            doc: $doc,
            arity: super::Arity::$arity($($count),*),
            run: $run,
        }),*];
    };
}
use builtins;

/// A library function.
pub struct Builtin {
    /// The name it is called by.
    pub name: &'static str,
    /// Example call that shows the arguments.
    pub signature: &'static str,
    /// One-sentence description.
    pub doc: &'static str,
    pub(crate) arity: Arity,
    pub(crate) run: Run,
}

/// Number of arguments a function takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arity {
    /// Minimum number of arguments.
    pub min: usize,
    /// Maximum number of arguments, if there is one.
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

/// How a library function is executed.
pub(crate) enum Run {
    /// Computed directly. May be executed again with the same arguments after it ran out of memory.
    Pure(fn(&mut Fuel, &[Value]) -> Result<Value, UnlocatedError>),
    /// Calls functions passed as arguments; the machine steps it.
    Native(fn(&mut Fuel, &[Value]) -> Result<NativeStart, UnlocatedError>),
    /// Yields an effect to the driver.
    Effect(fn(&mut Fuel, &[Value]) -> Result<EffectKind, UnlocatedError>),
    /// `pmap`: yields branches that the driver runs concurrently.
    FanOut,
}

impl Builtin {
    /// Number of arguments it takes.
    pub fn arity(&self) -> Arity {
        self.arity
    }

    /// Looks up a function by name.
    pub fn find(name: &str) -> Option<&'static Builtin> {
        static BY_NAME: LazyLock<LookupTable<Builtin>> =
            LazyLock::new(|| Builtin::all().map(|builtin| (builtin.name, builtin)).collect());
        BY_NAME.get(name).copied()
    }

    /// All library functions.
    pub fn all() -> impl Iterator<Item = &'static Builtin> {
        Self::pages().flat_map(|(_, table)| table)
    }

    /// All library functions, grouped by section of the reference.
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

/// The first word of a signature, which is the function's name.
const fn head(signature: &'static str) -> &'static str {
    let (bytes, mut end) = (signature.as_bytes(), 1);
    while bytes[end] != b' ' && bytes[end] != b')' {
        end += 1;
    }
    signature.split_at(end).0.split_at(1).1
}

impl std::fmt::Debug for Builtin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// A type error: "`name` needs a string, not a list (1 2 3)".
fn type_error(name: &str, needs: &str, value: &Value) -> UnlocatedError {
    UnlocatedError::new(
        "wrong-type",
        format!("`{name}` needs {needs}, not {} {}", value.kind(), brief(value)),
    )
}

/// The text of a string, a symbol, or a result that did not fail.
fn text_of<'v>(name: &str, value: &'v Value) -> Result<&'v Text, UnlocatedError> {
    match value {
        Value::Text(text) | Value::Symbol(text) => Ok(text),
        Value::Result(result) => Ok(result.content()?),
        other => Err(type_error(name, "a string", other)),
    }
}

/// The map key denoted by a string, symbol or keyword.
fn key_of<'v>(name: &str, value: &'v Value) -> Result<&'v str, UnlocatedError> {
    match value {
        Value::Text(text) => Ok(text),
        Value::Symbol(text) => Ok(text.strip_prefix(':').unwrap_or(text)),
        other => Err(type_error(name, "a string as the key", other)),
    }
}

fn list_of<'v>(name: &str, value: &'v Value) -> Result<&'v crate::value::List, UnlocatedError> {
    match value {
        Value::List(list) => Ok(list),
        other => Err(type_error(name, "a list", other)),
    }
}

fn int_of(name: &str, value: &Value) -> Result<i64, UnlocatedError> {
    match value {
        Value::Int(value) => Ok(*value),
        other => Err(type_error(name, "an integer", other)),
    }
}
