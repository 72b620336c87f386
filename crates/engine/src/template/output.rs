//! Checks an answer against its declared format: text, or JSON of a declared type.
//!
//! Where a schema is declared, an answer that is not JSON of that form fails the task. Without one, invalid JSON
//! leaves the task complete, with the text and a note about the problem. The text itself is never changed, only what
//! is parsed from it.

use fusee_tools::tool::arguments;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::OutputFormat;

/// Result of checking an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum OutputVerdict {
    /// No format or text was declared.
    Text,
    /// JSON as declared.
    Parsed(Value),
    /// Not JSON, and no schema was declared; holds the parse error.
    Unparsed(String),
    /// Not JSON of the declared schema.
    Mismatched(Mismatch),
}

/// A declared JSON Schema, read from its file.
#[derive(Debug)]
pub struct OutputSchema {
    /// Path of the file.
    pub path: String,
    /// The schema itself.
    pub value: Value,
}

/// Difference between an answer and the declared format.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mismatch {
    /// `parse_error`, `type_mismatch`, `schema_violation` or `invalid_schema`.
    pub error_type: String,
    /// Description of the difference.
    pub message: String,
    /// JSON pointer into the answer; empty for the whole answer.
    pub location: String,
}

/// Checks an answer against its format. `repair` allows one lenient pass over almost valid JSON.
pub fn check_output(
    answer: &str,
    format: Option<&OutputFormat>,
    schema: Option<&OutputSchema>,
    repair: bool,
) -> OutputVerdict {
    let Some(format) = format.filter(|format| format.is_json()) else {
        return OutputVerdict::Text;
    };
    let value = match parse(answer, repair) {
        Ok(value) => value,
        Err(problem) if format.schema.is_none() => return OutputVerdict::Unparsed(problem),
        Err(problem) => {
            let message = format!("it is not JSON ({problem})");
            let error_type = "parse_error".to_owned();
            return OutputVerdict::Mismatched(Mismatch { error_type, message, location: String::new() });
        }
    };
    let mismatch = match (schema, format.schema.as_deref()) {
        (Some(schema), _) => violation(&value, schema),
        (None, Some(word)) => type_mismatch(&value, word),
        (None, None) => None,
    };
    mismatch.map_or(OutputVerdict::Parsed(value), OutputVerdict::Mismatched)
}

/// Parses the JSON of an answer: the answer itself, its only code fence, or a lenient reading of either.
fn parse(answer: &str, repair: bool) -> Result<Value, String> {
    let text = answer.trim();
    let strict = match serde_json::from_str(text) {
        Ok(value) => return Ok(value),
        Err(error) => error.to_string(),
    };
    let fenced = fenced(text);
    if let Some(value) = fenced.and_then(|inner| serde_json::from_str(inner).ok()) {
        return Ok(value);
    }
    if repair {
        let inner = fenced.unwrap_or(text);
        // A bare word is unambiguous only if it is one of Python's literals; other words are an answer
        // without JSON.
        let means_one_thing =
            inner.starts_with(['{', '[', '\'']) || ["True", "False", "None"].contains(&inner);
        if means_one_thing && let Ok(value) = arguments::lenient(inner) {
            return Ok(value);
        }
    }
    Err(strict)
}

/// Returns the content of the only code fence of a text.
fn fenced(text: &str) -> Option<&str> {
    let start = text.find("```")?;
    let inside = &text[start + 3..];
    let body = inside.find('\n')? + 1;
    let end = body + inside[body..].rfind("```")?;
    let inner = inside[body..end].trim();
    (!inner.contains("```")).then_some(inner)
}

fn type_mismatch(value: &Value, word: &str) -> Option<Mismatch> {
    let mismatch = |message: String, location: String| Mismatch {
        error_type: "type_mismatch".to_owned(),
        message,
        location,
    };
    let fits = match word {
        "object" => value.is_object(),
        "array" | "[]" => value.is_array(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "string[]" => match value.as_array() {
            Some(items) => {
                let odd = items.iter().position(|item| !item.is_string())?;
                let message = format!("expected a string at /{odd}, found {}", type_name(&items[odd]));
                return Some(mismatch(message, format!("/{odd}")));
            }
            None => false,
        },
        _ => true,
    };
    (!fits).then(|| mismatch(format!("expected {word}, found {}", type_name(value)), String::new()))
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Returns the first violation of a JSON Schema.
fn violation(value: &Value, schema: &OutputSchema) -> Option<Mismatch> {
    let validator = match jsonschema::validator_for(&schema.value) {
        Ok(validator) => validator,
        Err(error) => {
            let message = format!("{} is not a JSON Schema: {error}", schema.path);
            return Some(Mismatch {
                error_type: "invalid_schema".to_owned(),
                message,
                location: String::new(),
            });
        }
    };
    let error = validator.iter_errors(value).next()?;
    Some(Mismatch {
        error_type: "schema_violation".to_owned(),
        message: error.to_string(),
        location: error.instance_path().to_string(),
    })
}

/// Returns the request fields that make a provider answer in this format, if supported.
pub fn constraint(format: Option<&OutputFormat>, schema: Option<&OutputSchema>) -> Option<Value> {
    let format = format.filter(|format| format.is_json())?;
    let value = match (schema, format.schema.as_deref()) {
        (Some(schema), _) => schema.value.clone(),
        (None, Some("object")) => return Some(serde_json::json!({ "type": "json_object" })),
        _ => return None,
    };
    Some(serde_json::json!({ "type": "json_schema", "json_schema": { "name": "answer", "schema": value } }))
}

#[cfg(test)]
mod tests;
