//! Declared parameters: of a workflow, of a task it defines, of the tasks and tools it calls.

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

/// What a parameter takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ParamType {
    /// Anything.
    #[default]
    Any,
    /// A string.
    String,
    /// A number.
    Number,
    /// true or false.
    Boolean,
    /// A list.
    Array,
    /// A map.
    Object,
}

impl ParamType {
    /// The types as they are written.
    pub const NAMES: [&'static str; 6] = ["any", "string", "number", "boolean", "array", "object"];

    /// The type of this name; `list`, `map`, `integer` and `bool` are understood.
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

    /// Its name.
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

    /// Whether a value is of the type.
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

    /// The value a word of a command line stands for, or what it should have been.
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

/// One declared parameter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Param {
    /// Its name.
    pub name: String,
    /// What it takes.
    #[serde(rename = "type")]
    pub kind: ParamType,
    /// Whether a call must give it.
    pub required: bool,
    /// What it is when a call does not give it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<Json>,
    /// What it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub doc: Option<String>,
    /// Other names that a call may give it under.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
}

impl Param {
    /// A parameter every call must give.
    pub fn required(name: impl Into<String>, kind: ParamType) -> Self {
        Self { name: name.into(), kind, required: true, default: None, doc: None, aliases: Vec::new() }
    }

    /// Whether a call gives it under this name.
    pub fn is_called(&self, name: &str) -> bool {
        self.name == name || self.aliases.iter().any(|alias| alias == name)
    }

    /// A parameter a call may leave out.
    pub fn optional(name: impl Into<String>, kind: ParamType) -> Self {
        Self { name: name.into(), kind, required: false, default: None, doc: None, aliases: Vec::new() }
    }
}
