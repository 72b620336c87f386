//! What a hook reads on its standard input.

use serde_json::{Map, Value, json};

use super::HookEvent;
use super::tool_names::OtherName;

/// An event of a task, for the hooks.
#[derive(Clone, Debug)]
pub(crate) struct HookInput {
    pub(super) event: HookEvent,
    /// Name that matchers are compared with.
    pub(super) subject: String,
    /// The tool call it is about.
    pub(super) call_id: Option<String>,
    /// Fields of the event.
    pub(super) fields: Map<String, Value>,
}

impl HookInput {
    /// An event; `subject` is what matchers are compared with.
    pub(crate) fn new(event: HookEvent, subject: &str, fields: Value) -> Self {
        let fields = if let Value::Object(fields) = fields { fields } else { Map::new() };
        Self { event, subject: subject.to_owned(), call_id: None, fields }
    }

    /// An event about a tool call.
    pub(crate) fn about_call(event: HookEvent, name: &str, arguments: &Value, call_id: &str) -> Self {
        let fields = json!({ "tool_name": name, "tool_input": arguments, "tool_use_id": call_id });
        Self { call_id: Some(call_id.to_owned()), ..Self::new(event, name, fields) }
    }

    /// Adds a field.
    #[must_use]
    pub(crate) fn with(mut self, name: &str, value: Value) -> Self {
        self.fields.insert(name.to_owned(), value);
        self
    }

    /// The document for a hook: `base` and the fields of the event, with the names of Claude Code if the hook's
    /// matcher uses those.
    pub(super) fn document(&self, base: &Map<String, Value>, other: Option<&OtherName>) -> Value {
        let mut document = base.clone();
        document.insert("hook_event_name".to_owned(), self.event.name().into());
        document.extend(self.fields.clone());
        if let Some(other) = other.filter(|other| other.ours != "apply_patch") {
            document.insert("tool_name".to_owned(), other.theirs.into());
            if let Some(arguments) = self.fields.get("tool_input") {
                document.insert("tool_input".to_owned(), other.to_theirs(arguments));
            }
        }
        Value::Object(document)
    }
}
