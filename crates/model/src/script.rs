//! A model that plays replies from a file (`script:FILE`), for the demo and for tests.
//!
//! The format is JSON Lines, one reply per line. Every request uses a line, including failed ones. `line`
//! parses the format; `play` streams the reply of a line. Cassettes ([`crate::cassette`]) share both.

pub(crate) mod line;
pub(crate) mod play;
pub(crate) mod spanned_json;

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use parking_lot::Mutex;

use self::line::{LineFields, ScriptLine};
use self::spanned_json::FieldError;
use crate::{
    BoxFuture, CancellationToken, Conversation, Dialect, ErrorKind, Model, ModelError, OpenError, Reply,
    ReplyDelta, RequestOptions,
};

/// Maximum size of a script in bytes; it is held in memory as a whole.
const MAX_FILE: u64 = 256 << 20;
/// Maximum number of errors listed per file; the rest are counted.
const MAX_FAULTS: usize = 20;

/// A script and its position. Shared by tasks that run concurrently.
pub struct Script {
    name: String,
    file: String,
    lines: Vec<ScriptLine>,
    /// Indices of the lines with a `match`.
    matching: Vec<usize>,
    /// Which lines have been used, by index.
    taken: Mutex<TakenReply>,
    /// Longest delay of a reply; a longer one is an error, as with a server that stays silent.
    silence: Duration,
}

#[derive(Default)]
struct TakenReply {
    lines: Vec<bool>,
    /// All lines without `match` before this one are used.
    cursor: usize,
}

impl Script {
    /// Opens the script at `path`; `name` is the model name as given by the user.
    pub fn open(name: &str, path: &Path) -> Result<Script, OpenError> {
        let text = read_file(path)?;
        Script::parse(name, &path.display().to_string(), &text)
    }

    /// Parses a script; `file` is used in error messages.
    pub fn parse(name: &str, file: &str, text: &str) -> Result<Script, OpenError> {
        let lines = parse_lines(file, text, 1, LineFields::Script)?;
        let matching = (0..lines.len()).filter(|index| lines[*index].pattern.is_some()).collect();
        let taken = Mutex::new(TakenReply { lines: vec![false; lines.len()], cursor: 0 });
        let silence = Duration::MAX;
        Ok(Script { name: name.to_owned(), file: file.to_owned(), lines, matching, taken, silence })
    }

    /// Sets how long a reply may be delayed before the request fails.
    #[must_use]
    pub fn with_silence(self, silence: Duration) -> Self {
        Self { silence, ..self }
    }

    fn take(&self, conversation: &Conversation) -> Result<&ScriptLine, ModelError> {
        let last = conversation.messages().last().map_or("", |message| message.text());
        let mut taken = self.taken.lock();
        let matches = |index: &usize| {
            !taken.lines[*index]
                && self.lines[*index].pattern.as_ref().is_some_and(|regex| regex.is_match(last))
        };
        let matching = self.matching.iter().copied().find(matches);
        let found =
            matching.or_else(|| taken.next_plain(&self.lines)).ok_or_else(|| self.exhausted(&taken))?;
        taken.lines[found] = true;
        Ok(&self.lines[found])
    }

    fn silent(&self, line: &ScriptLine) -> ModelError {
        let message = format!("{} sent nothing for {} s", self.name, self.silence.as_secs_f64());
        ModelError { source_line: Some(line.number), ..ModelError::new(ErrorKind::Silence, message) }
    }

    fn exhausted(&self, taken: &TakenReply) -> ModelError {
        let left = taken.lines.iter().filter(|taken| !**taken).count();
        let mut message = format!("the script {} has no line left", self.file);
        if left > 0 {
            let _ = write!(message, " for this request: its {left} unused `match` lines do not match it");
        } else {
            let _ = write!(message, ": all {} are used", self.lines.len());
        }
        ModelError::new(ErrorKind::Exhausted, message)
    }
}

impl TakenReply {
    fn next_plain(&mut self, lines: &[ScriptLine]) -> Option<usize> {
        while self.cursor < lines.len() && (self.lines[self.cursor] || lines[self.cursor].pattern.is_some()) {
            self.cursor += 1;
        }
        (self.cursor < lines.len()).then_some(self.cursor)
    }
}

impl Model for Script {
    fn name(&self) -> &str {
        &self.name
    }

    fn dialect(&self) -> Dialect {
        Dialect::default()
    }

    fn send<'a>(
        &'a self,
        conversation: &'a Conversation,
        _: &'a RequestOptions,
        sink: &'a mut (dyn FnMut(ReplyDelta<'_>) + Send),
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Reply, ModelError>> {
        Box::pin(async move {
            let line = self.take(conversation)?;
            if Duration::from_millis(line.delay_ms) <= self.silence {
                return play::play(line, sink, cancel).await;
            }
            match cancel.run_until_cancelled(tokio::time::sleep(self.silence)).await {
                Some(()) => Err(self.silent(line)),
                None => Err(ModelError { source_line: Some(line.number), ..ModelError::cancelled() }),
            }
        })
    }

    fn replayed(&self, attempt: Result<&Reply, &ModelError>) {
        let number = attempt.map_or_else(|error| error.source_line, |reply| reply.source_line);
        let Some(number) = number else { return };
        if let Ok(index) = self.lines.binary_search_by_key(&number, |line| line.number) {
            self.taken.lock().lines[index] = true;
        }
    }
}

/// Reads a script or cassette.
pub(crate) fn read_file(path: &Path) -> Result<String, OpenError> {
    let fault = |what: String| OpenError::File(format!("cannot read {}: {what}", path.display()));
    let size = std::fs::metadata(path).map_err(|error| fault(error.to_string()))?.len();
    if size > MAX_FILE {
        return Err(fault(format!("it is larger than {} MB", MAX_FILE >> 20)));
    }
    let bytes = std::fs::read(path).map_err(|error| fault(error.to_string()))?;
    String::from_utf8(bytes).map_err(|error| {
        let line =
            error.as_bytes()[..error.utf8_error().valid_up_to()].iter().filter(|b| **b == b'\n').count();
        fault(format!("line {} is not UTF-8", line + 1))
    })
}

/// Parses the lines of `text`, the first of which has number `first`; the error lists all problems.
pub(crate) fn parse_lines(
    file: &str,
    text: &str,
    first: usize,
    vocabulary: LineFields,
) -> Result<Vec<ScriptLine>, OpenError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = Vec::new();
    let mut report = String::new();
    let mut count = 0;
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let number = first + index;
        let mut faults = Vec::new();
        lines.extend(ScriptLine::parse(line, number, vocabulary, &mut faults));
        faults.sort_by_key(|fault| fault.offset);
        for FieldError { offset, message } in faults {
            count += 1;
            if count <= MAX_FAULTS {
                let column = line.char_indices().take_while(|(at, _)| *at < offset).count() + 1;
                let _ = writeln!(report, "{file}:{number}:{column}: {message}");
            }
        }
    }
    if count > MAX_FAULTS {
        let _ = writeln!(report, "and {} more", count - MAX_FAULTS);
    }
    if report.is_empty() { Ok(lines) } else { Err(OpenError::File(report.trim_end().to_owned())) }
}

#[cfg(test)]
mod tests;
