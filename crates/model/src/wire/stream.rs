//! Decodes the bytes of a response into a [`Reply`]. This is the part all wire formats share: distinguishing
//! a stream from a JSON document, parsing the events, and deciding at the end whether the reply is complete.
//! The codecs interpret the events and feed the [`accumulator::ReplyAccumulator`] reply.

pub mod accumulator;

use serde::Deserialize;

use self::accumulator::ReplyAccumulator;
use crate::error::excerpt;
use crate::sse::{SseError, SseParser};
use crate::wire::DecodeState;
use crate::{ErrorKind, ModelError, Reply, ReplyDelta, Wire};

/// Maximum size in bytes of a reply that is not streamed; it is held in memory.
const MAX_DOCUMENT: usize = 64 << 20;

/// Bytes of a stream kept for the error message if it turns out not to be one.
const BEGINNING: usize = 200;

/// Receives the fragments of a reply.
pub type DeltaSink<'a> = dyn FnMut(ReplyDelta<'_>) + Send + 'a;

/// How much of a reply has been received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyProgress {
    /// Incomplete.
    Open,
    /// The model has stopped; usage figures may follow.
    Stopped,
    /// The server signalled the end of the stream.
    Done,
}

/// Decoder for one response.
pub struct Decoder {
    decoding: DecodeState,
    form: DecoderForm,
    reply: ReplyAccumulator,
    received: u64,
}

enum DecoderForm {
    /// Only white space so far.
    Unknown,
    Events {
        parser: SseParser,
        /// First bytes of the stream, to distinguish a truncated stream from something else.
        beginning: Vec<u8>,
    },
    Document(Vec<u8>),
}

impl Decoder {
    /// `seed` is used in generated ids for calls that lack one. The number of messages sent makes them unique
    /// within a conversation and identical on every replay.
    pub fn new(wire: Wire, seed: usize) -> Self {
        Decoder {
            decoding: DecodeState::new(wire),
            form: DecoderForm::Unknown,
            reply: ReplyAccumulator::new(seed),
            received: 0,
        }
    }

    /// Amount of data so far: events other than pings, or bytes of a document.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Consumes the next bytes of the response.
    pub fn feed(&mut self, mut bytes: &[u8], sink: &mut DeltaSink<'_>) -> Result<ReplyProgress, ModelError> {
        if matches!(self.form, DecoderForm::Unknown) {
            bytes = bytes.trim_ascii_start();
            // Decided by the first byte, because servers send wrong content types.
            match bytes.first() {
                None => return Ok(ReplyProgress::Open),
                Some(b'{' | b'[') => self.form = DecoderForm::Document(Vec::new()),
                Some(_) => {
                    self.form = DecoderForm::Events { parser: SseParser::default(), beginning: Vec::new() };
                }
            }
        }
        match &mut self.form {
            DecoderForm::Unknown => {}
            DecoderForm::Document(gathered) => {
                if gathered.len() + bytes.len() > MAX_DOCUMENT {
                    return Err(ModelError::new(
                        ErrorKind::Protocol,
                        format!("the reply is longer than {} MB", MAX_DOCUMENT >> 20),
                    ));
                }
                gathered.extend_from_slice(bytes);
                self.received += bytes.len() as u64;
            }
            DecoderForm::Events { parser, beginning } => {
                let room = BEGINNING - beginning.len();
                beginning.extend_from_slice(&bytes[..bytes.len().min(room)]);
                let (decoding, reply) = (&mut self.decoding, &mut self.reply);
                let received = &mut self.received;
                parser.feed(bytes, |event| {
                    *received += u64::from(!is_ping(event.data));
                    decoding.event(reply, event.data, sink)
                })?;
            }
        }
        Ok(self.reply.progress())
    }

    /// Ends the response; returns the reply or the error.
    pub fn finish(mut self, sink: &mut DeltaSink<'_>) -> Result<Reply, ModelError> {
        match &mut self.form {
            DecoderForm::Unknown => {}
            DecoderForm::Document(gathered) => {
                let text = String::from_utf8_lossy(gathered);
                self.decoding.document(&mut self.reply, &text, sink)?;
            }
            DecoderForm::Events { parser, beginning } => {
                let (decoding, reply) = (&mut self.decoding, &mut self.reply);
                // A partial event at the end is a symptom of a truncated stream, not an error of its own.
                match parser.finish(|event| decoding.event(reply, event.data, sink)) {
                    Err(error) if matches!(error.kind, ErrorKind::Protocol | ErrorKind::Cut) => {}
                    rest => rest?,
                }
                if reply.progress() == ReplyProgress::Open && !begins_events(beginning) {
                    return Err(not_a_reply(&String::from_utf8_lossy(beginning)));
                }
            }
        }
        self.reply.finish(sink)
    }
}

/// Whether an event only keeps the connection alive.
fn is_ping(data: &str) -> bool {
    const MAX_LENGTH: usize = 64;
    data.trim().is_empty() || (data.len() <= MAX_LENGTH && data.contains("\"ping\""))
}

/// Whether a text with this beginning can be an event stream, possibly a truncated one.
fn begins_events(beginning: &[u8]) -> bool {
    let text = beginning.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(beginning).trim_ascii_start();
    [b":".as_slice(), b"data", b"event", b"id", b"retry"]
        .into_iter()
        .any(|field| text.starts_with(field) || field.starts_with(text))
}

/// Error for a response that is not in the expected format.
pub(crate) fn not_a_reply(text: &str) -> ModelError {
    ModelError::new(
        ErrorKind::Protocol,
        format!("the server's response is not a model reply: {}", excerpt(text, 200)),
    )
}

/// Parses the data of one server-sent event; `None` if it is empty or marks the end of the stream.
pub(crate) fn event_data<'d, T: Deserialize<'d>>(
    reply: &mut ReplyAccumulator,
    data: &'d str,
) -> Result<Option<T>, ModelError> {
    if data == "[DONE]" {
        reply.done();
    }
    if data.is_empty() || data == "[DONE]" {
        return Ok(None);
    }
    let parsed = serde_json::from_str(data).map_err(|_| match reply.has_begun() {
        // The server has sent valid events before, so this stream is broken and a retry may succeed.
        true => broken(data),
        false => not_a_reply(data),
    })?;
    Ok(Some(parsed))
}

/// Error for an invalid event in the middle of a reply.
fn broken(text: &str) -> ModelError {
    let message = format!("invalid event in the server's stream: {}", excerpt(text, 200));
    ModelError::new(ErrorKind::Cut, message)
}

impl From<SseError> for ModelError {
    fn from(error: SseError) -> Self {
        ModelError::new(ErrorKind::Protocol, error.to_string())
    }
}

#[cfg(test)]
mod tests;
