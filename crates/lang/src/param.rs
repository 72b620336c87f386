//! Declared parameters of workflows, of the tasks they define, and of the tasks and tools they call.

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

/// Type of a parameter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ParamType {
    /// Any JSON value.
    #[default]
    Any,
    /// A JSON string.
    String,
    /// A JSON number.
    Number,
    /// `true` or `false`.
    Boolean,
    /// A JSON array.
    Array,
    /// A JSON object.
    Object,
}

impl ParamType {
    /// The canonical type names.
    pub const NAMES: [&'static str; 6] = ["any", "string", "number", "boolean", "array", "object"];

    /// Looks up a type by name; synonyms such as `list`, `map`, `integer` and `bool` are accepted.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "any" => ParamType::Any,
            "string" | "str" => ParamType::String,
            "number" | "integer" | "int" | "float" => ParamType::Number,
            "boolean" | "bool" => ParamType::Boolean,
            "array" | "list" => ParamType::Array,
            "object" | "map" | "dict" => ParamType::Object,
            _ => return None,
        })
    }

    /// Canonical name of the type.
    pub fn name(self) -> &'static str {
        match self {
            ParamType::Any => "any",
            ParamType::String => "string",
            ParamType::Number => "number",
            ParamType::Boolean => "boolean",
            ParamType::Array => "array",
            ParamType::Object => "object",
        }
    }

    /// Whether `value` has this type.
    pub fn accepts(self, value: &Json) -> bool {
        match self {
            ParamType::Any => true,
            ParamType::String => value.is_string(),
            ParamType::Number => value.is_number(),
            ParamType::Boolean => value.is_boolean(),
            ParamType::Array => value.is_array(),
            ParamType::Object => value.is_object(),
        }
    }

    /// Parses a command-line argument as this type.
    pub fn parse(self, word: &str) -> Result<Json, String> {
        match self {
            ParamType::Any | ParamType::String => Ok(Json::String(word.to_owned())),
            _ => match serde_json::from_str::<Json>(word) {
                Ok(value) if self.accepts(&value) => Ok(value),
                _ => Err(format!("`{word}` is not of type {}", self.name())),
            },
        }
    }
}

/// A declared parameter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Param {
    /// Name that calls use.
    pub name: String,
    /// Type of its values.
    #[serde(rename = "type")]
    pub kind: ParamType,
    /// Whether every call must pass it.
    pub required: bool,
    /// Value if a call omits it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<Json>,
    /// Description of the parameter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub doc: Option<String>,
    /// Alternative names that calls may use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
}

impl Param {
    /// A parameter that every call must pass.
    pub fn required(name: impl Into<String>, kind: ParamType) -> Self {
        Self { name: name.into(), kind, required: true, default: None, doc: None, aliases: Vec::new() }
    }

    /// Whether `name` is the parameter's name or one of its aliases.
    pub fn is_called(&self, name: &str) -> bool {
        self.name == name || self.aliases.iter().any(|alias| alias == name)
    }

    /// A parameter that a call may omit.
    pub fn optional(name: impl Into<String>, kind: ParamType) -> Self {
        Self { name: name.into(), kind, required: false, default: None, doc: None, aliases: Vec::new() }
    }
}
