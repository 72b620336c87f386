//! A reply to one request: its bytes, and the faults injected while they are sent.
//!
//! Tests build a [`Reply`]; [`Prepared`] is the same as a list of writes, computed once, so that the server
//! of a bench only copies bytes. `chat` builds the content of chat replies.

use std::sync::Arc;
use std::time::Duration;

/// Where the server pauses, cuts or splits what it sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyPosition {
    /// After this many bytes of the status line and headers; 0 is before anything.
    Head(usize),
    /// After the headers and this many bytes of the body.
    Body(usize),
}

/// How the end of the body is signalled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// `Transfer-Encoding: chunked`, as streaming servers do.
    Chunked,
    /// `Content-Length`.
    Length,
    /// Until the connection closes: a cut looks like a normal end.
    UntilClose,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Finish {
    KeepAlive,
    Close,
    Reset,
    Hang,
}

/// A reply and its injected faults.
#[derive(Clone, Debug)]
pub struct Reply {
    status: u16,
    headers: Vec<(String, String)>,
    parts: Vec<Vec<u8>>,
    framing: Framing,
    piece: Option<usize>,
    pause: Duration,
    latency: Duration,
    end: Option<(Finish, ReplyPosition)>,
}

/// A reply as the list of writes that send it.
#[derive(Debug)]
pub struct Prepared {
    pub(super) latency: Duration,
    pub(super) writes: Vec<Vec<u8>>,
    pub(super) pause: Duration,
    pub(super) finish: Finish,
}

impl Reply {
    /// A stream of server-sent events, each given as the text after `data: `.
    pub fn events(data: impl IntoIterator<Item = String>) -> Self {
        let parts = data.into_iter().map(|data| format!("data: {data}\n\n").into_bytes()).collect();
        Self::new(200, "text/event-stream", Framing::Chunked, parts)
    }

    /// A single JSON document.
    pub fn json(status: u16, body: &serde_json::Value) -> Self {
        Self::new(status, "application/json", Framing::Length, vec![body.to_string().into_bytes()])
    }

    /// Arbitrary bytes with any content type.
    pub fn raw(status: u16, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        Self::new(status, content_type, Framing::Length, vec![body.into()])
    }

    /// An error in the format of chat-completions servers.
    pub fn error(status: u16, message: &str) -> Self {
        let error = serde_json::json!({"message": message, "type": "scripted", "code": status});
        Self::json(status, &serde_json::json!({ "error": error }))
    }

    /// Accepts the connection and reads the request, but never answers.
    pub fn silence() -> Self {
        Self::events([]).hanging(ReplyPosition::Head(0))
    }

    fn new(status: u16, content_type: &str, framing: Framing, parts: Vec<Vec<u8>>) -> Self {
        Self {
            status,
            headers: vec![("content-type".to_owned(), content_type.to_owned())],
            parts,
            framing,
            piece: None,
            pause: Duration::ZERO,
            latency: Duration::ZERO,
            end: None,
        }
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sets `Retry-After` to a date this far in the future, rounded up because the format has whole seconds.
    #[must_use]
    pub fn retry_after_date(self, after: Duration) -> Self {
        let second = jiff::Timestamp::now().as_second() + after.as_secs().cast_signed() + 1;
        let date = jiff::Timestamp::from_second(second).expect("a date of this century");
        let date = date.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
        self.header("retry-after", &date)
    }

    /// Sets how the end of the body is signalled.
    #[must_use]
    pub fn framed(mut self, framing: Framing) -> Self {
        self.framing = framing;
        self
    }

    /// Sends the body in pieces of this many bytes, regardless of what they split.
    #[must_use]
    pub fn in_pieces_of(mut self, bytes: usize) -> Self {
        self.piece = Some(bytes.max(1));
        self
    }

    /// Sets the pause between pieces.
    #[must_use]
    pub fn pausing(mut self, pause: Duration) -> Self {
        self.pause = pause;
        self
    }

    /// Sets the delay before the first byte.
    #[must_use]
    pub fn after(mut self, latency: Duration) -> Self {
        self.latency = latency;
        self
    }

    /// Reorders, adds or removes events.
    #[must_use]
    pub fn rearranged(mut self, rearrange: impl FnOnce(&mut Vec<Vec<u8>>)) -> Self {
        rearrange(&mut self.parts);
        self
    }

    /// Swaps every two adjacent events.
    #[must_use]
    pub fn misordered(self) -> Self {
        self.rearranged(|parts| parts.chunks_exact_mut(2).for_each(|pair| pair.swap(0, 1)))
    }

    /// Inserts bytes that are not an event before event `index`.
    #[must_use]
    pub fn with_garbage(self, index: usize, garbage: &[u8]) -> Self {
        self.rearranged(|parts| parts.insert(index.min(parts.len()), garbage.to_vec()))
    }

    /// Closes the connection cleanly at this position.
    #[must_use]
    pub fn closing(mut self, at: ReplyPosition) -> Self {
        self.end = Some((Finish::Close, at));
        self
    }

    /// Resets the connection at this position.
    #[must_use]
    pub fn resetting(mut self, at: ReplyPosition) -> Self {
        self.end = Some((Finish::Reset, at));
        self
    }

    /// Stops sending at this position and keeps the connection open.
    #[must_use]
    pub fn hanging(mut self, at: ReplyPosition) -> Self {
        self.end = Some((Finish::Hang, at));
        self
    }

    /// Length of the body, for tests that cut at every byte.
    pub fn body_len(&self) -> usize {
        self.parts.iter().map(Vec::len).sum()
    }

    /// Position of the first occurrence of a text in the body, for tests that cut at a specific place.
    pub fn body_position(&self, text: &str) -> usize {
        let body = self.parts.concat();
        body.windows(text.len())
            .position(|window| window == text.as_bytes())
            .unwrap_or_else(|| panic!("{text:?} is not in the reply"))
    }

    /// Computes the writes that send the reply.
    pub fn prepare(&self) -> Arc<Prepared> {
        let body = self.parts.concat();
        let head = self.head(body.len());
        let (mut finish, cut) = match self.end {
            Some((finish, at)) => (finish, Some(at)),
            None => (Finish::KeepAlive, None),
        };
        if finish == Finish::KeepAlive && self.framing == Framing::UntilClose {
            finish = Finish::Close;
        }
        let writes = match cut {
            Some(ReplyPosition::Head(n)) => vec![head[..n.min(head.len())].to_vec()],
            Some(ReplyPosition::Body(n)) => self.body_writes(head, &body, Some(n)),
            None => self.body_writes(head, &body, None),
        };
        Arc::new(Prepared { latency: self.latency, writes, pause: self.pause, finish })
    }

    fn head(&self, length: usize) -> Vec<u8> {
        let reason = match self.status {
            200..=299 => "OK",
            400..=499 => "Refused",
            _ => "Failed",
        };
        let mut head = format!("HTTP/1.1 {} {reason}\r\n", self.status);
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        match self.framing {
            Framing::Chunked => head.push_str("transfer-encoding: chunked\r\n"),
            Framing::Length => head.push_str(&format!("content-length: {length}\r\n")),
            Framing::UntilClose => head.push_str("connection: close\r\n"),
        }
        head.push_str("\r\n");
        head.into_bytes()
    }

    /// A single write unless `in_pieces_of` was used. A cut falls inside a chunk whose full length was
    /// announced.
    fn body_writes(&self, head: Vec<u8>, body: &[u8], cut: Option<usize>) -> Vec<Vec<u8>> {
        let mut writes = vec![head];
        let mut sent = 0;
        for piece in body.chunks(self.piece.unwrap_or(body.len().max(1))) {
            let room = cut.map_or(piece.len(), |cut| piece.len().min(cut - sent));
            let mut write = Vec::new();
            if self.framing == Framing::Chunked {
                write.extend(format!("{:x}\r\n", piece.len()).bytes());
            }
            write.extend(&piece[..room]);
            sent += room;
            let whole = room == piece.len();
            if whole && self.framing == Framing::Chunked {
                write.extend(b"\r\n");
            }
            writes.push(write);
            if !whole {
                break;
            }
        }
        if cut.is_none() && self.framing == Framing::Chunked {
            writes.push(b"0\r\n\r\n".to_vec());
        }
        if self.piece.is_none() { vec![writes.concat()] } else { writes }
    }
}
