//! Context usage: the usage reported with the last reply plus an estimate of what was added since.
//!
//! The estimate counts bytes and is corrected by every reported usage, so a turn costs only what it adds.

use fusee_model::tokens::Estimator;
use fusee_model::{Image, Message, Usage};

/// Context usage of one conversation.
#[derive(Debug, Default)]
pub(crate) struct ContextUsage {
    estimator: Estimator,
    /// Tokens up to and including the last reply.
    known: u64,
    /// Encoded bytes that `known` covers.
    known_bytes: usize,
}

impl ContextUsage {
    /// Estimated tokens of a conversation with this encoded size.
    pub(crate) fn now(&self, encoded: usize) -> u64 {
        self.known + self.estimator.count(encoded.saturating_sub(self.known_bytes))
    }

    /// Estimated tokens of a text of this many bytes.
    pub(crate) fn estimate(&self, bytes: usize) -> u64 {
        self.estimator.count(bytes)
    }

    /// Estimated usage of a request outside the conversation, from the bytes sent and received.
    pub(crate) fn estimate_request(&self, sent: usize, received: usize) -> Usage {
        let (input_tokens, output_tokens) = (self.estimate(sent), self.estimate(received));
        Usage { input_tokens, output_tokens, ..Usage::default() }
    }

    /// Approximate bytes of a text of this many tokens.
    pub(crate) fn bytes(&self, tokens: u64) -> usize {
        let per_token = 1000.0 / self.estimate(1000).max(1) as f64;
        (tokens as f64 * per_token) as usize
    }

    /// Records a reply to a request of `encoded` bytes; `reply_bytes` is what the reply adds.
    pub(crate) fn replied(&mut self, encoded: usize, reply_bytes: usize, usage: Option<&Usage>) {
        match usage.filter(|usage| usage.input_tokens > 0) {
            Some(usage) => {
                let prompt = usage.held().saturating_sub(usage.output_tokens);
                self.estimator.correct(self.estimator.count(encoded), prompt);
                self.known = usage.held();
            }
            None => self.known = self.now(encoded) + self.estimator.count(reply_bytes),
        }
        self.known_bytes = encoded + reply_bytes;
    }

    /// Discards the reported usage after the conversation was rewritten.
    pub(crate) fn rewritten(&mut self) {
        self.known = 0;
        self.known_bytes = 0;
    }
}

/// Approximate size of a message in bytes.
pub(crate) fn size(message: &Message) -> usize {
    match message {
        Message::User { text, .. } => text.len(),
        Message::Tool { content, name, images, .. } => {
            content.len() + name.len() + images.len() * Image::TEXT_BYTES
        }
        Message::Assistant { text, reasoning, tool_calls } => {
            let calls: usize =
                tool_calls.iter().map(|call| call.name.len() + call.arguments.len() + 40).sum();
            text.len() + calls + reasoning.as_ref().map_or(0, |reasoning| reasoning.text.len())
        }
    }
}
