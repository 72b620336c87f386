//! Reads the list of stages (`flow`). All errors are reported at once, each with its position.

use fusee::engine::text::{Span, suggest};
use serde_json::{Map, json};

use super::flow_keys::STAGE_KEYS;
use super::key::Key;
use super::spanned_tree::{Leaf, Node, parse_json};
use super::value::{TypeMismatch, Value};

/// Maximum number of stages.
const MAX_STAGES: usize = 50;

/// An error in a list of stages.
#[derive(Debug)]
pub(crate) struct StageError {
    pub(crate) code: &'static str,
    pub(crate) at: Span,
    pub(crate) message: String,
    pub(crate) help: Option<String>,
}

/// Converts the stages to JSON, each a table of the keys in [`STAGE_KEYS`].
pub(crate) fn read(list: &Node) -> Result<Value, Vec<StageError>> {
    let mut errors = Vec::new();
    let Leaf::List(items) = &list.value else {
        let message = format!("`flow` must be a list of stages, found {}", list.shown());
        let help = Some("[[flow]] id = \"context\" prompt = \"…\"".to_owned());
        return Err(vec![StageError { code: "wrong-type", at: list.span, message, help }]);
    };
    let mut stages: Vec<serde_json::Value> = Vec::new();
    for item in items {
        let mut stage = Map::new();
        table(item, "", &mut stage, &mut errors);
        check(item, &stage, &stages, &mut errors);
        stages.push(nested(stage));
    }
    if items.is_empty() || items.len() > MAX_STAGES {
        let message = format!("`flow` has {} stages; it must have 1 to {MAX_STAGES}", items.len());
        errors.push(StageError { code: "wrong-value", at: list.span, message, help: None });
    }
    if errors.is_empty() { Ok(Value::Stages(stages.into())) } else { Err(errors) }
}

/// Parses stages from the JSON text of a variable.
pub(crate) fn read_text(text: &str) -> Result<Value, TypeMismatch> {
    let node = parse_json(text).map_err(|(_, words)| TypeMismatch {
        message: format!("expected a JSON list of stages: {words}"),
        help: None,
    })?;
    read(&node).map_err(|errors| {
        let words = errors.iter().map(|error| error.message.as_str()).collect::<Vec<_>>();
        TypeMismatch { message: words.join("; "), help: errors.into_iter().find_map(|error| error.help) }
    })
}

fn table(node: &Node, prefix: &str, into: &mut Map<String, serde_json::Value>, out: &mut Vec<StageError>) {
    let Leaf::Table(entries) = &node.value else {
        let message = format!("a stage must be a table (id, prompt, …), found {}", node.shown());
        return out.push(StageError { code: "wrong-type", at: node.span, message, help: None });
    };
    for entry in entries {
        let path = if prefix.is_empty() { entry.name.clone() } else { format!("{prefix}.{}", entry.name) };
        if let Some(key) = STAGE_KEYS.iter().find(|key| key.name == path) {
            match key.kind.read(&entry.node) {
                Ok(value) => {
                    into.insert(path, serde_json::Value::from(&value));
                }
                Err(TypeMismatch { message, help }) => {
                    let message = format!("`{path}` of a stage: {message}");
                    out.push(StageError { code: "wrong-value", at: entry.node.span, message, help });
                }
            }
        } else if prefix.is_empty() && matches!(path.as_str(), "before" | "after") {
            table(&entry.node, &path, into, out);
        } else {
            let help = suggest::did_you_mean(&path, STAGE_KEYS.iter().map(|key| key.name));
            let message = format!("unknown key `{path}` in a stage");
            let names = || format!("valid keys: {}", names().join(", "));
            out.push(StageError {
                code: "unknown-key",
                at: entry.at,
                message,
                help: Some(help.unwrap_or_else(names)),
            });
        }
    }
}

fn names() -> Vec<&'static str> {
    STAGE_KEYS.iter().map(|key: &Key| key.name).collect()
}

/// Checks what a single value cannot show: that the stage has an id, and that it is unique.
fn check(
    node: &Node,
    stage: &Map<String, serde_json::Value>,
    before: &[serde_json::Value],
    out: &mut Vec<StageError>,
) {
    let Leaf::Table(entries) = &node.value else { return };
    let place = |name: &str| entries.iter().find(|entry| entry.name == name).map(|entry| entry.node.span);
    match stage.get("id").and_then(serde_json::Value::as_str) {
        None if place("id").is_some() => {}
        None => {
            let message = "a stage has no `id`".to_owned();
            let help = Some("add id = \"…\": the model names it in flow_stage_done".to_owned());
            out.push(StageError { code: "missing-key", at: node.span, message, help });
        }
        Some(id) if before.iter().any(|other| other["id"] == id) => {
            let message = format!("two stages have the id `{id}`");
            let at = place("id").unwrap_or(node.span);
            out.push(StageError { code: "duplicate", at, message, help: None });
        }
        Some(id) if !id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte)) => {
            let message = format!("the id `{id}` may contain only A-Z a-z 0-9 . _ -");
            let at = place("id").unwrap_or(node.span);
            out.push(StageError { code: "wrong-value", at, message, help: None });
        }
        Some(_) => {}
    }
}

/// Turns dotted keys such as `before.read` back into nested tables.
fn nested(flat: Map<String, serde_json::Value>) -> serde_json::Value {
    let mut stage = Map::new();
    for (path, value) in flat {
        match path.split_once('.') {
            None => {
                stage.insert(path, value);
            }
            Some((table, name)) => {
                let table = stage.entry(table).or_insert_with(|| json!({}));
                table[name] = value;
            }
        }
    }
    stage.into()
}
