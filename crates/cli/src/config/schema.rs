//! The JSON Schema of a configuration file, for editors. Generated from the table of keys.

use serde_json::{Map, Value, json};

use super::mcp;
use super::rule;
use super::{AGENT_KEYS, ALIASES, KEYS, Key, KeyScope, Kind, MODEL_KEYS, STAGE_KEYS, Unit};

/// The schema of `fusee.toml`, the user's file and agent files.
pub(crate) fn json_schema() -> Value {
    let mut properties = Map::new();
    for key in KEYS {
        put(&mut properties, key.name, described(key));
    }
    for key in AGENT_KEYS {
        let mut schema = described(key);
        schema["description"] = format!("{} Only in an agent file.", key.doc).into();
        put(&mut properties, key.name, schema);
    }
    for alias in ALIASES {
        let Some(key) = Key::named(alias.key) else { continue };
        let mut schema = match alias.unit {
            Unit::Same => key.kind.schema(),
            Unit::Milliseconds => Kind::Whole { least: 1, most: i64::MAX as u64 }.schema(),
        };
        let unit = if alias.unit == Unit::Milliseconds { ", in milliseconds" } else { "" };
        schema["description"] = format!("The same as `{}`{unit}.", alias.key).into();
        put(&mut properties, alias.name, schema);
    }
    let fields: Map<String, Value> =
        MODEL_KEYS.iter().map(|key| (key.name.to_owned(), described(key))).collect();
    properties.insert(
        "models".to_owned(),
        json!({
            "type": "object",
            "description": "Named models, for `-m NAME`. In a project only after `fusee trust`.",
            "additionalProperties": {
                "type": "object",
                "properties": fields,
                "required": ["model"],
                "additionalProperties": false,
            },
        }),
    );
    properties.insert("rules".to_owned(), rule::schema());
    properties.insert("mcp".to_owned(), mcp::schema());
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Fusee configuration",
        "description": "`fusee.toml` of a project, `config.toml` of a user, and agent files (`--agent FILE`, TOML or JSON).",
        "type": "object",
        "properties": properties,
        "additionalProperties": false,
    })
}

/// The schema of a list of stages.
pub(super) fn stages() -> Value {
    let mut properties = Map::new();
    for key in STAGE_KEYS {
        put(&mut properties, key.name, described(key));
    }
    json!({
        "type": "array",
        "minItems": 1,
        "items": { "type": "object", "properties": properties, "required": ["id"], "additionalProperties": false },
    })
}

fn described(key: &Key) -> Value {
    let mut schema = key.kind.schema();
    let own = if key.reach == KeyScope::Outside { " In a project only after `fusee trust`." } else { "" };
    schema["description"] = format!("{}{own}", key.doc).into();
    if let Some(value) = key.default.and_then(|text| key.kind.read_text(text).ok()) {
        schema["default"] = Value::from(&value);
    }
    schema
}

/// Inserts a schema at a dotted path, creating the tables in between.
fn put(properties: &mut Map<String, Value>, path: &str, schema: Value) {
    match path.split_once('.') {
        None => {
            properties.insert(path.to_owned(), schema);
        }
        Some((table, rest)) => {
            let empty = || json!({ "type": "object", "properties": {}, "additionalProperties": false });
            let entry = properties.entry(table).or_insert_with(empty);
            // A key that is both a value and a table, such as `sandbox`.
            if entry.get("properties").is_none() && entry.get("anyOf").is_none() {
                *entry = json!({ "anyOf": [entry.take(), empty()] });
            }
            let place = if entry.get("anyOf").is_some() { "/anyOf/1/properties" } else { "/properties" };
            if let Some(inner) = entry.pointer_mut(place).and_then(Value::as_object_mut) {
                put(inner, rest, schema);
            }
        }
    }
}
