//! Conversion between values and JSON.

use serde_json::Value as Json;

use super::{Map, Text, Value};
use crate::runtime_error::RuntimeError;

/// Maximum nesting depth of a value converted to JSON; also the maximum depth of parsed JSON.
pub const MAX_JSON_DEPTH: usize = 127;
/// Maximum number of values and bytes of text per conversion, since shared structure is unfolded.
const MAX_NODES: u64 = 2_000_000;
const MAX_BYTES: usize = 256 * 1024 * 1024;

/// Why a value cannot be converted to JSON.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum JsonProblem {
    /// It contains the function of this name.
    Function(String),
    /// Nested deeper than [`MAX_JSON_DEPTH`].
    TooDeep,
    /// Unfolds to more values or text than a conversion may produce.
    TooLarge,
    /// It contains a failed result whose content is needed.
    Failed(Box<RuntimeError>),
}

impl std::fmt::Display for JsonProblem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            JsonProblem::Function(name) => write!(f, "the function {name} cannot be converted to JSON"),
            JsonProblem::TooDeep => write!(f, "the value is nested deeper than {MAX_JSON_DEPTH} levels"),
            JsonProblem::TooLarge => write!(f, "the value is too large to convert to JSON"),
            JsonProblem::Failed(fault) => f.write_str(&fault.message),
        }
    }
}

/// How results inside a value are converted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Results {
    /// As an object with status and notes.
    Whole,
    /// As their content, the form other tasks take; a failed result is an error.
    Content,
}

impl Value {
    /// Converts the value to JSON: symbols as strings, results and errors as objects.
    pub fn to_json(&self) -> Result<Json, JsonProblem> {
        Walk::new(Results::Whole).json(self, 0)
    }

    /// Converts JSON to a value. Integers that do not fit 64 bits become floats.
    pub fn from_json(json: Json) -> Value {
        match json {
            Json::Null => Value::Nil,
            Json::Bool(value) => Value::Bool(value),
            Json::Number(number) => match number.as_i64() {
                Some(value) => Value::Int(value),
                None => Value::Float(number.as_f64().filter(|value| value.is_finite()).unwrap_or(f64::MAX)),
            },
            Json::String(text) => Value::text(text),
            Json::Array(items) => Value::List(items.into_iter().map(Value::from_json).collect()),
            Json::Object(entries) => Value::Map(
                entries.into_iter().map(|(key, value)| (Text::from(key), Value::from_json(value))).collect(),
            ),
        }
    }
}

/// Converts the value to JSON, with results converted according to `results`.
pub(crate) fn encode(value: &Value, results: Results) -> Result<Json, JsonProblem> {
    Walk::new(results).json(value, 0)
}

struct Walk {
    results: Results,
    nodes: u64,
    bytes: usize,
}

impl Walk {
    fn new(results: Results) -> Self {
        Self { results, nodes: MAX_NODES, bytes: MAX_BYTES }
    }

    /// Recursion is bounded by [`MAX_JSON_DEPTH`].
    fn json(&mut self, value: &Value, depth: usize) -> Result<Json, JsonProblem> {
        self.nodes = self.nodes.checked_sub(1).ok_or(JsonProblem::TooLarge)?;
        if depth > MAX_JSON_DEPTH {
            return Err(JsonProblem::TooDeep);
        }
        Ok(match value {
            Value::Nil | Value::Slot(_) => Json::Null,
            Value::Bool(value) => Json::Bool(*value),
            Value::Int(value) => Json::from(*value),
            Value::Float(value) => Json::from(*value),
            Value::Text(text) => Json::String(self.string(text)?),
            Value::Symbol(name) => Json::String(self.string(name.strip_prefix(':').unwrap_or(name))?),
            Value::List(list) => {
                Json::Array(list.iter().map(|item| self.json(item, depth + 1)).collect::<Result<_, _>>()?)
            }
            Value::Map(map) => self.object(map, depth)?,
            Value::Function(closure) => return Err(JsonProblem::Function(closure.name().to_owned())),
            Value::Builtin(builtin) => return Err(JsonProblem::Function(builtin.name.to_owned())),
            Value::Result(result) => match self.results {
                Results::Whole => self.json(&result.to_value(), depth)?,
                Results::Content => {
                    let content = result.content().map_err(JsonProblem::Failed)?;
                    Json::String(self.string(content)?)
                }
            },
            Value::Error(fault) => self.json(&fault.to_value(), depth)?,
        })
    }

    fn object(&mut self, map: &Map, depth: usize) -> Result<Json, JsonProblem> {
        let entry = |(key, value): (&Text, &Value)| Ok((self.string(key)?, self.json(value, depth + 1)?));
        Ok(Json::Object(map.iter().map(entry).collect::<Result<_, _>>()?))
    }

    fn string(&mut self, text: &str) -> Result<String, JsonProblem> {
        self.bytes = self.bytes.checked_sub(text.len()).ok_or(JsonProblem::TooLarge)?;
        Ok(text.to_owned())
    }
}
