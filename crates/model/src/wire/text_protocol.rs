//! Encodes tool calls as plain text in chat messages, for the tool formats `text` and `schema`: tools are
//! described in the system prompt, a call has one fixed form, and its result is the next user message.
//! `schema_calls` requests such calls; [`crate::text_calls`] finds them in text.
//!
//! A message is left open at the end of its string, so that consecutive results are joined into one message:
//! many chat templates require alternating roles.

use std::fmt::Write as _;

use bytes::{BufMut, BytesMut};
use serde_json::{Map, Value};

use super::body_tail::BodyTail;
use super::{MessagePrefix, arguments_text, openai_chat, without_images};
use crate::profile::{ModelTraits, ToolFormat};
use crate::{Message, RequestOptions, ToolCall, ToolChoice, ToolSpec};

/// Bytes that close the last message of a request.
pub(crate) const END: &[u8] = b"\"}";

/// Name of the pseudo-tool for answering, for models that can only call tools.
pub(crate) const ANSWER: &str = "answer";

/// The long text of a call, placed outside its JSON. Code inside a JSON string is what breaks small models.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallBody {
    /// The value of this argument.
    Whole(&'static str),
    /// The values of these two arguments, as a search/replace block.
    Replace { old: &'static str, new: &'static str },
}

/// The tools that have a body.
const BODIES: &[(&str, CallBody)] = &[
    ("write_file", CallBody::Whole("content")),
    ("edit_file", CallBody::Replace { old: "old", new: "new" }),
    ("apply_patch", CallBody::Whole("patch")),
];

pub(crate) const SEARCH: &str = "<<<<<<< SEARCH\n";
pub(crate) const MIDDLE: &str = "=======\n";
pub(crate) const REPLACE: &str = ">>>>>>> REPLACE\n";

impl CallBody {
    pub(crate) fn from_tool(tool: &str) -> Option<CallBody> {
        BODIES.iter().find(|(name, _)| *name == tool).map(|(_, body)| *body)
    }

    pub(crate) fn holds(self, argument: &str) -> bool {
        match self {
            CallBody::Whole(field) => field == argument,
            CallBody::Replace { old, new } => old == argument || new == argument,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    User,
    Assistant,
}

pub(crate) fn message(out: &mut BytesMut, message: &Message, before: MessagePrefix<'_>, traits: ModelTraits) {
    match message {
        Message::User { text, images } => raw(out, Role::User, &without_images(text, images), before),
        Message::Tool { name, content, images, .. } => {
            let content = without_images(content, images);
            raw(out, Role::User, &format!("Result of {name}:\n{content}"), before);
        }
        Message::Assistant { text, reasoning, tool_calls } => {
            let thought = reasoning.as_ref().map_or("", |reasoning| &reasoning.text);
            raw(out, Role::Assistant, &assistant_text(text, thought, tool_calls, traits), before);
        }
    }
}

/// Writes a message with this text, joined to the previous one if it has the same role.
pub(crate) fn raw(out: &mut BytesMut, role: Role, text: &str, before: MessagePrefix<'_>) {
    let last = match before {
        MessagePrefix::Message(Message::User { .. } | Message::Tool { .. }) => Some(Role::User),
        MessagePrefix::Message(Message::Assistant { .. }) => Some(Role::Assistant),
        MessagePrefix::Nothing | MessagePrefix::System => None,
    };
    match (last, before) {
        (Some(last), _) if last == role => out.put_slice(b"\\n\\n"),
        (Some(_), _) => {
            out.put_slice(b"\"},");
            head(out, role);
        }
        (None, MessagePrefix::System) => {
            out.put_u8(b',');
            head(out, role);
        }
        (None, _) => head(out, role),
    }
    // Without quotes: the head contains the opening one, and whatever follows writes the closing one.
    let quoted = Value::from(text).to_string();
    out.put_slice(&quoted.as_bytes()[1..quoted.len() - 1]);
}

fn head(out: &mut BytesMut, role: Role) {
    out.put_slice(match role {
        Role::User => b"{\"role\":\"user\",\"content\":\"".as_slice(),
        Role::Assistant => b"{\"role\":\"assistant\",\"content\":\"",
    });
}

/// The text of an assistant message, in a canonical form.
fn assistant_text(text: &str, thought: &str, calls: &[ToolCall], traits: ModelTraits) -> String {
    match traits.tool_format {
        ToolFormat::Schema => match calls {
            [] => header(thought, ANSWER, &serde_json::json!({ "text": text })),
            calls => {
                let calls: Vec<String> = calls.iter().map(|call| schema_call(thought, call)).collect();
                calls.join("\n")
            }
        },
        ToolFormat::Native | ToolFormat::Text => {
            let calls = calls.iter().map(|call| {
                let name = serde_json::json!(call.name);
                format!(
                    "<tool_call>\n{{\"name\":{name},\"arguments\":{}}}\n</tool_call>",
                    arguments_text(&call.arguments)
                )
            });
            let parts: Vec<String> =
                [text.to_owned()].into_iter().filter(|text| !text.is_empty()).chain(calls).collect();
            parts.join("\n")
        }
    }
}

pub(crate) fn header(thought: &str, tool: &str, arguments: &Value) -> String {
    serde_json::json!({ "thought": thought, "tool": tool, "arguments": arguments }).to_string()
}

fn schema_call(thought: &str, call: &ToolCall) -> String {
    let arguments = serde_json::from_str::<Map<String, Value>>(&call.arguments);
    let (Ok(mut arguments), Some(body)) = (arguments, CallBody::from_tool(&call.name)) else {
        let arguments = serde_json::from_str(&arguments_text(&call.arguments)).unwrap_or_default();
        return header(thought, &call.name, &arguments);
    };
    let mut take = |field: &str| match arguments.shift_remove(field) {
        Some(Value::String(text)) => text,
        _ => String::new(),
    };
    let text = match body {
        CallBody::Whole(field) => with_final_newline(&take(field)),
        CallBody::Replace { old, new } => {
            format!(
                "{SEARCH}{}{MIDDLE}{}{REPLACE}",
                with_final_newline(&take(old)),
                with_final_newline(&take(new))
            )
        }
    };
    let path = arguments.get("path").and_then(Value::as_str).unwrap_or_default().to_owned();
    let fence = fence(&text);
    let language = if body == CallBody::Whole("patch") { "diff" } else { language(&path) };
    format!("{}\n{fence}{language}\n{text}{fence}", header(thought, &call.name, &Value::Object(arguments)))
}

/// Adds a final line break if it is missing.
fn with_final_newline(text: &str) -> String {
    if text.is_empty() || text.ends_with('\n') { text.to_owned() } else { format!("{text}\n") }
}

/// A fence longer than any at the start of a line in the text.
fn fence(text: &str) -> String {
    let runs = text.lines().map(|line| line.len() - line.trim_start_matches('`').len());
    "`".repeat(runs.max().unwrap_or_default().max(2) + 1)
}

/// The info string of a fence, from which the model knows what to write.
pub(crate) fn language(path: &str) -> &'static str {
    match path.rsplit_once('.').map_or("", |(_, extension)| extension) {
        "py" => "python",
        "rs" => "rust",
        "js" | "mjs" | "cjs" => "javascript",
        "ts" => "typescript",
        "go" => "go",
        "java" => "java",
        "c" | "h" => "c",
        "cc" | "cpp" | "hpp" => "cpp",
        "rb" => "ruby",
        "sh" => "bash",
        "json" => "json",
        "toml" => "toml",
        "html" => "html",
        "css" => "css",
        "md" => "markdown",
        _ => "",
    }
}

/// The system prompt with all tools in a fixed order; which of them are open is not part of it.
pub(crate) fn system(system: &str, tools: &[ToolSpec], traits: ModelTraits) -> String {
    if tools.is_empty() {
        return system.to_owned();
    }
    let mut out = system.trim_end().to_owned();
    if !out.is_empty() {
        out.push_str("\n\n");
    }
    out.push_str("# Tools\n\n");
    out.push_str(match traits.tool_format {
        ToolFormat::Schema => {
            "Each reply is one call, written as JSON: {\"thought\": why, in a few words, \"tool\": its name, \
             \"arguments\": {…}}. Where a tool takes a body, the body follows in a fenced block. To end, call `answer` with your text.\n"
        }
        ToolFormat::Native | ToolFormat::Text => {
            "To call a tool, write exactly this and wait for the result:\n<tool_call>\n{\"name\": its name, \
             \"arguments\": {…}}\n</tool_call>\nWithout a call, your reply is the answer.\n"
        }
    });
    for tool in tools {
        let body = CallBody::from_tool(&tool.name).filter(|_| traits.tool_format == ToolFormat::Schema);
        let _ = write!(out, "\n- {}({})", tool.name, parameters(tool, body));
        let _ = write!(out, ": {}", first_sentence(&tool.description));
        match body {
            Some(CallBody::Whole(field)) => {
                let _ = write!(out, " Body: the {field}.");
            }
            Some(CallBody::Replace { .. }) => {
                let _ = write!(out, " Body: {SEARCH}old lines\n{MIDDLE}new lines\n{}", REPLACE.trim_end());
            }
            None => {}
        }
    }
    out.push('\n');
    out
}

fn parameters(tool: &ToolSpec, body: Option<CallBody>) -> String {
    let required: Vec<&str> =
        tool.parameters["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let properties = tool.parameters["properties"].as_object().into_iter().flatten();
    let shown = properties.filter(|(name, _)| body.is_none_or(|body| !body.holds(name)));
    let shown = shown.map(|(name, schema)| {
        let optional = if required.contains(&name.as_str()) { "" } else { "?" };
        format!("{name}{optional}: {}", type_name(schema))
    });
    shown.collect::<Vec<_>>().join(", ")
}

fn type_name(schema: &Value) -> String {
    if let Some(words) = schema["enum"].as_array() {
        return words.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("|");
    }
    match schema["type"].as_str() {
        Some("array") => format!("[{}]", type_name(&schema["items"])),
        Some("object") => {
            let fields = schema["properties"].as_object().into_iter().flatten();
            format!("{{{}}}", fields.map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", "))
        }
        Some(word) => word.to_owned(),
        None => "any".to_owned(),
    }
}

fn first_sentence(text: &str) -> &str {
    let line = text.lines().next().unwrap_or_default();
    line.find(". ").map_or(line, |at| &line[..=at])
}

/// The closing fields of chat completions, without those for native tools.
pub(crate) fn closing(id: &str, options: &RequestOptions, traits: ModelTraits) -> BodyTail {
    let options = RequestOptions { tool_choice: ToolChoice::Auto, ..options.clone() };
    openai_chat::closing(id, &options, traits)
}
