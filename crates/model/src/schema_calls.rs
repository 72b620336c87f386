//! Schema-constrained tool calls: the reply is constrained to a call of an open tool, so tool gates are part
//! of the grammar and a closed tool cannot be called at all. The constraint is not part of the prompt: gates
//! change between turns without changing the prefix.
//!
//! A call has two parts. The header is JSON that matches the union of the open tools (`header_schema`). The long text
//! of a call, if it has one, is a fenced block requested by a second request on the same prefix (`body`),
//! because code inside a JSON string is what breaks small models. [`crate::wire::text_protocol`] defines how both
//! appear in the conversation.

mod body;
mod body_stream;
mod header_schema;

use serde_json::{Map, Value, json};

use crate::wire::openai_chat::response_format;
use crate::wire::stream::DeltaSink;
use crate::wire::text_protocol::{self, CallBody};
use crate::{
    Conversation, ModelError, Reasoning, Reply, ReplyDelta, RequestOptions, StopReason, ToolCall, ToolChoice,
    Usage, text_calls,
};

/// Maximum length of a header, unless the user's limit is lower: it may contain an answer.
const HEADER_TOKENS: u32 = 2_048;

/// Maximum length of a thought: two or three sentences about the problem; it also ends one that repeats
/// itself.
const THOUGHT_CHARACTERS: u32 = 300;

/// Transport for one request; `more` is appended to the conversation's messages.
pub(crate) trait SchemaRequest: Sync {
    /// Sends the request and returns the complete reply; the sink gets its fragments.
    fn exchange<'a>(
        &'a self,
        conversation: &'a Conversation,
        more: Option<body::AddedMessages<'a>>,
        options: &'a RequestOptions,
        sink: &'a mut DeltaSink<'_>,
    ) -> crate::BoxFuture<'a, Result<Reply, ModelError>>;
}

pub(crate) use body::AddedMessages;

/// The parsed header of a call.
struct CallHeader {
    thought: String,
    tool: String,
    arguments: Map<String, Value>,
}

/// Requests one tool call, or an answer if that is open.
pub(crate) async fn ask(
    server: &dyn SchemaRequest,
    conversation: &Conversation,
    options: &RequestOptions,
    sink: &mut DeltaSink<'_>,
) -> Result<Reply, ModelError> {
    let open = header_schema::HeaderSchema::new(conversation, options);
    if open.is_empty() {
        // No tools are open: an ordinary request.
        return server.exchange(conversation, None, options, sink).await;
    }
    let options = &open.with_raised_temperature(options);
    let mut asked = RequestOptions { tool_choice: ToolChoice::Auto, output_schema: None, ..options.clone() };
    asked.max_output_tokens = Some(options.max_output_tokens.unwrap_or(HEADER_TOKENS).min(HEADER_TOKENS));
    asked
        .extra
        .insert("response_format".into(), response_format(&open.schema(options.output_schema.as_ref())));
    let mut quiet = |delta: ReplyDelta<'_>| match delta {
        ReplyDelta::Waiting { .. } | ReplyDelta::Started | ReplyDelta::Reasoning(_) => sink(delta),
        // The content of a header is reported once it is complete.
        ReplyDelta::Text(_) | ReplyDelta::ToolCall { .. } | ReplyDelta::ToolArguments { .. } => {}
    };
    let reply = server.exchange(conversation, None, &asked, &mut quiet).await?;
    let Some(header) = CallHeader::read(&reply.text) else {
        return Ok(unconstrained(reply, conversation, sink));
    };
    if header.tool == text_protocol::ANSWER {
        return Ok(answer(header, reply, sink));
    }
    if !header.thought.is_empty() {
        sink(ReplyDelta::Reasoning(&header.thought));
    }
    sink(ReplyDelta::ToolCall { index: 0, name: &header.tool });
    match CallBody::from_tool(&header.tool) {
        None => {
            let arguments = Value::Object(header.arguments.clone()).to_string();
            sink(ReplyDelta::ToolArguments { index: 0, fragment: &arguments });
            Ok(called(header, arguments, reply, None, conversation))
        }
        Some(kind) => {
            let (text, second) = body::ask(server, kind, &header, conversation, options, sink).await?;
            let Some(arguments) = text else {
                // Truncated by the limit: the engine requests it in parts.
                let usage = sum_usage(reply.usage, second.usage);
                return Ok(Reply { usage, stop: StopReason::Length, ..Reply::default() });
            };
            Ok(called(header, arguments, reply, Some(second), conversation))
        }
    }
}

impl CallHeader {
    fn read(text: &str) -> Option<CallHeader> {
        let Ok(Value::Object(mut fields)) = serde_json::from_str(text.trim()) else { return None };
        let Some(Value::String(tool)) = fields.remove("tool") else { return None };
        let arguments = match fields.remove("arguments") {
            Some(Value::Object(arguments)) => arguments,
            _ => Map::new(),
        };
        let thought = fields.get("thought").and_then(Value::as_str).unwrap_or_default().to_owned();
        Some(CallHeader { thought, tool, arguments })
    }

    fn reasoning(&self) -> Option<Reasoning> {
        (!self.thought.is_empty()).then(|| Reasoning { text: self.thought.clone(), opaque: Vec::new() })
    }
}

fn answer(header: CallHeader, reply: Reply, sink: &mut DeltaSink<'_>) -> Reply {
    let reasoning = header.reasoning();
    // An answer with its own schema is an object, a textual one a string.
    let text = match header.arguments.get("text") {
        Some(Value::String(text)) => text.clone(),
        _ => header.arguments.get("value").map(Value::to_string).unwrap_or_default(),
    };
    if let Some(thought) = &reasoning {
        sink(ReplyDelta::Reasoning(&thought.text));
    }
    sink(ReplyDelta::Text(&text));
    Reply { text, reasoning, tool_calls: Vec::new(), ..reply }
}

fn called(
    header: CallHeader,
    arguments: String,
    first: Reply,
    second: Option<Reply>,
    conversation: &Conversation,
) -> Reply {
    let call = ToolCall {
        id: format!("call_{}_0", conversation.messages().len()),
        name: header.tool.clone(),
        arguments,
    };
    let usage = match &second {
        Some(second) => sum_usage(first.usage, second.usage),
        None => first.usage,
    };
    Reply {
        text: String::new(),
        reasoning: header.reasoning(),
        tool_calls: vec![call],
        usage,
        stop: StopReason::ToolCalls,
        source_line: None,
    }
}

/// Sums the tokens of both requests; the context usage is that of the second.
fn sum_usage(first: Option<Usage>, second: Option<Usage>) -> Option<Usage> {
    let (Some(first), Some(second)) = (first, second) else { return first.or(second) };
    Some(Usage {
        input_tokens: first.input_tokens + second.input_tokens,
        output_tokens: first.output_tokens + second.output_tokens,
        cached_tokens: first.cached_tokens + second.cached_tokens,
        reasoning_tokens: first.reasoning_tokens + second.reasoning_tokens,
        cache_write_tokens: first.cache_write_tokens + second.cache_write_tokens,
        held_tokens: second.held(),
    })
}

/// Interprets a reply that is not a header, because the server did not enforce the schema or a limit
/// truncated it.
fn unconstrained(mut reply: Reply, conversation: &Conversation, sink: &mut DeltaSink<'_>) -> Reply {
    if reply.stop == StopReason::Length && reply.text.trim_start().starts_with('{') {
        reply.text = String::new();
        return reply;
    }
    let known = |name: &str| conversation.tools().iter().any(|tool| tool.name == name);
    text_calls::extract_calls(&mut reply, &known, conversation.messages().len());
    if !reply.text.is_empty() {
        sink(ReplyDelta::Text(&reply.text));
    }
    for (index, call) in reply.tool_calls.iter().enumerate() {
        sink(ReplyDelta::ToolCall { index, name: &call.name });
        sink(ReplyDelta::ToolArguments { index, fragment: &call.arguments });
    }
    reply
}

/// Schema of one alternative of the union.
fn alternative(tool: &str, arguments: &Value) -> Value {
    json!({
        "type": "object",
        "properties": {
            "thought": { "type": "string", "maxLength": THOUGHT_CHARACTERS },
            "tool": { "const": tool },
            "arguments": arguments,
        },
        "required": ["thought", "tool", "arguments"],
        "additionalProperties": false,
    })
}
