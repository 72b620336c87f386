//! A conversation: system prompt, tools, and messages that are only ever appended, each encoded once when it
//! is pushed. A request is then a list of references to bytes that exist already ([`Frames`]), so that turn
//! 500 costs what turn 500 adds. How a message looks in bytes is [`crate::wire`]'s business.

use std::fmt;

use bytes::{Bytes, BytesMut};

use crate::{Frames, Message, RequestOptions, ToolSpec, Wire};

/// The tail is copied into every request, so it is sealed into a shared chunk before it grows past this.
const TAIL_LIMIT: usize = 64 * 1024;

/// System prompt, tools and messages, with their encoded form.
pub struct Conversation {
    wire: Wire,
    system: String,
    tools: Vec<ToolSpec>,
    messages: Vec<Message>,
    /// What stands before the first message.
    head: Bytes,
    sealed: Vec<Bytes>,
    tail: BytesMut,
    /// What stands after the last message and does not depend on the request's options.
    tools_encoded: Bytes,
    encoded_len: usize,
    hash: blake3::Hasher,
}

impl Conversation {
    /// An empty conversation for a model that speaks `wire`.
    pub fn new(wire: Wire, system: String, tools: Vec<ToolSpec>) -> Self {
        let mut conversation = Conversation {
            wire,
            system,
            tools,
            messages: Vec::new(),
            head: Bytes::new(),
            sealed: Vec::new(),
            tail: BytesMut::new(),
            tools_encoded: Bytes::new(),
            encoded_len: 0,
            hash: blake3::Hasher::new(),
        };
        conversation.encode_again();
        conversation
    }

    /// Appends a message and encodes it.
    pub fn push(&mut self, message: Message) {
        self.encode(&message, !self.messages.is_empty());
        self.messages.push(message);
    }

    /// The messages so far.
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// The system prompt.
    pub fn system(&self) -> &str {
        &self.system
    }

    /// The tools on offer.
    pub fn tools(&self) -> &[ToolSpec] {
        &self.tools
    }

    /// The format this conversation is encoded in.
    pub fn wire(&self) -> Wire {
        self.wire
    }

    /// Replaces all messages. Only a compaction may do this: it breaks the server's prefix cache.
    pub fn rewrite(&mut self, messages: Vec<Message>) {
        self.messages = messages;
        self.encode_again();
    }

    /// Replaces system prompt and tools. Only an expansion or a change of phase may do this.
    pub fn reframe(&mut self, system: String, tools: Vec<ToolSpec>) {
        self.system = system;
        self.tools = tools;
        self.encode_again();
    }

    /// The body of a request, for `options.model`.
    pub fn body(&self, options: &RequestOptions) -> Frames {
        self.body_for(&options.model, options)
    }

    /// The body of a request for the model `id`, whatever `options.model` says.
    pub fn body_for(&self, id: &str, options: &RequestOptions) -> Frames {
        let mut frames = Frames::default();
        frames.push(self.head.clone());
        for chunk in &self.sealed {
            frames.push(chunk.clone());
        }
        frames.push(Bytes::copy_from_slice(&self.tail));
        frames.push(self.tools_encoded.clone());
        frames.push(self.wire.closing(id, options));
        frames
    }

    /// Bytes of system prompt, messages and tools as encoded.
    pub fn encoded_len(&self) -> usize {
        self.encoded_len
    }

    /// Names what this conversation holds (system prompt, tools, messages; not the options), in hex. Costs the
    /// same however long the conversation is.
    pub fn hash(&self) -> String {
        self.hash.finalize().to_hex().to_string()
    }

    fn encode(&mut self, message: &Message, follows: bool) {
        let from = self.tail.len();
        let follows = follows || self.wire.opening_lists_system(&self.system);
        self.wire.message(&mut self.tail, message, follows);
        self.hash.update(&self.tail[from..]);
        self.encoded_len += self.tail.len() - from;
        if self.tail.len() > TAIL_LIMIT {
            let full = std::mem::take(&mut self.tail);
            self.sealed.push(full.freeze());
        }
    }

    fn encode_again(&mut self) {
        self.head = self.wire.opening(&self.system);
        self.tools_encoded = self.wire.tools(&self.tools);
        self.sealed.clear();
        self.tail.clear();
        self.encoded_len = self.head.len() + self.tools_encoded.len();
        self.hash = blake3::Hasher::new();
        self.hash.update(&self.tools_encoded).update(&self.head);
        let messages = std::mem::take(&mut self.messages);
        for (index, message) in messages.iter().enumerate() {
            self.encode(message, index > 0);
        }
        self.messages = messages;
    }
}

impl fmt::Debug for Conversation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Conversation")
            .field("wire", &self.wire)
            .field("system", &self.system)
            .field("tools", &self.tools)
            .field("messages", &self.messages)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
