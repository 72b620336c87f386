//! Records a model's replies into a cassette, each exchange as it happens. Only what [`super::Cassette`]
//! needs is written: replies, errors, and the hash and new messages of each request; never a header, a key or
//! an address.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use serde::Serialize;
use serde_json::Value;

use super::{CassetteHeader, VERSION};
use crate::error::excerpt;
use crate::{
    BoxFuture, CancellationToken, Conversation, Dialect, ErrorKind, Message, Model, ModelError, OpenError,
    Reply, ReplyDelta, RequestOptions, StopReason, Usage,
};

/// Length of the excerpt of the last message, for human readers of a cassette.
const LAST_CHARS: usize = 200;

/// A model that records another model.
pub struct Recorder {
    model: Arc<dyn Model>,
    file: String,
    tape: Arc<Mutex<Recording>>,
}

struct Recording {
    file: File,
    /// Written before the first exchange; by then the context size has been queried, if it ever is.
    header: Option<CassetteHeader>,
}

impl Recorder {
    /// Records `model` into `path`. An existing cassette is continued; a last line truncated by a crash is
    /// dropped.
    pub fn open(model: Arc<dyn Model>, path: &Path) -> Result<Recorder, OpenError> {
        let name = path.display().to_string();
        let fault = |error: io::Error| OpenError::File(format!("cannot record into {name}: {error}"));
        let mut file = OpenOptions::new().read(true).append(true).create(true).open(path).map_err(fault)?;
        let mut text = Vec::new();
        file.read_to_end(&mut text).map_err(fault)?;
        let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let header = if text.is_empty() {
            Some(CassetteHeader {
                cassette: VERSION,
                model: model.name().to_owned(),
                dialect: model.dialect(),
                context_tokens: None,
            })
        } else {
            // Without a valid first line this is not a cassette, and must not be truncated.
            let first = String::from_utf8_lossy(&text);
            CassetteHeader::parse(&name, first.lines().next().unwrap_or_default())?;
            None
        };
        if header.is_none() && whole > 0 && whole < text.len() {
            file.set_len(whole as u64).map_err(fault)?;
            file.seek(SeekFrom::End(0)).map_err(fault)?;
        }
        Ok(Recorder { model, file: name, tape: Arc::new(Mutex::new(Recording { file, header })) })
    }

    async fn record(&self, exchange: String) -> Result<(), ModelError> {
        let tape = self.tape.clone();
        let written = tokio::task::spawn_blocking(move || tape.lock().append(&exchange)).await;
        // A recording with a gap would play back wrong replies, so a failure to record fails the attempt.
        let why = match written {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        };
        Err(ModelError::new(ErrorKind::Invalid, format!("cannot record into {}: {why}", self.file)))
    }
}

impl Recording {
    fn append(&mut self, exchange: &str) -> io::Result<()> {
        let mut text = String::new();
        if let Some(header) = &self.header {
            text = serde_json::to_string(header)?;
            text.push('\n');
        }
        text.push_str(exchange);
        text.push('\n');
        let before = self.file.metadata()?.len();
        let written = self.file.write_all(text.as_bytes()).and_then(|()| self.file.sync_data());
        match written {
            Ok(()) => self.header = None,
            // A partial line in the middle would make the rest unreadable.
            Err(_) => self.file.set_len(before)?,
        }
        written
    }
}

impl Model for Recorder {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn dialect(&self) -> Dialect {
        self.model.dialect()
    }

    fn send<'a>(
        &'a self,
        conversation: &'a Conversation,
        options: &'a RequestOptions,
        sink: &'a mut (dyn FnMut(ReplyDelta<'_>) + Send),
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Reply, ModelError>> {
        Box::pin(async move {
            let outcome = self.model.send(conversation, options, sink, cancel).await;
            // A cancellation by us is not a reply of the model.
            if !matches!(&outcome, Err(error) if error.kind == ErrorKind::Cancelled) {
                self.record(exchange(conversation, outcome.as_ref())).await?;
            }
            outcome
        })
    }

    fn replayed(&self, attempt: Result<&Reply, &ModelError>) {
        self.model.replayed(attempt);
    }

    fn context_tokens<'a>(&'a self) -> BoxFuture<'a, Option<u64>> {
        Box::pin(async {
            let tokens = self.model.context_tokens().await;
            let mut tape = self.tape.lock();
            if let Some(header) = &mut tape.header {
                header.context_tokens = tokens;
            }
            tokens
        })
    }

    fn parameters<'a>(&'a self) -> BoxFuture<'a, Option<f64>> {
        self.model.parameters()
    }

    fn slots<'a>(&'a self) -> BoxFuture<'a, Option<u32>> {
        self.model.slots()
    }
}

/// Encodes one line of a cassette.
pub(super) fn exchange(conversation: &Conversation, outcome: Result<&Reply, &ModelError>) -> String {
    let last = conversation.messages().last().map_or("", |message| message.text());
    let request = RecordedRequest {
        hash: conversation.hash(),
        messages: conversation.messages().len(),
        last: excerpt(last, LAST_CHARS),
        added: super::added(conversation.messages()).to_vec(),
    };
    let mut line = RecordedExchange { request, ..RecordedExchange::default() };
    match outcome {
        Ok(reply) => {
            let reasoning = reply.reasoning.as_ref();
            line.reasoning = reasoning.map_or("", |reasoning| &reasoning.text);
            line.opaque = reasoning.map_or(&[], |reasoning| &reasoning.opaque);
            line.text = &reply.text;
            line.tool_calls = reply
                .tool_calls
                .iter()
                .map(|call| RecordedCall { id: &call.id, name: &call.name, arguments: &call.arguments })
                .collect();
            line.usage = reply.usage;
            line.stop = Some(&reply.stop);
        }
        Err(error) => {
            line.error = Some(RecordedFailure {
                kind: error.kind,
                status: error.status,
                retry_after: error.retry_after_ms.map(|ms| ms as f64 / 1_000.0),
                message: &error.message,
            });
        }
    }
    // Serializing strings and numbers to memory cannot fail.
    serde_json::to_string(&line).unwrap_or_default()
}

#[derive(Default, Serialize)]
struct RecordedExchange<'a> {
    request: RecordedRequest,
    #[serde(skip_serializing_if = "str::is_empty")]
    reasoning: &'a str,
    #[serde(skip_serializing_if = "<[Value]>::is_empty")]
    opaque: &'a [Value],
    #[serde(skip_serializing_if = "str::is_empty")]
    text: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<RecordedCall<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<Usage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop: Option<&'a StopReason>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<RecordedFailure<'a>>,
}

#[derive(Default, Serialize)]
struct RecordedRequest {
    hash: String,
    messages: usize,
    last: String,
    added: Vec<Message>,
}

#[derive(Serialize)]
struct RecordedCall<'a> {
    id: &'a str,
    name: &'a str,
    /// A string, so that the text stays exactly as the model sent it.
    arguments: &'a str,
}

#[derive(Serialize)]
struct RecordedFailure<'a> {
    kind: ErrorKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after: Option<f64>,
    message: &'a str,
}
