//! The events page, generated from the JSON Schema of events.

use serde_json::Value;

use super::{cell, heading};

/// Renders the page.
pub(crate) fn page() -> String {
    let schema = fusee::engine::journal::event::json_schema();
    let mut text = heading("Events", "crates/journal/src/event.rs");
    text.push_str(
        "Events printed by `fusee run --json`, one JSON object per line; `fusee show RUN --json` prints those of a recorded \
         run, without streamed message fragments. Every event has these fields besides its own:\n\n\
         | field | |\n|---|---|\n",
    );
    fields(&mut text, &schema["properties"], &Value::Null);
    text.push_str("| `type` | kind of the event |\n\n`schema/events.schema.json` is the schema of a line.\n");
    for event in schema["oneOf"].as_array().map(Vec::as_slice).unwrap_or_default() {
        let name = event["properties"]["type"]["const"].as_str().unwrap_or_default();
        text.push_str(&format!(
            "\n## `{name}`\n\n{}\n",
            cell(event["description"].as_str().unwrap_or_default())
        ));
        let named = resolve(&schema, event);
        let mut rows = String::new();
        fields(&mut rows, &named["properties"], &named["required"]);
        if !rows.is_empty() {
            text.push_str(&format!("\n| field | |\n|---|---|\n{rows}"));
        }
    }
    text
}

/// The definition an event refers to, or the event itself.
fn resolve<'s>(schema: &'s Value, event: &'s Value) -> &'s Value {
    match event["$ref"].as_str().and_then(|reference| reference.strip_prefix("#/$defs/")) {
        Some(name) => &schema["$defs"][name],
        None => event,
    }
}

fn fields(text: &mut String, properties: &Value, required: &Value) {
    let Some(properties) = properties.as_object() else { return };
    for (name, field) in properties.iter().filter(|(name, _)| *name != "type") {
        let always = required.as_array().is_none_or(|names| names.iter().any(|other| other == name));
        let optional = if always { "" } else { " (optional)" };
        let description = cell(field["description"].as_str().unwrap_or_default());
        text.push_str(&format!("| `{name}` | {description}{optional} |\n"));
    }
}
