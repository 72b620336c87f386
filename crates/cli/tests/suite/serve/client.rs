//! A server under test and an HTTP client that sends what it is told, byte by byte.
#![expect(clippy::panic, reason = "a test panics when it fails")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use fusee_testkit::project::{Project, Running};
use serde_json::Value;

use crate::support::fusee;

/// How long anything may take on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// A running `fusee serve`.
pub(crate) struct Site {
    pub(crate) address: SocketAddr,
    pub(crate) token: String,
    pub(crate) running: Running,
}

/// Status, headers and body, as received.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: String,
}

impl Answer {
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut fields = self.head.lines().filter_map(|line| line.split_once(':'));
        fields.find(|(field, _)| field.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }
}

impl Site {
    /// Starts a server on a free port.
    pub(crate) fn start(project: &Project, args: &[&str]) -> Self {
        let mut running = fusee(project).args(["serve", "--sandbox", "off"]).args(args).start();
        running.wait_for_stdout("the URL", |text| text.contains('\n'));
        let text = running.stdout_so_far();
        let line = text.lines().next().unwrap();
        let (address, token) = line.strip_prefix("http://").unwrap().split_once("/#token=").expect(line);
        Self { address: address.parse().unwrap(), token: token.to_owned(), running }
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        stream
    }

    /// Sends these bytes and reads the answer.
    pub(crate) fn raw(&self, request: &str) -> Answer {
        let mut stream = self.connect();
        stream.write_all(request.as_bytes()).unwrap();
        answer(&mut BufReader::new(stream))
    }

    /// A request with the usual head, further header lines and a body.
    pub(crate) fn request(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let fields: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let (address, token) = (self.address, &self.token);
        let length = body.len();
        self.raw(&format!(
            "{method} {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\
             Content-Length: {length}\r\n{fields}\r\n{body}"
        ))
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.request("GET", path, &[], "")
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Answer {
        self.post_with(path, body, &[])
    }

    pub(crate) fn post_with(&self, path: &str, body: &Value, headers: &[(&str, &str)]) -> Answer {
        let headers = [&[("Content-Type", "application/json")][..], headers].concat();
        self.request("POST", path, &headers, &body.to_string())
    }

    /// Opens an event stream.
    pub(crate) fn stream(&self, path: &str) -> Events {
        let mut stream = self.connect();
        let (address, token) = (self.address, &self.token);
        let head = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        let mut reader = BufReader::new(stream);
        let head = head_of(&mut reader);
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        assert!(head.to_lowercase().contains("content-type: text/event-stream"), "{head}");
        Events { reader, text: String::new() }
    }

    /// The first question that waits.
    pub(crate) fn wait_for_question(&self) -> Value {
        let since = Instant::now();
        loop {
            let waiting = self.get("/api/approvals").json();
            if let Some(question) = waiting.get(0) {
                return question.clone();
            }
            assert!(since.elapsed() < LIMIT, "no question");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until a run, which may not have begun, has an event of this type.
    pub(crate) fn wait_for_event(&self, run: &str, kind: &str) {
        let since = Instant::now();
        loop {
            let listed = self.get(&format!("/api/runs/{run}/events?limit=1000"));
            let is_there =
                |events: Value| events.as_array().unwrap().iter().any(|event| event["type"] == kind);
            if listed.status == 200 && is_there(listed.json()) {
                return;
            }
            assert!(since.elapsed() < LIMIT, "no {kind} in {run}: {listed:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// An open event stream.
pub(crate) struct Events {
    reader: BufReader<TcpStream>,
    text: String,
}

impl Events {
    /// All further events up to the end of the run.
    pub(crate) fn rest(&mut self) -> Vec<Value> {
        let mut events = Vec::new();
        while let Some(event) = self.next() {
            events.push(event);
        }
        events
    }

    /// All events up to one.
    pub(crate) fn until(&mut self, is_last: impl Fn(&Value) -> bool) -> Vec<Value> {
        let mut events = Vec::new();
        while let Some(event) = self.next() {
            let last = is_last(&event);
            events.push(event);
            if last {
                return events;
            }
        }
        panic!("the stream ended: {events:?}");
    }

    fn next(&mut self) -> Option<Value> {
        loop {
            if let Some((block, rest)) = self.text.split_once("\n\n") {
                let (block, rest) = (block.to_owned(), rest.to_owned());
                self.text = rest;
                if block.starts_with("event: end") {
                    return None;
                }
                let data = block.lines().find_map(|line| line.strip_prefix("data: "));
                if let Some(data) = data {
                    return Some(serde_json::from_str(data).unwrap());
                }
                continue;
            }
            let chunk = chunk(&mut self.reader)?;
            self.text.push_str(&chunk);
        }
    }
}

fn head_of(reader: &mut BufReader<TcpStream>) -> String {
    let mut head = String::new();
    loop {
        let before = head.len();
        reader.read_line(&mut head).unwrap();
        if head.len() - before <= 2 {
            return head;
        }
    }
}

/// The next chunk of a chunked body; `None` after the last.
fn chunk(reader: &mut BufReader<TcpStream>) -> Option<String> {
    let mut size = String::new();
    reader.read_line(&mut size).unwrap();
    let size = usize::from_str_radix(size.trim(), 16).ok()?;
    let mut bytes = vec![0; size + 2];
    reader.read_exact(&mut bytes).unwrap();
    bytes.truncate(size);
    (size > 0).then(|| String::from_utf8(bytes).unwrap())
}

/// Reads an answer whose connection the server closes, or whose length it says.
fn answer(reader: &mut BufReader<TcpStream>) -> Answer {
    let head = head_of(reader);
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default();
    let lower = head.to_lowercase();
    let mut body = Vec::new();
    if lower.contains("transfer-encoding: chunked") {
        while let Some(chunk) = chunk(reader) {
            body.extend(chunk.into_bytes());
        }
    } else {
        let length =
            lower.lines().find_map(|line| line.strip_prefix("content-length: ")?.trim().parse().ok());
        body = vec![0; length.unwrap_or_default()];
        reader.read_exact(&mut body).unwrap();
    }
    Answer { status, head, body: String::from_utf8_lossy(&body).into_owned() }
}
