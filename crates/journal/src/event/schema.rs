//! The JSON Schema of the event stream, generated from the event types so that the two cannot disagree.

use serde_json::{Value, json};

use super::Event;

/// Schema of one line of the stream.
pub fn json_schema() -> Value {
    let generator = schemars::generate::SchemaSettings::draft2020_12().into_generator();
    let mut schema = generator.into_root_schema_for::<Event>().to_value();
    let envelope = json!({
        "seq": { "type": "integer", "minimum": 0, "description": "Strictly increasing within a run." },
        "ts": {
            "type": "string",
            "pattern": r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$",
            "description": "RFC 3339, UTC, milliseconds.",
        },
        "run": { "type": "string", "pattern": "^[A-Za-z0-9._-]{1,64}$" },
        "task": { "type": "string", "description": "`main`, or the path of one of its child branches." },
    });
    if let Some(schema) = schema.as_object_mut() {
        schema.insert("title".into(), "Fusee event".into());
        schema.insert("description".into(), "One line of `fusee run --json` or `fusee show --json`.".into());
        schema.insert("type".into(), "object".into());
        schema.insert("required".into(), json!(["seq", "ts", "run", "task", "type"]));
        schema.insert("properties".into(), envelope);
        schema.insert("unevaluatedProperties".into(), Value::Bool(false));
    }
    schema
}
