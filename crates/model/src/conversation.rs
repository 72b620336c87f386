//! A conversation: system prompt, tools and append-only messages, each encoded once when it is pushed. A
//! request is a list of references to existing bytes ([`BodyChunks`]), so that the cost of turn 500 is only what
//! turn 500 adds. [`crate::wire`] defines the encoding.

use std::fmt;

use bytes::{Bytes, BytesMut};

use crate::schema_calls::AddedMessages;
use crate::wire::{Dialect, MessagePrefix};
use crate::{BodyChunks, Image, Message, RequestOptions, ToolSpec};

/// The tail is copied into every request, so it is sealed into a shared chunk before it grows beyond this
/// size.
const TAIL_LIMIT: usize = 64 * 1024;

/// Extra capacity for the delimiters around `owed`.
const ROOM: usize = 64;

/// System prompt, tools and messages, with their encoded form.
pub struct Conversation {
    dialect: Dialect,
    system: String,
    tools: Vec<ToolSpec>,
    messages: Vec<Message>,
    /// Encoded bytes before the first message.
    head: Bytes,
    sealed: Vec<Bytes>,
    tail: BytesMut,
    /// Encoded content that must follow the last of the trailing tool results.
    owed: BytesMut,
    /// Encoded bytes after the last message that do not depend on the request's options.
    tools_encoded: Bytes,
    encoded_len: usize,
    hash: blake3::Hasher,
}

/// Text appended after the last message for a single request; undone by [`Conversation::take_back`].
#[must_use = "pass it to `take_back` to restore the conversation"]
pub struct TemporaryTail(TailRestore);

/// State to restore afterwards.
enum TailRestore {
    /// Original text of the last user message.
    Words(String),
    /// Encoded state before the appended message.
    Encoded(Box<EncodedMessage>),
}

struct EncodedMessage {
    sealed: usize,
    tail: BytesMut,
    owed: BytesMut,
    encoded_len: usize,
    hash: blake3::Hasher,
}

impl Conversation {
    /// Creates an empty conversation in `dialect`.
    pub fn new(dialect: impl Into<Dialect>, system: String, tools: Vec<ToolSpec>) -> Self {
        let mut conversation = Conversation {
            dialect: dialect.into(),
            system,
            tools,
            messages: Vec::new(),
            head: Bytes::new(),
            sealed: Vec::new(),
            tail: BytesMut::new(),
            owed: BytesMut::new(),
            tools_encoded: Bytes::new(),
            encoded_len: 0,
            hash: blake3::Hasher::new(),
        };
        conversation.encode_again();
        conversation
    }

    /// Appends a message and encodes it.
    pub fn push(&mut self, message: Message) {
        self.encode(&message, self.messages.len());
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
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Appends text after the last message for a single request. It is not part of the conversation and must
    /// be removed with [`take_back`](Self::take_back) before anything else happens. After a user message the
    /// text is added to that message, since some servers reject two user messages in a row.
    pub fn with_temporary_tail(&mut self, words: &str) -> TemporaryTail {
        if let Some(Message::User { text, .. }) = self.messages.last_mut() {
            let kept = text.clone();
            text.push_str("\n\n");
            text.push_str(words);
            self.encode_again();
            return TemporaryTail(TailRestore::Words(kept));
        }
        let before = EncodedMessage {
            sealed: self.sealed.len(),
            tail: self.tail.clone(),
            owed: self.owed.clone(),
            encoded_len: self.encoded_len,
            hash: self.hash.clone(),
        };
        self.push(Message::user(words.to_owned()));
        TemporaryTail(TailRestore::Encoded(Box::new(before)))
    }

    /// Removes lent text and restores the conversation byte for byte.
    pub fn take_back(&mut self, lent: TemporaryTail) {
        match lent.0 {
            TailRestore::Words(kept) => {
                if let Some(Message::User { text, .. }) = self.messages.last_mut() {
                    *text = kept;
                }
                self.encode_again();
            }
            TailRestore::Encoded(before) => {
                self.messages.pop();
                self.sealed.truncate(before.sealed);
                self.tail = before.tail;
                self.owed = before.owed;
                self.encoded_len = before.encoded_len;
                self.hash = before.hash;
            }
        }
    }

    /// Replaces all messages. Only for compaction: it invalidates the server's prefix cache.
    pub fn rewrite(&mut self, messages: Vec<Message>) {
        self.messages = messages;
        self.encode_again();
    }

    /// Replaces system prompt and tools. Only for a prompt expansion or a change of phase.
    pub fn set_frame(&mut self, system: String, tools: Vec<ToolSpec>) {
        self.system = system;
        self.tools = tools;
        self.encode_again();
    }

    /// Request body for `options.model`.
    pub fn body(&self, options: &RequestOptions) -> BodyChunks {
        self.body_for(&options.model, options)
    }

    /// Request body for the model `id`, ignoring `options.model`.
    pub fn body_for(&self, id: &str, options: &RequestOptions) -> BodyChunks {
        self.body_with(None, id, options)
    }

    /// Like `body_for`, plus a partially made tool call, which the conversation does not keep in this form.
    pub(crate) fn body_with(
        &self,
        more: Option<AddedMessages<'_>>,
        id: &str,
        options: &RequestOptions,
    ) -> BodyChunks {
        let mut frames = BodyChunks::with_room(self.sealed.len() + 4);
        frames.push(self.head.clone());
        for chunk in &self.sealed {
            frames.push(chunk.clone());
        }
        let end = self.dialect.end(self.messages.last());
        let mut tail = BytesMut::with_capacity(self.tail.len() + self.owed.len() + ROOM + end.len());
        tail.extend_from_slice(&self.tail);
        if let Some(more) = more {
            more.write(&mut tail, self.before(self.messages.len()));
        }
        self.dialect.write_deferred(&mut tail, &self.owed);
        tail.extend_from_slice(end);
        frames.push(tail.freeze());
        frames.push(self.tools_encoded.clone());
        frames.push(self.dialect.closing(id, options));
        frames
    }

    /// Encoded size in bytes of system prompt, messages and tools; an image counts as [`Image::TEXT_BYTES`].
    pub fn encoded_len(&self) -> usize {
        self.encoded_len
    }

    /// Hash of system prompt, tools and messages (not the options), in hex. Takes constant time regardless of
    /// the conversation's length.
    pub fn hash(&self) -> String {
        self.hash.finalize().to_hex().to_string()
    }

    /// The predecessor of the message at `index`.
    fn before(&self, index: usize) -> MessagePrefix<'_> {
        match index.checked_sub(1).and_then(|index| self.messages.get(index)) {
            Some(message) => MessagePrefix::Message(message),
            None => self.dialect.before_first(&self.system, &self.tools),
        }
    }

    fn encode(&mut self, message: &Message, index: usize) {
        let mut tail = std::mem::take(&mut self.tail);
        let mut owed = std::mem::take(&mut self.owed);
        let (from, owed_before) = (tail.len(), owed.len());
        self.dialect.message(&mut tail, message, self.before(index), &mut owed);
        self.hash.update(&tail[from..]);
        self.hash.update(owed.get(owed_before..).unwrap_or_default());
        let written = (tail.len() + owed.len()).saturating_sub(from + owed_before);
        self.owed = owed;
        self.encoded_len += written;
        if self.dialect.takes_images() {
            let bytes: usize = message.images().iter().map(|image| image.data.len()).sum();
            self.encoded_len =
                self.encoded_len.saturating_sub(bytes) + message.images().len() * Image::TEXT_BYTES;
        }
        if tail.len() > TAIL_LIMIT {
            self.sealed.push(tail.freeze());
        } else {
            self.tail = tail;
        }
    }

    fn encode_again(&mut self) {
        self.head = self.dialect.opening(&self.system, &self.tools);
        self.tools_encoded = self.dialect.tools(&self.tools);
        self.sealed.clear();
        self.tail.clear();
        self.owed.clear();
        self.encoded_len = self.head.len() + self.tools_encoded.len();
        self.hash = blake3::Hasher::new();
        self.hash.update(&self.tools_encoded).update(&self.head);
        // Pushed one by one, because the encoding of a message depends on its predecessor.
        for message in std::mem::take(&mut self.messages) {
            self.push(message);
        }
    }
}

impl fmt::Debug for Conversation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Conversation")
            .field("dialect", &self.dialect)
            .field("system", &self.system)
            .field("tools", &self.tools)
            .field("messages", &self.messages)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
