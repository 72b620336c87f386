//! From the text a model sent as arguments to a value its tool can trust.
//!
//! [`parse`] is strict JSON first; text that is not is read by `repair`, which accepts what can mean only one
//! thing. `fit` then holds the value against the schema: it converts where the schema leaves one reading, and
//! collects everything that does not fit.

mod fit;
mod repair;

#[cfg(test)]
mod tests;

use serde_json::Value;

use crate::tool::Definition;

/// The arguments as a value that fits the definition's schema, with every parameter under its own name.
///
/// The error is the answer for the model: all problems at once, and what the tool expects.
pub fn parse(raw: &str, definition: &Definition) -> Result<Value, String> {
    let value = match serde_json::from_str(raw) {
        Ok(value) => value,
        Err(strict) => repair::read(raw).map_err(|complaint| {
            // The lenient reader knows where reading became impossible; the strict one where it first differed.
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

/// JSON as models write it when they write it wrong, where it can mean only one thing; else where it stops making sense.
pub fn lenient(raw: &str) -> Result<Value, String> {
    repair::read(raw)
}
