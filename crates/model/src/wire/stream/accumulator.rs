//! The format-independent accumulator of a reply, fed by every codec. It reports each fragment to the sink
//! once, and tolerates calls whose parts arrive late, twice or out of order.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::{DeltaSink, ReplyProgress};
use crate::wire;
use crate::{ErrorKind, ModelError, Reasoning, Reply, ReplyDelta, StopReason, ToolCall, Usage};

/// Maximum total size in bytes of text, reasoning and arguments of a reply.
const MAX_REPLY: usize = 64 << 20;
/// Maximum number of tool calls of a reply.
const MAX_CALLS: usize = 1024;

/// A reply that is still incomplete.
#[derive(Debug)]
pub struct ReplyAccumulator {
    seed: usize,
    /// Whether any part of it has been decoded.
    begun: bool,
    size: usize,
    text: String,
    reasoning: Reasoning,
    calls: Vec<PartialCall>,
    usage: Option<Usage>,
    stop: Option<StopReason>,
    refused: bool,
    done: bool,
}

#[derive(Debug, Default)]
struct PartialCall {
    /// The server's index for this call, if it numbers them.
    number: Option<u64>,
    id: String,
    name: String,
    arguments: String,
    /// Bytes of the arguments already reported to the sink; `None` until the name is reported.
    published: Option<usize>,
    more: Map<String, Value>,
}

/// Part of a call in one event of a stream.
#[derive(Clone, Copy, Debug, Default)]
pub struct CallFragment<'a> {
    /// The server's index for the call.
    pub number: Option<u64>,
    /// Id; empty if not in this event.
    pub id: &'a str,
    /// Name; empty if not in this event.
    pub name: &'a str,
    /// Next fragment of the arguments.
    pub arguments: &'a str,
    /// Additional fields that the server expects back.
    pub more: Option<&'a Map<String, Value>>,
}

impl ReplyAccumulator {
    pub(super) fn new(seed: usize) -> Self {
        ReplyAccumulator {
            seed,
            begun: false,
            size: 0,
            text: String::new(),
            reasoning: Reasoning::default(),
            calls: Vec::new(),
            usage: None,
            stop: None,
            refused: false,
            done: false,
        }
    }

    /// Records that a part of the reply has been decoded.
    pub(crate) fn begin(&mut self) {
        self.begun = true;
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.begun
    }

    pub(super) fn progress(&self) -> ReplyProgress {
        match (self.done, &self.stop) {
            (true, _) => ReplyProgress::Done,
            (false, Some(_)) => ReplyProgress::Stopped,
            (false, None) => ReplyProgress::Open,
        }
    }

    /// Adds visible text.
    pub fn text(&mut self, piece: &str, sink: &mut DeltaSink<'_>) -> Result<(), ModelError> {
        if !piece.is_empty() {
            self.append(piece)?;
            self.text.push_str(piece);
            sink(ReplyDelta::Text(piece));
        }
        Ok(())
    }

    /// Adds reasoning.
    pub fn reasoning(&mut self, piece: &str, sink: &mut DeltaSink<'_>) -> Result<(), ModelError> {
        if !piece.is_empty() {
            self.append(piece)?;
            self.reasoning.text.push_str(piece);
            sink(ReplyDelta::Reasoning(piece));
        }
        Ok(())
    }

    /// Adds an item that the server expects back. Fragments of one item (equal `index` and `type`) are
    /// joined.
    pub fn opaque(&mut self, piece: Value) -> Result<(), ModelError> {
        // Its size in memory is within a small factor of its text, which is accurate enough for the limit.
        self.size += 64 + piece.as_object().map_or(0, |fields| fields.values().map(text_len).sum());
        self.append("")?;
        if let (Some(Value::Object(last)), Value::Object(next)) = (self.reasoning.opaque.last_mut(), &piece) {
            let same = |key| last.get(key) == next.get(key);
            if next.contains_key("index") && same("index") && same("type") {
                for (key, value) in next {
                    match (last.get_mut(key), value) {
                        (_, Value::Null) => {}
                        (Some(Value::String(sofar)), Value::String(more)) if is_fragmented(key) => {
                            sofar.push_str(more)
                        }
                        _ => _ = last.insert(key.clone(), value.clone()),
                    }
                }
                return Ok(());
            }
        }
        self.reasoning.opaque.push(piece);
        Ok(())
    }

    /// Adds part of a call.
    pub fn call(&mut self, piece: CallFragment<'_>, sink: &mut DeltaSink<'_>) -> Result<(), ModelError> {
        self.append(piece.arguments)?;
        self.size += piece.id.len() + piece.name.len();
        let index = match self.position_of(&piece) {
            Some(index) => index,
            None if self.calls.len() >= MAX_CALLS => {
                return Err(ModelError::new(
                    ErrorKind::Protocol,
                    format!("the reply contains more than {MAX_CALLS} tool calls"),
                ));
            }
            None => {
                self.report_all(sink);
                self.calls.push(PartialCall { number: piece.number, ..PartialCall::default() });
                self.calls.len() - 1
            }
        };
        let call = &mut self.calls[index];
        if call.id.is_empty() {
            call.id.push_str(piece.id);
        }
        if piece.name.starts_with(call.name.as_str()) {
            // First occurrence, repeated, or extended.
            call.name.replace_range(.., piece.name);
        } else if call.arguments.is_empty() {
            call.name.push_str(piece.name);
        }
        for (name, value) in piece.more.into_iter().flatten().filter(|(_, value)| !value.is_null()) {
            self.size += name.len() + text_len(value);
            call.more.insert(name.clone(), value.clone());
        }
        call.arguments.push_str(piece.arguments);
        if !call.arguments.is_empty() {
            call.report(index, sink);
        }
        Ok(())
    }

    /// Sets the token counts. Later counts replace earlier ones; all zero counts as not reported.
    pub fn usage(&mut self, usage: Usage) {
        let usage = usage.clamped();
        if usage.input_tokens + usage.output_tokens > 0 {
            self.usage = Some(usage);
        }
    }

    /// Records that the model has stopped.
    pub fn stop(&mut self, reason: StopReason) {
        self.stop = Some(reason);
    }

    /// Marks the text as a refusal, even if the server reports a normal stop afterwards.
    pub fn refuse(&mut self) {
        self.refused = true;
    }

    /// Records the end of the stream.
    pub fn done(&mut self) {
        self.done = true;
    }

    pub(super) fn finish(mut self, sink: &mut DeltaSink<'_>) -> Result<Reply, ModelError> {
        if self.progress() == ReplyProgress::Open {
            return Err(ModelError::new(ErrorKind::Cut, "the reply ended prematurely"));
        }
        self.report_all(sink);
        for (index, call) in self.calls.iter_mut().enumerate().filter(|(_, call)| !call.more.is_empty()) {
            self.reasoning.opaque.push(wire::opaque_call_fields(index, std::mem::take(&mut call.more)));
        }
        let mut seen = HashSet::new();
        let tool_calls: Vec<ToolCall> = self
            .calls
            .into_iter()
            .enumerate()
            .map(|(index, PartialCall { mut id, name, arguments, .. })| {
                if id.is_empty() || seen.contains(&id) {
                    id = format!("call_{}_{index}", self.seed);
                }
                seen.insert(id.clone());
                ToolCall { id, name, arguments }
            })
            .collect();
        let stop = match self.stop {
            _ if self.refused => StopReason::Refusal,
            // Many servers send "stop" along with calls, some send "tool_calls" without any.
            None | Some(StopReason::End | StopReason::ToolCalls) if tool_calls.is_empty() => StopReason::End,
            None | Some(StopReason::End | StopReason::ToolCalls) => StopReason::ToolCalls,
            Some(stop) => stop,
        };
        let reasoning = (self.reasoning != Reasoning::default()).then_some(self.reasoning);
        Ok(Reply { text: self.text, reasoning, tool_calls, usage: self.usage, stop, source_line: None })
    }

    /// Index of the call a fragment belongs to; `None` for a new call.
    fn position_of(&self, piece: &CallFragment<'_>) -> Option<usize> {
        let last = self.calls.len().checked_sub(1)?;
        let renamed = |call: &PartialCall| {
            !piece.id.is_empty() && !call.id.is_empty() && piece.id != call.id && !piece.name.is_empty()
        };
        if let Some(number) = piece.number {
            let index = self.calls.iter().rposition(|call| call.number == Some(number))?;
            // Some servers number every call 0; a new id together with a name distinguishes them.
            return (!renamed(&self.calls[index])).then_some(index);
        }
        if !piece.id.is_empty() {
            let known = self.calls.iter().rposition(|call| call.id == piece.id);
            // An id that arrives late belongs to the call that still lacks one.
            return known
                .or_else(|| (self.calls[last].id.is_empty() && piece.name.is_empty()).then_some(last));
        }
        (piece.name.is_empty() || self.calls[last].name.is_empty()).then_some(last)
    }

    fn report_all(&mut self, sink: &mut DeltaSink<'_>) {
        for (index, call) in self.calls.iter_mut().enumerate() {
            call.report(index, sink);
        }
    }

    fn append(&mut self, piece: &str) -> Result<(), ModelError> {
        self.size += piece.len();
        if self.size > MAX_REPLY {
            let message = format!("the reply is longer than {} MB", MAX_REPLY >> 20);
            return Err(ModelError::new(ErrorKind::Protocol, message));
        }
        Ok(())
    }
}

impl PartialCall {
    /// Reports everything new to the sink, unless the name is still missing.
    fn report(&mut self, index: usize, sink: &mut DeltaSink<'_>) {
        if self.name.is_empty() {
            return;
        }
        let published = self.published.unwrap_or_else(|| {
            sink(ReplyDelta::ToolCall { index, name: &self.name });
            0
        });
        if published < self.arguments.len() {
            sink(ReplyDelta::ToolArguments { index, fragment: &self.arguments[published..] });
        }
        self.published = Some(self.arguments.len());
    }
}

/// Fields of an opaque item that arrive in fragments; the others are repeated in full.
fn is_fragmented(key: &str) -> bool {
    matches!(key, "text" | "summary" | "data" | "signature" | "thinking")
}

fn text_len(value: &Value) -> usize {
    value.as_str().map_or_else(|| value.to_string().len(), str::len)
}
