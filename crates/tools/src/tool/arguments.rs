//! Turns the argument text of a tool call into a value that fits the tool's schema.
//!
//! [`parse`] tries strict JSON first and falls back to `repair`, which accepts only malformed JSON with a
//! single possible meaning. `fit` then checks the value against the schema: it converts where the schema
//! allows only one reading, and collects every mismatch.

mod fit;
mod repair;

#[cfg(test)]
mod tests;

use serde_json::Value;

use crate::tool::ToolDefinition;

/// Parses arguments into a value that fits the definition's schema, with aliases renamed to parameter names.
///
/// The error is the answer for the model: all problems at once, and the signature the tool expects.
pub fn parse(raw: &str, definition: &ToolDefinition) -> Result<Value, String> {
    let value = match serde_json::from_str(raw) {
        Ok(value) => value,
        Err(strict) => repair::read(raw).map_err(|complaint| {
            // The lenient reader knows where parsing became impossible, the strict one where the text first
            // deviated.
            format!(
                "The arguments of {name} are not valid JSON: {complaint} (strictly: {strict}).\nSend one JSON object: {signature}",
                name = definition.name,
                signature = fit::signature(&definition.parameters),
            )
        })?,
    };
    fit::fit(value, definition).map_err(|problems| {
        let mut answer = format!("The arguments of {} do not fit:\n", definition.name);
        for problem in &problems {
            answer.push_str("- ");
            answer.push_str(problem);
            answer.push('\n');
        }
        answer.push_str("Expected: ");
        answer.push_str(&fit::signature(&definition.parameters));
        answer
    })
}

/// Parses malformed JSON that has a single possible meaning. The error gives the position where parsing
/// failed.
pub fn lenient(raw: &str) -> Result<Value, String> {
    repair::read(raw)
}
