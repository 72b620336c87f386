//! Server-sent events, parsed as the bytes come, however they are split. What the events mean is the codecs'
//! business ([`crate::wire`]).

/// A longer line is no event of a model but a fault of the server.
const MAX_LINE: usize = 8 << 20;
/// The same for the joined data lines of one event.
const MAX_EVENT: usize = 16 << 20;

/// One event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event<'a> {
    /// The `event` field, empty if there was none.
    pub name: &'a str,
    /// The `data` lines, joined by newlines.
    pub data: &'a str,
}

/// The stream went past a bound of the parser.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SseError {
    /// A line did not end.
    #[error("a line of the event stream is longer than {} MB", MAX_LINE >> 20)]
    Line,
    /// An event did not end.
    #[error("an event of the event stream is longer than {} MB", MAX_EVENT >> 20)]
    Event,
}

/// The parser's state between two pieces of input.
#[derive(Debug, Default)]
pub struct Parser {
    /// The part of a line that came without its end.
    line: Vec<u8>,
    name: String,
    data: String,
    /// A `data` field was seen, even if empty.
    has_data: bool,
    /// The last byte was a CR: an LF right after it ends no further line.
    after_cr: bool,
    /// Some line was seen, so a byte order mark is no longer one.
    started: bool,
}

impl Parser {
    /// Takes the next bytes and gives every event they complete to `each`. Stops at its first error.
    pub fn feed<E: From<SseError>>(
        &mut self,
        mut bytes: &[u8],
        mut each: impl FnMut(Event<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        loop {
            if self.after_cr && !bytes.is_empty() {
                self.after_cr = false;
                bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
            }
            let Some(end) = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r')) else { break };
            let (line, rest) = bytes.split_at(end);
            self.after_cr = rest.first() == Some(&b'\r');
            bytes = &rest[1..];
            self.bound_line(line)?;
            if self.line.is_empty() {
                self.line(line, &mut each)?;
            } else {
                let mut whole = std::mem::take(&mut self.line);
                whole.extend_from_slice(line);
                self.line(&whole, &mut each)?;
                // Give the buffer back, so that a stream of split lines allocates once.
                whole.clear();
                self.line = whole;
            }
        }
        self.bound_line(bytes)?;
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    /// The input is over. The standard drops an event without its blank line; servers that forget the last one
    /// are common, so it is given all the same.
    pub fn finish<E: From<SseError>>(
        &mut self,
        mut each: impl FnMut(Event<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let last = std::mem::take(&mut self.line);
        if !last.is_empty() {
            self.line(&last, &mut each)?;
        }
        self.line(b"", &mut each)
    }

    fn bound_line(&self, more: &[u8]) -> Result<(), SseError> {
        if self.line.len() + more.len() > MAX_LINE { Err(SseError::Line) } else { Ok(()) }
    }

    fn line<E: From<SseError>>(
        &mut self,
        mut line: &[u8],
        each: &mut impl FnMut(Event<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        if !std::mem::replace(&mut self.started, true) {
            line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
        }
        if line.is_empty() {
            return self.dispatch(each);
        }
        let (field, value) = match line.iter().position(|byte| *byte == b':') {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &line[line.len()..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => {
                if self.data.len() + value.len() >= MAX_EVENT {
                    return Err(SseError::Event.into());
                }
                if std::mem::replace(&mut self.has_data, true) {
                    self.data.push('\n');
                }
                self.data.push_str(&String::from_utf8_lossy(value));
            }
            b"event" => self.name = String::from_utf8_lossy(value).into_owned(),
            // Comments (an empty field name), `id`, `retry`, and whatever else there may be.
            _ => {}
        }
        Ok(())
    }

    fn dispatch<E: From<SseError>>(
        &mut self,
        each: &mut impl FnMut(Event<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let given = if std::mem::take(&mut self.has_data) {
            each(Event { name: &self.name, data: &self.data })
        } else {
            Ok(())
        };
        self.name.clear();
        self.data.clear();
        given
    }
}

#[cfg(test)]
mod tests;
