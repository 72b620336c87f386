//! What is said in a conversation, independent of any provider's format. The codecs in [`crate::wire`] turn
//! these into bytes and back; the journal stores them as they are.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One entry of a conversation after the system prompt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
    /// What the user, or the engine in the user's place, says.
    User {
        /// The whole text.
        text: String,
    },
    /// What the model said.
    Assistant {
        /// The visible answer; empty if the reply held only calls.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        text: String,
        /// What the model thought, if the server told.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reasoning: Option<Reasoning>,
        /// The calls it asked for, in order.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<ToolCall>,
    },
    /// The result of one call.
    Tool {
        /// The `id` of the call this answers.
        call_id: String,
        /// The tool's name.
        name: String,
        /// What the model is told.
        content: String,
        /// Whether the tool did what was asked.
        ok: bool,
        /// What the model sees beside the text, where it takes images.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        images: Vec<Image>,
    },
}

impl Message {
    /// The text of this message, whoever speaks.
    pub fn text(&self) -> &str {
        match self {
            Message::User { text } | Message::Assistant { text, .. } => text,
            Message::Tool { content, .. } => content,
        }
    }

    /// The images that stand beside the text.
    pub fn images(&self) -> &[Image] {
        match self {
            Message::Tool { images, .. } => images,
            Message::User { .. } | Message::Assistant { .. } => &[],
        }
    }
}

/// A picture in the result of a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// Such as `image/png`.
    pub media_type: String,
    /// Its bytes in base64.
    pub data: Arc<str>,
}

impl Image {
    /// So many bytes of text take about as many tokens as an image does, whose own bytes say nothing about that.
    pub const TEXT_BYTES: usize = 5_760;
}

/// A call the model asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Names this call in the conversation; its result carries the same id.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The JSON text exactly as the model sent it, which need not be valid.
    pub arguments: String,
}

/// What a model thought before it answered.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Reasoning {
    /// The readable part.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// Signatures and encrypted items, returned to the server unchanged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub opaque: Vec<Value>,
}

/// A tool as it is offered to a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// The name the model calls it by.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub parameters: Value,
}

/// Tokens as a server reported them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// The whole prompt, cached part included.
    #[serde(default)]
    pub input_tokens: u64,
    /// The whole reply, reasoning included.
    #[serde(default)]
    pub output_tokens: u64,
    /// The part of the prompt that came from the server's cache.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cached_tokens: u64,
    /// The part of the reply that was reasoning.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub reasoning_tokens: u64,
    /// The part of the prompt that was put into the server's cache, where that is told.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cache_write_tokens: u64,
    /// What prompt and reply hold together, where that is not their sum: a call in two parts asks twice.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub held_tokens: u64,
}

impl Usage {
    /// The same as far as a server can be believed: no reply has more tokens than this, and the sums over any run stay
    /// numbers.
    #[must_use]
    pub(crate) fn believed(self) -> Self {
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

    /// What the context holds after the reply.
    pub fn held(&self) -> u64 {
        if self.held_tokens > 0 { self.held_tokens } else { self.input_tokens + self.output_tokens }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Why a model stopped.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum StopReason {
    /// It had said all.
    #[default]
    End,
    /// It waits for the results of its calls.
    ToolCalls,
    /// It reached the output limit; the text is incomplete.
    Length,
    /// It declined, or a filter did.
    Refusal,
    /// Another reason, in the server's word.
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

/// One complete answer of a model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// The visible answer.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// What it thought.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<Reasoning>,
    /// The calls it asks for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// Tokens, where the server reported them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Why it stopped.
    #[serde(default)]
    pub stop: StopReason,
    /// For scripts and cassettes: the line (from 1) that answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_line: Option<usize>,
}

impl Reply {
    /// This reply as the message to append to the conversation.
    pub fn into_message(self) -> Message {
        Message::Assistant { text: self.text, reasoning: self.reasoning, tool_calls: self.tool_calls }
    }
}

#[cfg(test)]
mod tests;
