//! From the bytes of a response to a [`Reply`]. This is the part all wire formats share: telling a stream from
//! a whole JSON document, parsing the events, and deciding at the end whether the reply is complete. What an
//! event means is its codec's business, which feeds the [`growing::Growing`] reply.

pub mod growing;

use self::growing::Growing;
use crate::sse::{Parser, SseError};
use crate::wire::Decoding;
use crate::{Delta, ErrorKind, ModelError, Reply, Wire};

/// A non-streamed reply is gathered in memory up to this size.
const MAX_DOCUMENT: usize = 64 << 20;

/// So much of a stream is kept to be shown if it is none.
const BEGINNING: usize = 200;

/// Where the pieces of a reply go.
pub type Sink<'a> = dyn FnMut(Delta<'_>) + Send + 'a;

/// How far a reply has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// More is needed.
    Open,
    /// The model has stopped; numbers may follow.
    Stopped,
    /// The server said that nothing follows.
    Done,
}

/// Decodes one response.
pub struct Decoder {
    decoding: Decoding,
    form: Form,
    reply: Growing,
}

enum Form {
    /// Only white space so far.
    Unknown,
    Events {
        parser: Parser,
        /// How the stream begins, to tell a cut one from what is none.
        beginning: Vec<u8>,
    },
    Document(Vec<u8>),
}

impl Decoder {
    /// `seed` goes into ids for calls that came without one; the number of messages sent keeps them unique in
    /// a conversation and the same on every replay.
    pub fn new(wire: Wire, seed: usize) -> Self {
        Decoder { decoding: Decoding::of(wire), form: Form::Unknown, reply: Growing::new(seed) }
    }

    /// Takes the next bytes of the response.
    pub fn feed(&mut self, mut bytes: &[u8], sink: &mut Sink<'_>) -> Result<Progress, ModelError> {
        if matches!(self.form, Form::Unknown) {
            bytes = bytes.trim_ascii_start();
            // By the first byte and not by the content type, which servers get wrong.
            match bytes.first() {
                None => return Ok(Progress::Open),
                Some(b'{' | b'[') => self.form = Form::Document(Vec::new()),
                Some(_) => {
                    self.form = Form::Events { parser: Parser::default(), beginning: Vec::new() };
                }
            }
        }
        match &mut self.form {
            Form::Unknown => {}
            Form::Document(gathered) => {
                if gathered.len() + bytes.len() > MAX_DOCUMENT {
                    return Err(ModelError::new(
                        ErrorKind::Protocol,
                        format!("the reply is longer than {} MB", MAX_DOCUMENT >> 20),
                    ));
                }
                gathered.extend_from_slice(bytes);
            }
            Form::Events { parser, beginning } => {
                let room = BEGINNING - beginning.len();
                beginning.extend_from_slice(&bytes[..bytes.len().min(room)]);
                let (decoding, reply) = (&mut self.decoding, &mut self.reply);
                parser.feed(bytes, |event| decoding.event(reply, event.data, sink))?;
            }
        }
        Ok(self.reply.progress())
    }

    /// The response is over: the reply, or why there is none.
    pub fn finish(mut self, sink: &mut Sink<'_>) -> Result<Reply, ModelError> {
        match &mut self.form {
            Form::Unknown => {}
            Form::Document(gathered) => {
                let text = String::from_utf8_lossy(gathered);
                self.decoding.document(&mut self.reply, &text, sink)?;
            }
            Form::Events { parser, beginning } => {
                let (decoding, reply) = (&mut self.decoding, &mut self.reply);
                // Half an event at a cut is a sign of the cut, not a fault of its own.
                match parser.finish(|event| decoding.event(reply, event.data, sink)) {
                    Err(error) if matches!(error.kind, ErrorKind::Protocol | ErrorKind::Cut) => {}
                    rest => rest?,
                }
                if reply.progress() == Progress::Open && !begins_events(beginning) {
                    return Err(not_a_reply(&String::from_utf8_lossy(beginning)));
                }
            }
        }
        self.reply.finish(sink)
    }
}

/// Whether a text that begins so can be an event stream, perhaps one that broke off.
fn begins_events(beginning: &[u8]) -> bool {
    let text = beginning.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(beginning).trim_ascii_start();
    [b":".as_slice(), b"data", b"event", b"id", b"retry"]
        .into_iter()
        .any(|field| text.starts_with(field) || field.starts_with(text))
}

/// The complaint about something that is not in the format.
pub(crate) fn not_a_reply(text: &str) -> ModelError {
    ModelError::new(
        ErrorKind::Protocol,
        format!("the server's answer is not a model's reply: {}", excerpt(text, 200)),
    )
}

/// The complaint about an event that cannot be read in the middle of a reply.
pub(crate) fn broken(text: &str) -> ModelError {
    let message = format!("the server's stream broke: an event cannot be read: {}", excerpt(text, 200));
    ModelError::new(ErrorKind::Cut, message)
}

/// The beginning of `text` on one line.
pub(crate) fn excerpt(text: &str, chars: usize) -> String {
    let mut short: String =
        text.trim().chars().take(chars).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if short.len() < text.trim().len() {
        short.push('…');
    }
    short
}

impl From<SseError> for ModelError {
    fn from(error: SseError) -> Self {
        ModelError::new(ErrorKind::Protocol, error.to_string())
    }
}

#[cfg(test)]
mod tests;
