//! Incremental parser for server-sent events, independent of how the bytes are split. The codecs in
//! [`crate::wire`] interpret the events.

/// Maximum length of a line in bytes; a longer one is a server error.
const MAX_LINE: usize = 8 << 20;
/// Maximum length in bytes of the joined data lines of one event.
const MAX_EVENT: usize = 16 << 20;

/// A server-sent event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SseEvent<'a> {
    /// The `event` field, empty if absent.
    pub name: &'a str,
    /// The `data` lines, joined by newlines.
    pub data: &'a str,
}

/// The stream exceeded a limit of the parser.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SseError {
    /// A line is too long.
    #[error("a line of the event stream is longer than {} MB", MAX_LINE >> 20)]
    Line,
    /// An event is too long.
    #[error("an event of the event stream is longer than {} MB", MAX_EVENT >> 20)]
    Event,
}

/// State of the parser between two inputs.
#[derive(Debug, Default)]
pub struct SseParser {
    /// Incomplete last line.
    line: Vec<u8>,
    name: String,
    data: String,
    /// Whether a `data` field was seen, even an empty one.
    has_data: bool,
    /// The last byte was a CR: an LF right after it does not end another line.
    after_cr: bool,
    /// Whether any line was seen, so that a byte order mark is no longer expected.
    started: bool,
}

impl SseParser {
    /// Consumes bytes and passes every completed event to `each`. Stops at its first error.
    pub fn feed<E: From<SseError>>(
        &mut self,
        mut bytes: &[u8],
        mut each: impl FnMut(SseEvent<'_>) -> Result<(), E>,
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
                // Reuse the buffer, so that a stream of split lines allocates only once.
                whole.clear();
                self.line = whole;
            }
        }
        self.bound_line(bytes)?;
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    /// Ends the input. The standard discards an event without its blank line, but servers that omit the last
    /// one are common, so it is delivered anyway.
    pub fn finish<E: From<SseError>>(
        &mut self,
        mut each: impl FnMut(SseEvent<'_>) -> Result<(), E>,
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
        each: &mut impl FnMut(SseEvent<'_>) -> Result<(), E>,
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
            // Comments (an empty field name), `id`, `retry` and unknown fields.
            _ => {}
        }
        Ok(())
    }

    fn dispatch<E: From<SseError>>(
        &mut self,
        each: &mut impl FnMut(SseEvent<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let given = if std::mem::take(&mut self.has_data) {
            each(SseEvent { name: &self.name, data: &self.data })
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
