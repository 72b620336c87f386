//! The open tools of a request as a JSON Schema: the union of the allowed headers.

use serde_json::{Map, Value, json};

use super::alternative;
use crate::wire::text_protocol::{self, CallBody};
use crate::{Conversation, Message, RequestOptions, ToolCall, ToolChoice, ToolSpec};

/// Maximum length of short arguments and maximum number of list entries, so that a small model that repeats
/// itself comes to an end.
const MAX_TEXT: u64 = 500;
const MAX_ITEMS: u64 = 20;

/// The tools a model may call in a request.
pub(super) struct HeaderSchema<'a> {
    tools: Vec<ToolChoiceSchema<'a>>,
    answer: bool,
    /// Whether the model repeats itself and there is no alternative.
    stuck: bool,
}

/// One tool that may be called.
struct ToolChoiceSchema<'a> {
    tool: &'a ToolSpec,
    paths: Vec<String>,
    bare: bool,
}

/// Minimum temperature for a model that keeps repeating itself.
const STUCK_TEMPERATURE: f64 = 0.8;

impl<'a> HeaderSchema<'a> {
    pub(super) fn new(conversation: &'a Conversation, options: &RequestOptions) -> HeaderSchema<'a> {
        let all = conversation.tools();
        let mut open = match &options.open {
            None => HeaderSchema {
                tools: all
                    .iter()
                    .map(|tool| ToolChoiceSchema { tool, paths: Vec::new(), bare: false })
                    .collect(),
                answer: true,
                stuck: false,
            },
            Some(open) => HeaderSchema {
                // In the order of the prompt, regardless of the order given.
                tools: all
                    .iter()
                    .filter_map(|tool| {
                        let entry = open.tools.iter().find(|entry| entry.name == tool.name)?;
                        Some(ToolChoiceSchema { tool, paths: entry.paths.clone(), bare: entry.bare })
                    })
                    .collect(),
                answer: open.answer,
                stuck: false,
            },
        };
        match &options.tool_choice {
            ToolChoice::Auto => {}
            ToolChoice::Nothing => open.tools.clear(),
            ToolChoice::Required => open.answer = false,
            ToolChoice::Named(name) => {
                open.tools.retain(|choice| choice.tool.name == *name);
                open.answer = false;
            }
        }
        if let Some(call) = repeated(conversation.messages()) {
            open.close(call);
        }
        open
    }

    pub(super) fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    /// The options of a request; a model that is stuck repeats itself forever unless its temperature is
    /// raised.
    pub(super) fn with_raised_temperature(&self, options: &RequestOptions) -> RequestOptions {
        let temperature = match options.temperature {
            given if !self.stuck => given,
            given => Some(given.unwrap_or_default().max(STUCK_TEMPERATURE)),
        };
        RequestOptions { temperature, ..options.clone() }
    }

    /// Closes a call for this request: its path if paths are listed, otherwise its tool. At least one choice
    /// stays open.
    fn close(&mut self, call: &ToolCall) {
        let alone = self.tools.len() + usize::from(self.answer) <= 1;
        let Some(at) = self.tools.iter().position(|choice| choice.tool.name == call.name) else { return };
        let path = serde_json::from_str::<Value>(&call.arguments).ok();
        let path = path.as_ref().and_then(|arguments| arguments["path"].as_str());
        let paths = &mut self.tools[at].paths;
        match path {
            Some(path) if paths.len() > 1 && paths.iter().any(|one| one == path) => {
                paths.retain(|one| one != path);
            }
            _ if !alone => _ = self.tools.remove(at),
            _ => self.stuck = true,
        }
    }

    /// The schema. A textual answer is one more alternative; `output` is the schema of a structured answer.
    pub(super) fn schema(&self, output: Option<&Value>) -> Value {
        let mut alternatives: Vec<Value> =
            self.tools.iter().map(|choice| alternative(&choice.tool.name, &arguments(choice))).collect();
        if self.answer {
            let (field, schema) = match output {
                Some(schema) => ("value", schema.clone()),
                None => ("text", json!({ "type": "string" })),
            };
            let mut properties = Map::new();
            properties.insert(field.to_owned(), schema);
            let arguments = json!({
                "type": "object", "properties": properties, "required": [field], "additionalProperties": false,
            });
            alternatives.push(alternative(text_protocol::ANSWER, &arguments));
        }
        match alternatives.as_slice() {
            [only] => only.clone(),
            _ => json!({ "anyOf": alternatives }),
        }
    }
}

/// Schema of a tool's short arguments.
fn arguments(choice: &ToolChoiceSchema<'_>) -> Value {
    let ToolChoiceSchema { tool, paths, bare } = choice;
    let body = CallBody::from_tool(&tool.name);
    let mut schema = tool.parameters.clone();
    let must = schema["required"].as_array().cloned().unwrap_or_default();
    if let Some(properties) = schema["properties"].as_object_mut() {
        properties.retain(|name, _| !bare || must.iter().any(|needed| needed == name));
        properties.retain(|name, _| body.is_none_or(|body| !body.holds(name)));
        for (name, property) in properties.iter_mut() {
            match name.as_str() {
                "path" if !paths.is_empty() => *property = json!({ "enum": paths }),
                "paths" if !paths.is_empty() => {
                    let most = MAX_ITEMS.min(paths.len() as u64);
                    *property = json!({ "type": "array", "items": { "enum": paths }, "minItems": 1, "maxItems": most });
                }
                _ => bound(property),
            }
        }
    }
    close(&mut schema);
    if let Some(required) = schema["required"].as_array_mut() {
        required.retain(|name| name.as_str().is_none_or(|name| body.is_none_or(|body| !body.holds(name))));
    }
    schema
}

/// Bounds every text and list, and drops descriptions.
fn bound(schema: &mut Value) {
    let Some(fields) = schema.as_object_mut() else { return };
    fields.shift_remove("description");
    match fields.get("type").and_then(Value::as_str) {
        Some("string") if !fields.contains_key("enum") => {
            fields.entry("maxLength").or_insert_with(|| MAX_TEXT.into());
        }
        Some("array") => {
            fields.entry("maxItems").or_insert_with(|| MAX_ITEMS.into());
            fields.get_mut("items").into_iter().for_each(bound);
        }
        Some("object") => {
            let properties = fields.get_mut("properties").and_then(Value::as_object_mut);
            properties.into_iter().flat_map(Map::values_mut).for_each(bound);
            close(schema);
        }
        _ => {}
    }
}

/// Sets `additionalProperties` to false on objects that list their properties without it, because servers
/// interpret its absence differently.
fn close(schema: &mut Value) {
    if let Some(fields) = schema.as_object_mut().filter(|fields| fields.contains_key("properties")) {
        fields.entry("additionalProperties").or_insert(Value::Bool(false));
    }
}

/// A call made twice in a row with the same result. Telling a small model does not help; closing the tool
/// does. The result may differ in one case: the third repetition is refused.
fn repeated(messages: &[Message]) -> Option<&ToolCall> {
    let [before @ .., Message::Assistant { tool_calls, .. }, Message::Tool { content, .. }] = messages else {
        return None;
    };
    let [.., Message::Assistant { tool_calls: earlier, .. }, Message::Tool { content: result, .. }] = before
    else {
        return None;
    };
    let ([call], [other]) = (tool_calls.as_slice(), earlier.as_slice()) else { return None };
    let refused = content.starts_with("Not run: ");
    (call.name == other.name && call.arguments == other.arguments && (refused || content == result))
        .then_some(call)
}
