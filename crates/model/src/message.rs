//! Messages of a conversation, independent of any provider's format. The codecs in [`crate::wire`] convert
//! them to bytes and back; the journal stores them as they are.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One entry of a conversation after the system prompt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
    /// A message from the user, or from the engine on the user's behalf.
    User {
        /// Complete text of the message.
        text: String,
        /// Images sent along with the text, if the model accepts images.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        images: Vec<Image>,
    },
    /// A reply of the model.
    Assistant {
        /// Visible text; empty if the reply contained only tool calls.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        text: String,
        /// The model's reasoning, if the server sent it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reasoning: Option<Reasoning>,
        /// Tool calls, in order.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<ToolCall>,
    },
    /// The result of one tool call.
    Tool {
        /// `id` of the call this answers.
        call_id: String,
        /// Name of the tool.
        name: String,
        /// Result text for the model.
        content: String,
        /// Whether the tool succeeded.
        ok: bool,
        /// Images sent along with the text, if the model accepts images.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        images: Vec<Image>,
    },
}

impl Message {
    /// A message from the user without images.
    pub fn user(text: impl Into<String>) -> Self {
        Self::User { text: text.into(), images: Vec::new() }
    }

    /// Text of this message, regardless of its role.
    pub fn text(&self) -> &str {
        match self {
            Message::User { text, .. } | Message::Assistant { text, .. } => text,
            Message::Tool { content, .. } => content,
        }
    }

    /// Images that accompany the text.
    pub fn images(&self) -> &[Image] {
        match self {
            Message::User { images, .. } | Message::Tool { images, .. } => images,
            Message::Assistant { .. } => &[],
        }
    }
}

/// An image in a message of the user or in the result of a tool call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// Media type, such as `image/png`.
    pub media_type: String,
    /// Base64-encoded content.
    pub data: Arc<str>,
}

impl Image {
    /// Number of text bytes that take about as many tokens as an image; an image's own size says nothing
    /// about that.
    pub const TEXT_BYTES: usize = 5_760;
}

/// A tool call requested by the model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Id of the call within the conversation; its result has the same id.
    pub id: String,
    /// Name of the tool.
    pub name: String,
    /// JSON text exactly as the model sent it, possibly invalid.
    pub arguments: String,
}

/// Reasoning that preceded a reply.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Reasoning {
    /// Readable part.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// Signatures and encrypted items, returned to the server unchanged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub opaque: Vec<Value>,
}

/// A tool as presented to the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// Name by which the model calls it.
    pub name: String,
    /// Description for the model.
    pub description: String,
    /// JSON Schema of the arguments.
    pub parameters: Value,
}

/// Token counts as reported by a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// The entire prompt, including the cached part.
    #[serde(default)]
    pub input_tokens: u64,
    /// The entire reply, including reasoning.
    #[serde(default)]
    pub output_tokens: u64,
    /// Part of the prompt read from the server's cache.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cached_tokens: u64,
    /// Part of the reply that was reasoning.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub reasoning_tokens: u64,
    /// Part of the prompt written to the server's cache, if reported.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cache_write_tokens: u64,
    /// Size of prompt plus reply if that is not their sum: a call in two parts takes two requests.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub held_tokens: u64,
}

impl Usage {
    /// Clamps implausible counts, so that sums over any run cannot overflow.
    #[must_use]
    pub(crate) fn clamped(self) -> Self {
        let most = |tokens: u64| tokens.min(u64::from(u32::MAX));
        Self {
            input_tokens: most(self.input_tokens),
            output_tokens: most(self.output_tokens),
            cached_tokens: most(self.cached_tokens),
            reasoning_tokens: most(self.reasoning_tokens),
            cache_write_tokens: most(self.cache_write_tokens),
            held_tokens: most(self.held_tokens),
        }
    }

    /// Context usage after the reply, in tokens.
    pub fn held(&self) -> u64 {
        if self.held_tokens > 0 { self.held_tokens } else { self.input_tokens + self.output_tokens }
    }
}

impl std::ops::AddAssign<&Self> for Usage {
    /// Adds the counts of another request. The context size is not a sum, so `held_tokens` stays.
    fn add_assign(&mut self, other: &Self) {
        self.input_tokens += other.input_tokens;
        self.output_tokens += other.output_tokens;
        self.cached_tokens += other.cached_tokens;
        self.reasoning_tokens += other.reasoning_tokens;
        self.cache_write_tokens += other.cache_write_tokens;
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "signature required by serde")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Why the model stopped.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum StopReason {
    /// The reply is complete.
    #[default]
    End,
    /// The model waits for the results of its tool calls.
    ToolCalls,
    /// The output limit was reached; the text is incomplete.
    Length,
    /// The model or a filter declined to answer.
    Refusal,
    /// Another reason, as named by the server.
    Other(String),
}

impl From<String> for StopReason {
    fn from(word: String) -> Self {
        match word.as_str() {
            "end" => StopReason::End,
            "tool_calls" => StopReason::ToolCalls,
            "length" => StopReason::Length,
            "refusal" => StopReason::Refusal,
            _ => StopReason::Other(word),
        }
    }
}

impl From<StopReason> for String {
    fn from(reason: StopReason) -> Self {
        match reason {
            StopReason::End => "end".into(),
            StopReason::ToolCalls => "tool_calls".into(),
            StopReason::Length => "length".into(),
            StopReason::Refusal => "refusal".into(),
            StopReason::Other(word) => word,
        }
    }
}

/// A complete reply of a model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// Visible text.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// Reasoning that preceded the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<Reasoning>,
    /// Requested tool calls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// Token counts, if reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Why the model stopped.
    #[serde(default)]
    pub stop: StopReason,
    /// For scripts and cassettes: the line (from 1) that answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_line: Option<usize>,
}

impl Reply {
    /// Converts the reply to the message to append to the conversation.
    pub fn into_message(self) -> Message {
        Message::Assistant { text: self.text, reasoning: self.reasoning, tool_calls: self.tool_calls }
    }
}

#[cfg(test)]
mod tests;
