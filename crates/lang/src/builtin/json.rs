//! Parsing and encoding of JSON text.

use serde_json::Value as Json;

use super::{Run, builtins, text_of};
use crate::fuel::Fuel;
use crate::runtime_error::UnlocatedError;
use crate::value::{JsonProblem, Value};

builtins! {
    "(json-parse s)" exactly(1) "Parses JSON text; raises if it is invalid."
        => Run::Pure(|fuel, args| {
            let text = text_of("json-parse", args.first().unwrap_or(&Value::Nil))?;
            parse(fuel, text)
        });
    "(json-encode a)" exactly(1) "Encodes the value as JSON text."
        => Run::Pure(|fuel, args| {
            let json = args.first().unwrap_or(&Value::Nil).to_json().map_err(not_json)?;
            let text = json.to_string();
            fuel.text(text.len())?;
            Ok(Value::text(text))
        });
}

/// Parses JSON text.
pub(super) fn parse(fuel: &mut Fuel, text: &str) -> Result<Value, UnlocatedError> {
    // A value takes at most 16 times the memory of its shortest text, `0,`.
    fuel.text(text.len().saturating_mul(16))?;
    match serde_json::from_str::<Json>(text) {
        Ok(json) => Ok(Value::from_json(json)),
        Err(error) => Err(UnlocatedError::new("bad-json", format!("invalid JSON: {error}"))),
    }
}

/// Converts a JSON conversion error to a runtime error.
pub(crate) fn not_json(problem: JsonProblem) -> UnlocatedError {
    match problem {
        JsonProblem::Failed(fault) => UnlocatedError::from(fault),
        JsonProblem::TooLarge => UnlocatedError::exhausted("memory", problem.to_string()),
        JsonProblem::Function(_) | JsonProblem::TooDeep => {
            UnlocatedError::new("not-data", problem.to_string())
        }
    }
}
