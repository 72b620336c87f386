//! What a hook reads on its standard input.

use fusee_tools::Tool;
use serde_json::{Map, Value, json};

use super::HookEvent;
use super::matcher::Fit;

/// The parameter of `apply_patch`, and its name in Codex.
const PATCH: &str = "patch";
const CODEX_PATCH: &str = "command";

/// An event of a task, for the hooks.
#[derive(Clone, Debug)]
pub(crate) struct HookInput {
    pub(super) event: HookEvent,
    /// Name that matchers are compared with.
    pub(super) subject: String,
    /// The other name of a tool of an MCP server: `mcp__SERVER__TOOL`.
    pub(super) mcp_name: Option<String>,
    /// The tool call it is about.
    pub(super) call_id: Option<String>,
    /// Fields of the event.
    pub(super) fields: Map<String, Value>,
}

impl HookInput {
    /// An event; `subject` is what matchers are compared with.
    pub(crate) fn new(event: HookEvent, subject: &str, fields: Value) -> Self {
        let fields = if let Value::Object(fields) = fields { fields } else { Map::new() };
        Self { event, subject: subject.to_owned(), mcp_name: None, call_id: None, fields }
    }

    /// An event about a call of a tool.
    pub(crate) fn about_call(event: HookEvent, tool: &dyn Tool, arguments: &Value, call_id: &str) -> Self {
        let name = &*tool.definition().name;
        let fields = json!({ "tool_name": name, "tool_input": arguments, "tool_use_id": call_id });
        let mcp_name = tool.extra_aliases().into_iter().find(|alias| alias.starts_with("mcp__"));
        Self { mcp_name, call_id: Some(call_id.to_owned()), ..Self::new(event, name, fields) }
    }

    /// Adds a field.
    #[must_use]
    pub(crate) fn with(mut self, name: &str, value: Value) -> Self {
        self.fields.insert(name.to_owned(), value);
        self
    }

    /// The document for a hook: `base` and the fields of the event, with the names of Claude Code if the hook's
    /// matcher uses those. A patch has the names of Codex in any case.
    pub(super) fn document(&self, base: &Map<String, Value>, fit: Fit) -> Value {
        let mut document = base.clone();
        document.insert("hook_event_name".to_owned(), self.event.name().into());
        document.extend(self.fields.clone());
        match (fit, &self.mcp_name) {
            _ if self.is_patch() => {
                let patch = self.fields.get("tool_input").and_then(|arguments| arguments.get(PATCH)).cloned();
                if let (Some(Value::Object(arguments)), Some(patch)) = (document.get_mut("tool_input"), patch)
                {
                    arguments.insert(CODEX_PATCH.to_owned(), patch);
                }
            }
            (Fit::Other(other), _) => {
                document.insert("tool_name".to_owned(), other.theirs.into());
                if let Some(arguments) = self.fields.get("tool_input") {
                    document.insert("tool_input".to_owned(), other.to_theirs(arguments));
                }
            }
            (Fit::Mcp, Some(name)) => {
                document.insert("tool_name".to_owned(), name.as_str().into());
            }
            (Fit::Own | Fit::Mcp, _) => {}
        }
        Value::Object(document)
    }

    /// The arguments that a hook gave, with our names.
    pub(super) fn to_ours(&self, mut arguments: Value, fit: Fit) -> Value {
        match fit {
            _ if self.is_patch() => {
                if let Value::Object(fields) = &mut arguments
                    && let Some(patch) = fields.remove(CODEX_PATCH)
                {
                    // Whoever changes a copy of what it read may have changed either.
                    let before = self.fields.get("tool_input").and_then(|arguments| arguments.get(PATCH));
                    if fields.get(PATCH).is_none_or(|own| Some(own) == before) {
                        fields.insert(PATCH.to_owned(), patch);
                    }
                }
                arguments
            }
            Fit::Other(other) => other.to_ours(arguments),
            Fit::Own | Fit::Mcp => arguments,
        }
    }

    fn is_patch(&self) -> bool {
        self.subject == "apply_patch"
    }
}
