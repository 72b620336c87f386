//! The second half of a call: its long text as a fenced block, requested on the prefix that the header has
//! just cached. If the server supports grammars, the reply is prefilled with the opening fence and the
//! grammar ends it; otherwise the model is instructed what to send.

use bytes::BytesMut;
use serde_json::{Value, json};

use super::body_stream::BodyStream;
use super::{CallHeader, SchemaRequest};
use crate::profile::Constraint;
use crate::wire::MessagePrefix;
use crate::wire::stream::DeltaSink;
use crate::wire::text_protocol::{self, CallBody, MIDDLE, REPLACE, Role, SEARCH};
use crate::{
    Conversation, ErrorKind, Message, ModelError, Reply, ReplyDelta, RequestOptions, StopReason, ToolChoice,
};

/// Default limit of a body, about four hundred lines. It ends the output of a small model that does not stop.
const BODY_TOKENS: u32 = 4_096;

/// Content that a request adds after the messages of its conversation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AddedMessages<'a> {
    /// The assistant's text so far.
    pub(crate) header: &'a str,
    /// A user message that follows; without it, the assistant continues its own text.
    pub(crate) instruction: Option<&'a str>,
}

impl AddedMessages<'_> {
    /// Encodes it after the last message of a conversation in the text protocol.
    pub(crate) fn write(&self, out: &mut BytesMut, before: MessagePrefix<'_>) {
        text_protocol::raw(out, Role::Assistant, self.header, before);
        if let Some(instruction) = self.instruction {
            text_protocol::raw(out, Role::User, instruction, MessagePrefix::Message(&ASSISTANT));
        }
    }
}

/// Stands for the header just written.
const ASSISTANT: Message =
    Message::Assistant { text: String::new(), reasoning: None, tool_calls: Vec::new() };

/// Requests the body. Returns the complete arguments of the call, or `None` if a limit truncated it.
pub(super) async fn ask(
    server: &dyn SchemaRequest,
    body: CallBody,
    header: &CallHeader,
    conversation: &Conversation,
    options: &RequestOptions,
    sink: &mut DeltaSink<'_>,
) -> Result<(Option<String>, Reply), ModelError> {
    let shown =
        text_protocol::header(&header.thought, &header.tool, &Value::Object(header.arguments.clone()));
    let path = header.arguments.get("path").and_then(Value::as_str).unwrap_or_default();
    let language = if header.tool == "apply_patch" { "diff" } else { text_protocol::language(path) };
    // Markdown contains fences itself.
    let fence = if language == "markdown" { "````" } else { "```" };
    let begun = format!("{shown}\n{fence}{language}\n");
    let asked = RequestOptions {
        tool_choice: ToolChoice::Auto,
        output_schema: None,
        max_output_tokens: Some(options.max_output_tokens.unwrap_or(BODY_TOKENS)),
        ..options.clone()
    };
    let constraint = conversation.dialect().traits.constraint;
    if let Some(fields) = grammar_fields(constraint, &grammar(body, fence)) {
        let mut constrained = asked.clone();
        constrained.extra.extend(fields);
        let more = AddedMessages { header: &begun, instruction: None };
        let mut stream = match body {
            // The reply is the text itself, so it can be streamed.
            CallBody::Whole(field) => BodyStream::new(&header.arguments, field, fence, &shown),
            CallBody::Replace { .. } => None,
        };
        let mut grow = |delta: ReplyDelta<'_>| match (delta, &mut stream) {
            (ReplyDelta::Waiting { .. }, _) => sink(delta),
            (ReplyDelta::Text(text), Some(stream)) => stream.push(text, sink),
            _ => {}
        };
        let outcome = server.exchange(conversation, Some(more), &constrained, &mut grow).await;
        match outcome {
            // Templates that start with reasoning reject a prefilled reply.
            Err(error) if error.kind == ErrorKind::Invalid => {}
            outcome => return finish(outcome?, body, header, fence, stream, sink),
        }
    }
    let instruction = instruction(body, path, fence, language);
    let more = AddedMessages { header: &shown, instruction: Some(&instruction) };
    // There may be text before the block, so the call is reported once it is complete.
    let mut quiet = |delta: ReplyDelta<'_>| {
        if let ReplyDelta::Waiting { .. } = delta {
            sink(delta);
        }
    };
    let reply = server.exchange(conversation, Some(more), &asked, &mut quiet).await?;
    finish(reply, body, header, fence, None, sink)
}

fn finish(
    reply: Reply,
    body: CallBody,
    header: &CallHeader,
    fence: &str,
    stream: Option<BodyStream<'_>>,
    sink: &mut DeltaSink<'_>,
) -> Result<(Option<String>, Reply), ModelError> {
    if reply.stop == StopReason::Length {
        return Ok((None, reply));
    }
    let streamed = stream.is_some();
    let streamed_body = stream.map(|stream| stream.end(sink));
    // A server that does not enforce the grammar may have sent text, or the model's own fence, before the
    // block.
    let text = match streamed_body {
        Some(text) if reply.text.lines().filter(|line| line.starts_with(fence)).count() == 1 => text,
        _ => inside(&reply.text, fence),
    };
    let mut arguments = header.arguments.clone();
    match body {
        CallBody::Whole(field) => _ = arguments.insert(field.to_owned(), text.into()),
        CallBody::Replace { old, new } => {
            let (before, after) = search_and_replace(&text);
            arguments.insert(old.to_owned(), before.into());
            arguments.insert(new.to_owned(), after.into());
        }
    }
    let arguments = Value::Object(arguments).to_string();
    if !streamed {
        sink(ReplyDelta::ToolArguments { index: 0, fragment: &arguments });
    }
    Ok((Some(arguments), reply))
}

/// Content of the block: up to the closing fence, and after an opening one if the model wrote it.
fn inside(text: &str, fence: &str) -> String {
    let opened = text.trim_start().strip_prefix(fence).and_then(|rest| rest.split_once('\n'));
    let text = match opened {
        Some((_, rest)) => rest,
        // Text before the block.
        None => match text.find(&format!("\n{fence}")) {
            Some(at) if text[at + 1 + fence.len()..].contains(fence) => {
                text[at + 1..].split_once('\n').map_or("", |(_, rest)| rest)
            }
            _ => text,
        },
    };
    let mut kept = String::new();
    for line in text.split_inclusive('\n') {
        if line.starts_with(fence) {
            break;
        }
        kept.push_str(line);
    }
    kept
}

/// The two halves of a search/replace block, without the line break that ends their last line.
fn search_and_replace(text: &str) -> (String, String) {
    let text = text.split_once(SEARCH).map_or(text, |(_, rest)| rest);
    let (old, rest) = text.split_once(MIDDLE).unwrap_or((text, ""));
    let new = rest.split_once(REPLACE.trim_end()).map_or(rest, |(new, _)| new);
    let cut = |half: &str| half.strip_suffix('\n').unwrap_or(half).to_owned();
    (cut(old), cut(new))
}

fn instruction(body: CallBody, path: &str, fence: &str, language: &str) -> String {
    match body {
        CallBody::Whole("patch") => {
            format!("Now the patch, and nothing else: one block that begins with {fence}{language}.")
        }
        CallBody::Whole(_) => format!(
            "Now the whole content of {path}, and nothing else: one block that begins with {fence}{language}."
        ),
        CallBody::Replace { .. } => format!(
            "Now the change in {path}, and nothing else, in this form:\n{fence}\n{SEARCH}old lines\n{MIDDLE}new lines\n{REPLACE}{fence}"
        ),
    }
}

/// Request fields to continue the assistant's text under a grammar; `None` if not supported.
fn grammar_fields(constraint: Constraint, grammar: &str) -> Option<Vec<(String, Value)>> {
    match constraint {
        Constraint::ResponseFormat => None,
        Constraint::LlamaCpp => Some(vec![("grammar".to_owned(), grammar.into())]),
        Constraint::Vllm => Some(vec![
            ("structured_outputs".to_owned(), json!({ "grammar": grammar })),
            ("continue_final_message".to_owned(), true.into()),
            ("add_generation_prompt".to_owned(), false.into()),
        ]),
    }
}

/// Grammar (GBNF) for the rest of a block whose opening fence is prefilled. No line may start like the next
/// delimiter, because it would end the current part: a model that starts to close its block can only close
/// it. Line breaks after the fence are allowed, because models have a single token for a fence and its line
/// end. The delimiters of a search/replace block are not allowed as lines of a whole file: a small model that
/// has just seen one would write one.
fn grammar(body: CallBody, fence: &str) -> String {
    const END: &str = r#"end ::= "\n"? "\n"?"#;
    // With a longer fence, three backticks are text.
    let shorter = if fence.len() > 3 { r#" | "```" ([^`\n] [^\n]*)?"# } else { "" };
    match body {
        CallBody::Whole(_) => format!(
            "root ::= line* \"{fence}\" end\n\
             line ::= ([^`<\\n] [^\\n]* | \"<\"{{1,6}} ([^<\\n] [^\\n]*)? | \"`\"{{1,2}} ([^`\\n] [^\\n]*)?{shorter})? \"\\n\"\n{END}\n"
        ),
        CallBody::Replace { .. } => format!(
            "root ::= {SEARCH:?} old+ {MIDDLE:?} new* {REPLACE:?} \"{fence}\" end\n\
             old ::= ([^=`\\n] [^\\n]*)? \"\\n\"\n\
             new ::= ([^=>`\\n] [^\\n]* | \"=\" [^=\\n] [^\\n]*)? \"\\n\"\n{END}\n"
        ),
    }
}
