//! Reads HTTP/1.1 requests from a socket, byte for byte. `reply` writes the replies.

use std::io::{self, Read};
use std::net::TcpStream;
use std::time::Instant;

use serde_json::value::RawValue;

/// Maximum bytes of a request head: far more than any client sends, so that a runaway one is noticed.
const HEAD_LIMIT: usize = 256 * 1024;

/// Head and exact body of a request.
#[derive(Clone, Debug)]
pub struct ReceivedRequest {
    /// HTTP method.
    pub method: String,
    /// Path with its query.
    pub path: String,
    /// Headers in order, with lower-case names and trimmed values.
    pub headers: Vec<(String, String)>,
    /// Body with only the transfer encoding removed.
    pub body: Vec<u8>,
}

impl ReceivedRequest {
    /// First header with this name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v.as_str())
    }

    /// Whether it is a model request; probes of a server's capabilities do not consume lines of a script.
    pub fn is_for_a_model(&self) -> bool {
        let path = self.path.split('?').next().unwrap_or_default();
        self.method == "POST"
            && ["/chat/completions", "/responses", "/messages"].iter().any(|end| path.ends_with(end))
    }

    /// Body as JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("a body that is not JSON: {error}\n{:?}", self.body_text()))
    }

    /// The payload, with invalid UTF-8 replaced.
    pub fn body_text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Exact bytes of each element of `messages`, for comparing prefixes of requests.
    pub fn messages(&self) -> Vec<String> {
        self.elements("messages")
    }

    /// Exact bytes of each element of a list in the body.
    pub fn elements(&self, field: &str) -> Vec<String> {
        let fields: std::collections::BTreeMap<String, Box<RawValue>> =
            serde_json::from_slice(&self.body).expect("a JSON object");
        let elements = fields.get(field).map_or("[]", |raw| raw.get());
        let elements: Vec<Box<RawValue>> = serde_json::from_str(elements).expect("an array");
        elements.iter().map(|raw| raw.get().to_owned()).collect()
    }
}

/// Incoming bytes of one connection, read request by request.
pub struct RequestReader<'a> {
    stream: &'a TcpStream,
    buffer: Vec<u8>,
    /// Number of bytes in the buffer that belong to requests already returned.
    used: usize,
}

impl<'a> RequestReader<'a> {
    /// Starts at the beginning of a connection.
    pub fn new(stream: &'a TcpStream) -> Self {
        Self { stream, buffer: Vec::with_capacity(64 * 1024), used: 0 }
    }

    /// Reads the next request and the time of its first byte; `None` when the client has closed the
    /// connection.
    pub fn next_request(&mut self) -> io::Result<Option<(Instant, ReceivedRequest)>> {
        self.buffer.drain(..self.used);
        self.used = 0;
        if self.buffer.is_empty() && !self.fill()? {
            return Ok(None);
        }
        let began = Instant::now();
        let head_end = loop {
            if let Some(at) = find(&self.buffer, b"\r\n\r\n") {
                break at;
            }
            if self.buffer.len() > HEAD_LIMIT {
                return Err(io::Error::other("a request head without end"));
            }
            self.need()?;
        };
        let mut arrived = parse_head(&self.buffer[..head_end])?;
        self.used = head_end + 4;
        arrived.body = if arrived.header("transfer-encoding").is_some_and(|v| v.contains("chunked")) {
            self.chunks()?
        } else {
            let length = arrived.header("content-length").and_then(|v| v.parse().ok()).unwrap_or(0);
            self.take(length)?
        };
        Ok(Some((began, arrived)))
    }

    fn chunks(&mut self) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let line = self.line()?;
            let size = line.split(';').next().unwrap_or_default().trim();
            let size = usize::from_str_radix(size, 16).map_err(io::Error::other)?;
            body.extend(self.take(size)?);
            self.line()?;
            if size == 0 {
                return Ok(body);
            }
        }
    }

    fn line(&mut self) -> io::Result<String> {
        loop {
            if let Some(at) = find(&self.buffer[self.used..], b"\r\n") {
                let line = String::from_utf8_lossy(&self.buffer[self.used..self.used + at]).into_owned();
                self.used += at + 2;
                return Ok(line);
            }
            self.need()?;
        }
    }

    fn take(&mut self, length: usize) -> io::Result<Vec<u8>> {
        while self.buffer.len() < self.used + length {
            self.need()?;
        }
        let taken = self.buffer[self.used..self.used + length].to_vec();
        self.used += length;
        Ok(taken)
    }

    fn need(&mut self) -> io::Result<()> {
        if self.fill()? { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }

    fn fill(&mut self) -> io::Result<bool> {
        let old = self.buffer.len();
        self.buffer.resize(old + 64 * 1024, 0);
        let mut stream = self.stream;
        let read = stream.read(&mut self.buffer[old..]);
        self.buffer.truncate(old + read.as_ref().copied().unwrap_or(0));
        read.map(|n| n > 0)
    }
}

fn parse_head(head: &[u8]) -> io::Result<ReceivedRequest> {
    let head = std::str::from_utf8(head).map_err(io::Error::other)?;
    let mut lines = head.split("\r\n");
    let mut first = lines.next().unwrap_or_default().split(' ');
    let (Some(method), Some(path)) = (first.next(), first.next()) else {
        return Err(io::Error::other("a request line without a path"));
    };
    let headers = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    Ok(ReceivedRequest { method: method.to_owned(), path: path.to_owned(), headers, body: Vec::new() })
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}
