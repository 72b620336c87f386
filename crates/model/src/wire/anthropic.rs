//! Encodes Anthropic messages. [`decode`] is the other direction.
//!
//! Roles must alternate in this format, so consecutive results and user messages are joined into one message.
//! The last block of a request carries the cache breakpoint; therefore the closing brace of each block is
//! omitted and written by what follows.

use bytes::{BufMut, Bytes, BytesMut};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

pub mod decode;

use super::body_tail::BodyTail;
use super::{MessagePrefix, arguments_text, is_of_call, json, more_of_call, without_images};
use crate::profile::{ComputerTool, ModelTraits, ProviderTools, ReasoningReplay, ThinkingStyle};
use crate::{Image, Message, Reasoning, RequestOptions, ToolChoice, ToolSpec};

/// Default limit; the API requires one with every request.
const MAX_TOKENS: u32 = 8_192;

/// Tokens reserved for the answer in addition to the thinking budget.
const ANSWER_TOKENS: u32 = 4_096;

/// Replaces empty texts, which the API rejects.
const NOTHING: &str = "[nothing]";

pub(crate) fn opening(system: &str) -> Bytes {
    let mut out = BytesMut::new();
    if system.trim().is_empty() {
        out.put_slice(b"{\"messages\":[");
    } else {
        out.put_slice(b"{\"system\":");
        // One breakpoint for everything constant in a task: the server puts the tools before the system
        // prompt.
        json(
            &mut out,
            &json!([{ "type": "text", "text": system, "cache_control": { "type": "ephemeral" } }]),
        );
        out.put_slice(b",\"messages\":[");
    }
    out.freeze()
}

pub(crate) fn message(out: &mut BytesMut, message: &Message, before: MessagePrefix<'_>, traits: ModelTraits) {
    let role = role(message);
    match before {
        MessagePrefix::Message(last) if self::role(last) == role => out.put_slice(b"},"),
        MessagePrefix::Message(_) => {
            out.put_slice(b"}]},");
            head(out, role);
        }
        MessagePrefix::Nothing | MessagePrefix::System => head(out, role),
    }
    match message {
        Message::User { text, images } => {
            for image in images.iter().filter(|_| traits.images) {
                block(out, &Part::Image { source: Source { kind: "base64", image } });
                out.put_slice(b"},");
            }
            let left_out = if traits.images { &[] } else { images.as_slice() };
            block(out, &Part::Text { text: filled(&without_images(text, left_out)) });
        }
        Message::Tool { call_id, content, ok, images, .. } => {
            result(out, call_id, content, images, *ok, traits)
        }
        Message::Assistant { text, reasoning, tool_calls } => {
            let mut blocks = thinking_blocks(reasoning.as_ref(), traits);
            if !text.trim().is_empty() || (blocks.is_empty() && tool_calls.is_empty()) {
                blocks.push(json!({ "type": "text", "text": filled(text) }));
            }
            for (index, thought) in blocks.iter().enumerate() {
                if index > 0 {
                    out.put_slice(b"},");
                }
                block(out, thought);
            }
            for (index, call) in tool_calls.iter().enumerate() {
                if index > 0 || !blocks.is_empty() {
                    out.put_slice(b"},");
                }
                let arguments = object_text(&call.arguments);
                // The model's own text, so that the bytes match the server's cache.
                let raw = RawValue::from_string(arguments).ok();
                out.put_slice(b"{\"type\":\"tool_use\",\"id\":");
                json(out, &call.id);
                out.put_slice(b",\"name\":");
                json(out, &call.name);
                out.put_slice(b",\"input\":");
                json(out, &raw);
                for (name, value) in more_of_call(reasoning.as_ref(), index).into_iter().flatten() {
                    out.put_u8(b',');
                    json(out, name);
                    out.put_u8(b':');
                    json(out, value);
                }
            }
        }
    }
}

fn result(out: &mut BytesMut, call_id: &str, content: &str, images: &[Image], ok: bool, traits: ModelTraits) {
    let (kind, tool_use_id, is_error) = ("tool_result", call_id, !ok);
    if images.is_empty() || !traits.images {
        return block(
            out,
            &ToolResult { kind, tool_use_id, content: without_images(content, images), is_error },
        );
    }
    let images = images.iter().map(|image| Part::Image { source: Source { kind: "base64", image } });
    let text = Part::Text { text: filled(content) };
    let content: Vec<Part<'_>> = std::iter::once(text).chain(images).collect();
    block(out, &ToolResult { kind, tool_use_id, content, is_error });
}

#[derive(Serialize)]
struct ToolResult<'a, C> {
    #[serde(rename = "type")]
    kind: &'static str,
    tool_use_id: &'a str,
    content: C,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_error: bool,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part<'a> {
    Text { text: &'a str },
    Image { source: Source<'a> },
}

#[derive(Serialize)]
struct Source<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(flatten)]
    image: &'a Image,
}

/// Bytes that close the last message of a request. The breakpoint is on the last user block; thinking blocks
/// cannot carry one.
pub(crate) fn end(last: &Message) -> &'static [u8] {
    match last {
        Message::User { .. } | Message::Tool { .. } => b",\"cache_control\":{\"type\":\"ephemeral\"}}]}",
        Message::Assistant { .. } => b"}]}",
    }
}

pub(crate) fn tools(tools: &[ToolSpec], traits: ModelTraits) -> Vec<Value> {
    let own = traits.provider_tools;
    let edits = tools.iter().any(|tool| tool.name == EDITED_BY);
    let wired = |tool: &ToolSpec| {
        let name = if edits {
            anthropic_tool_name(&tool.name, own)
        } else {
            anthropic_tool_name(&tool.name, own).filter(|name| *name == SHELL)
        };
        if let Some(computer) = computer(&tool.name, traits) {
            return computer;
        }
        match name {
            Some(SHELL) => json!({ "type": "bash_20250124", "name": SHELL }),
            Some(editor) => json!({ "type": editor_type(own), "name": editor }),
            None => {
                json!({ "name": tool.name, "description": tool.description, "input_schema": tool.parameters })
            }
        }
    };
    let mut wired: Vec<Value> = tools.iter().map(wired).collect();
    // One editor replaces several of our tools.
    let mut seen = std::collections::HashSet::new();
    wired.retain(|tool| tool.get("type").is_none_or(|kind| seen.insert(kind.to_string())));
    wired
}

/// Anthropic's shell tool.
const SHELL: &str = "bash";
/// The editor is offered only if this tool is: without it, files can only be read.
const EDITED_BY: &str = "edit_file";

/// Our tool that is Anthropic's computer use tool.
const COMPUTER: &str = "computer";

/// The computer use tool in its own type, for the display of the run.
fn computer(name: &str, traits: ModelTraits) -> Option<Value> {
    let (display, (kind, _)) = (traits.display?, traits.computer_tool.names()?);
    (name == COMPUTER).then(|| {
        let mut tool = json!({
            "type": kind,
            "name": COMPUTER,
            "display_width_px": display.width,
            "display_height_px": display.height,
            "display_number": display.number,
        });
        if traits.computer_tool == ComputerTool::Of20251124 {
            tool["enable_zoom"] = true.into();
        }
        tool
    })
}

/// Name of the Anthropic tool that replaces one of ours.
fn anthropic_tool_name(name: &str, own: ProviderTools) -> Option<&'static str> {
    match (own, name) {
        (ProviderTools::Off, _) => None,
        (_, "shell") => Some(SHELL),
        (ProviderTools::Of20250124, "read_file" | "write_file" | "edit_file") => Some("str_replace_editor"),
        (_, "read_file" | "write_file" | "edit_file") => Some("str_replace_based_edit_tool"),
        _ => None,
    }
}

fn editor_type(own: ProviderTools) -> &'static str {
    match own {
        ProviderTools::Off | ProviderTools::Of20250124 => "text_editor_20250124",
        ProviderTools::Of20250429 => "text_editor_20250429",
        ProviderTools::Of20250728 => "text_editor_20250728",
    }
}

pub(crate) fn closing(id: &str, options: &RequestOptions, traits: ModelTraits) -> BodyTail {
    let effort = options.reasoning_effort.as_deref().filter(|effort| *effort != "none");
    let mut limit = options.max_output_tokens.unwrap_or(MAX_TOKENS);
    let mut output = Map::new();
    let thinking = effort.map(|effort| match traits.thinking {
        ThinkingStyle::Budget => {
            let budget = budget(effort);
            limit = limit.max(budget + ANSWER_TOKENS);
            json!({ "type": "enabled", "budget_tokens": budget })
        }
        ThinkingStyle::Adaptive => {
            output.insert("effort".into(), effort.into());
            json!({ "type": "adaptive" })
        }
    });
    if let Some(schema) = &options.output_schema {
        output.insert("format".into(), json!({ "type": "json_schema", "schema": schema }));
    }
    let thinks = thinking.is_some();
    let closing = BodyTail::new(id).field("thinking", thinking).field("max_tokens", Some(limit));
    // The API rejects sampling parameters together with thinking.
    let closing = if thinks { closing } else { closing.sampling(options, traits) };
    closing
        .field("tool_choice", choice(&options.tool_choice, traits))
        .field("output_config", (!output.is_empty()).then_some(output))
        .field("stream", Some(options.stream))
        .with_overrides(options)
}

/// Thinking budget in tokens; a number is used as is.
fn budget(effort: &str) -> u32 {
    match effort {
        "minimal" | "low" => 2_048,
        "medium" => 8_192,
        other => other.parse().unwrap_or(16_384).max(1_024),
    }
}

fn choice(tool_choice: &ToolChoice, traits: ModelTraits) -> Option<Value> {
    let one_call = traits.one_call;
    let mut choice = match tool_choice {
        ToolChoice::Auto if one_call => json!({ "type": "auto" }),
        ToolChoice::Auto => return None,
        ToolChoice::Nothing => return Some(json!({ "type": "none" })),
        ToolChoice::Required => json!({ "type": "any" }),
        ToolChoice::Named(name) => {
            let name = anthropic_tool_name(name, traits.provider_tools).unwrap_or(name);
            json!({ "type": "tool", "name": name })
        }
    };
    if one_call {
        choice["disable_parallel_tool_use"] = true.into();
    }
    Some(choice)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    User,
    Assistant,
}

fn role(message: &Message) -> Role {
    match message {
        Message::User { .. } | Message::Tool { .. } => Role::User,
        Message::Assistant { .. } => Role::Assistant,
    }
}

fn head(out: &mut BytesMut, role: Role) {
    out.put_slice(match role {
        Role::User => b"{\"role\":\"user\",\"content\":[".as_slice(),
        Role::Assistant => b"{\"role\":\"assistant\",\"content\":[",
    });
}

/// Writes a block without its closing brace.
fn block(out: &mut BytesMut, value: &impl Serialize) {
    json(out, value);
    out.truncate(out.len() - 1);
}

/// Thinking blocks as received; the `index` was added by us and is removed.
fn thinking_blocks(reasoning: Option<&Reasoning>, traits: ModelTraits) -> Vec<Value> {
    let keep = traits.reasoning_replay != ReasoningReplay::Nothing;
    let opaque = reasoning.filter(|_| keep).map_or(&[][..], |reasoning| &reasoning.opaque);
    opaque
        .iter()
        .filter(|block| block.is_object() && !is_of_call(block))
        .cloned()
        .map(|mut block| {
            if let Some(fields) = block.as_object_mut() {
                fields.shift_remove("index");
            }
            block
        })
        .collect()
}

fn filled(text: &str) -> &str {
    if text.trim().is_empty() { NOTHING } else { text }
}

/// Arguments as the text of an object, the only type the API accepts.
fn object_text(arguments: &str) -> String {
    let text = arguments_text(arguments);
    match serde_json::from_str::<Map<String, Value>>(&text) {
        Ok(_) => text.into_owned(),
        Err(_) => json!({ "malformed_arguments": arguments }).to_string(),
    }
}

#[cfg(test)]
mod tests;
