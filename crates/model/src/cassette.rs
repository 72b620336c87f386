//! Cassettes: recorded exchanges with a model in a file, played back as a model (`replay:FILE`). [`recorder`]
//! records them.
//!
//! The format is JSON Lines. The first line is a header, `{"cassette":1,"model":…,"wire":…}`; then one line
//! per exchange: the reply in the format of a script ([`crate::script`]), and `request` with the hash of
//! the request and its new messages. A request with different messages is an error that shows the difference.

pub mod recorder;

use std::collections::{HashMap, VecDeque};
use std::path::Path;
use std::time::Duration;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use similar::TextDiff;

use crate::script::line::{LineFields, ScriptLine};
use crate::script::{parse_lines, play, read_file};
use crate::{
    BoxFuture, CancellationToken, Conversation, Dialect, ErrorKind, Message, Model, ModelError, OpenError,
    Reply, ReplyDelta, RequestOptions,
};

/// Version of the format; no other version is read.
const VERSION: u32 = 1;

/// Limits for computing a difference and for the number of lines shown.
const DIFF_TIME: Duration = Duration::from_millis(200);
const DIFF_LINES: usize = 40;

/// The first line of a cassette.
#[derive(Debug, Serialize, Deserialize)]
struct CassetteHeader {
    cassette: u32,
    /// Name of the recorded model.
    model: String,
    #[serde(flatten)]
    dialect: Dialect,
    /// Context size of the recorded model, which determines when a conversation is compacted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    context_tokens: Option<u64>,
}

impl CassetteHeader {
    fn parse(file: &str, line: &str) -> Result<CassetteHeader, OpenError> {
        let header: CassetteHeader = serde_json::from_str(line).map_err(|_| {
            OpenError::File(format!(
                "{file}:1:1: not a cassette: the first line must look like {{\"cassette\":{VERSION},\"model\":\"…\"}}"
            ))
        })?;
        if header.cassette != VERSION {
            return Err(OpenError::File(format!(
                "{file}:1:1: unsupported cassette version {}; expected version {VERSION}",
                header.cassette
            )));
        }
        Ok(header)
    }
}

/// A cassette being played back. It answers by the hash of the request, or else in order.
pub struct Cassette {
    name: String,
    file: String,
    header: CassetteHeader,
    lines: Vec<ScriptLine>,
    state: Mutex<State>,
}

struct State {
    taken: Vec<bool>,
    /// All lines before this one are used.
    cursor: usize,
    /// Lines by request hash, unused ones first.
    by_hash: HashMap<String, VecDeque<usize>>,
}

impl Cassette {
    /// Opens the cassette at `path`; `name` is the model name as given by the user.
    pub fn open(name: &str, path: &Path) -> Result<Cassette, OpenError> {
        let text = read_file(path)?;
        Cassette::parse(name, &path.display().to_string(), &text)
    }

    /// Parses a cassette; `file` is used in error messages.
    pub fn parse(name: &str, file: &str, text: &str) -> Result<Cassette, OpenError> {
        let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
        let header = CassetteHeader::parse(file, first)?;
        let lines = parse_lines(file, rest, 2, LineFields::Cassette)?;
        let mut by_hash = HashMap::<String, VecDeque<usize>>::new();
        for (index, line) in lines.iter().enumerate() {
            if let Some(hash) = &line.hash {
                by_hash.entry(hash.clone()).or_default().push_back(index);
            }
        }
        let state = Mutex::new(State { taken: vec![false; lines.len()], cursor: 0, by_hash });
        Ok(Cassette { name: name.to_owned(), file: file.to_owned(), header, lines, state })
    }

    fn take(&self, conversation: &Conversation) -> Result<&ScriptLine, ModelError> {
        let hash = conversation.hash();
        let mut state = self.state.lock();
        let index = state.same_request(&hash).or_else(|| state.next_in_order()).ok_or_else(|| {
            let count = self.lines.len();
            let message = format!("the cassette {} has no reply left: all {count} are used", self.file);
            ModelError::new(ErrorKind::Exhausted, message)
        })?;
        state.taken[index] = true;
        let line = &self.lines[index];
        match self.difference(line, conversation) {
            None => Ok(line),
            Some(difference) => {
                let mut error = ModelError::new(ErrorKind::Invalid, difference);
                error.source_line = Some(line.number);
                Err(error)
            }
        }
    }

    /// Difference between the recorded and the current request. The system prompt is not compared, because it
    /// contains the date and the directory.
    fn difference(&self, line: &ScriptLine, conversation: &Conversation) -> Option<String> {
        let now = added(conversation.messages());
        let then = line.added.as_deref().filter(|then| *then != now)?;
        let (then, now) = (format_messages(then), format_messages(now));
        let diff = TextDiff::configure().timeout(DIFF_TIME).diff_lines(&then, &now);
        let diff = diff.unified_diff().context_radius(1).header("recorded", "now").to_string();
        let lines: Vec<&str> = diff.lines().take(DIFF_LINES).collect();
        Some(format!(
            "the request differs from the one recorded at {}:{}:\n{}",
            self.file,
            line.number,
            lines.join("\n")
        ))
    }
}

/// The messages a request adds to the previous one: everything after the last assistant message.
fn added(messages: &[Message]) -> &[Message] {
    let last = messages.iter().rposition(|message| matches!(message, Message::Assistant { .. }));
    &messages[last.map_or(0, |last| last + 1)..]
}

/// Formats messages as lines for a diff.
fn format_messages(messages: &[Message]) -> String {
    let mut text = String::new();
    for message in messages {
        let who = match message {
            Message::User { .. } => "user",
            Message::Assistant { .. } => "assistant",
            Message::Tool { name, .. } => name,
        };
        text.push_str(&format!("{who}: {}\n", message.text()));
        for image in message.images() {
            let name = blake3::hash(image.data.as_bytes()).to_hex();
            text.push_str(&format!(
                "{who}: [{}, {} bytes in base64, {}]\n",
                image.media_type,
                image.data.len(),
                &name[..12]
            ));
        }
    }
    text
}

impl State {
    fn same_request(&mut self, hash: &str) -> Option<usize> {
        let lines = self.by_hash.get_mut(hash)?;
        while lines.front().is_some_and(|index| self.taken[*index]) {
            lines.pop_front();
        }
        lines.pop_front()
    }

    fn next_in_order(&mut self) -> Option<usize> {
        while self.taken.get(self.cursor) == Some(&true) {
            self.cursor += 1;
        }
        (self.cursor < self.taken.len()).then_some(self.cursor)
    }
}

impl Model for Cassette {
    fn name(&self) -> &str {
        &self.name
    }

    fn dialect(&self) -> Dialect {
        self.header.dialect
    }

    fn send<'a>(
        &'a self,
        conversation: &'a Conversation,
        _: &'a RequestOptions,
        sink: &'a mut (dyn FnMut(ReplyDelta<'_>) + Send),
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Reply, ModelError>> {
        Box::pin(async move { play::play(self.take(conversation)?, sink, cancel).await })
    }

    fn replayed(&self, attempt: Result<&Reply, &ModelError>) {
        let number = attempt.map_or_else(|error| error.source_line, |reply| reply.source_line);
        let Some(number) = number else { return };
        if let Ok(index) = self.lines.binary_search_by_key(&number, |line| line.number) {
            self.state.lock().taken[index] = true;
        }
    }

    fn context_tokens<'a>(&'a self) -> BoxFuture<'a, Option<u64>> {
        Box::pin(async { self.header.context_tokens })
    }
}

#[cfg(test)]
mod tests;
