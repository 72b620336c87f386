//! A client for language servers that only asks for the errors of a file. The server reads the text from its client, so
//! the state before an edit can be checked after it.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::unix::pipe;
use tokio::sync::{Mutex, mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::server::ServerKind;
use super::{FoundError, MAX_READ};
use crate::sandbox::CommandRequest;
use crate::tool::shell::CommandSettings;

/// Maximum bytes of a message; a server that sends a longer one is stopped.
const MAX_MESSAGE: usize = 16 << 20;
/// Maximum number of messages that wait to be handled; more are dropped, and the check does not end in time.
const MAX_WAITING: usize = 1024;
/// Errors are complete when none followed for this long; some servers send them in parts.
const QUIET: Duration = Duration::from_millis(150);
/// Severity of errors in the protocol.
const ERROR: u64 = 1;

/// A running language server; dropping it stops it.
#[derive(Debug)]
pub(super) struct LanguageServer {
    stop: CancellationToken,
    /// One check at a time.
    conversation: Mutex<Conversation>,
    version: AtomicI64,
    /// Whether the server has answered the first request.
    ready: watch::Receiver<bool>,
    input: Arc<Mutex<pipe::Sender>>,
}

/// What the server said about files.
#[derive(Debug)]
struct Conversation {
    published: mpsc::Receiver<Value>,
}

impl Drop for LanguageServer {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl LanguageServer {
    /// Starts a server in a directory; `None` if that is not possible. It may take seconds until it answers.
    pub(super) fn start(command: &str, root: &Path, commands: &CommandSettings) -> Option<Self> {
        let (theirs, ours) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).ok()?;
        let input = Arc::new(Mutex::new(pipe::Sender::from_owned_fd(ours).ok()?));
        let (stop, (chunks, received)) = (CancellationToken::new(), mpsc::unbounded_channel());
        let (publish, published) = mpsc::channel(MAX_WAITING);
        let (set_ready, ready) = watch::channel(false);
        let (commands, command, directory) =
            (commands.clone(), format!("{command} 2>/dev/null"), root.to_owned());
        let stop_now = stop.clone();
        tokio::spawn(Box::pin(run(commands, command, directory, theirs, chunks, stop_now)));
        tokio::spawn(handle(received, Arc::clone(&input), publish, set_ready, stop.clone()));
        let (first, sender) = (initialize(root), Arc::clone(&input));
        tokio::spawn(async move { send(&sender, &first).await });
        let conversation = Mutex::new(Conversation { published });
        Some(Self { stop, conversation, version: AtomicI64::new(0), ready, input })
    }

    /// The errors of a file with one text and then with another; `None` if the server has ended.
    pub(super) async fn check(
        &self,
        path: &Path,
        kind: ServerKind,
        before: &str,
        after: &str,
    ) -> Option<(Vec<FoundError>, Vec<FoundError>)> {
        let mut conversation = self.conversation.lock().await;
        self.ready.clone().wait_for(|ready| *ready).await.ok()?;
        // What an earlier check did not wait for.
        while conversation.published.try_recv().is_ok() {}
        let uri = uri(path);
        let open = |version: i64, text: &str| {
            let document = json!({
                "uri": uri, "languageId": kind.language(path), "version": version, "text": text,
            });
            notification("textDocument/didOpen", json!({ "textDocument": document }))
        };
        let version = self.version.fetch_add(2, Ordering::Relaxed) + 1;
        let closed = CloseDocument { input: Arc::clone(&self.input), uri: uri.clone() };
        let earlier = match before.is_empty() {
            true => {
                send(&self.input, &open(version + 1, after)).await?;
                Vec::new()
            }
            false => {
                send(&self.input, &open(version, before)).await?;
                let earlier = conversation.errors(&uri, version).await?;
                let change = json!({
                    "textDocument": { "uri": uri, "version": version + 1 },
                    "contentChanges": [{ "text": after }],
                });
                send(&self.input, &notification("textDocument/didChange", change)).await?;
                earlier
            }
        };
        let now = conversation.errors(&uri, version + 1).await?;
        drop(closed);
        Some((earlier, now))
    }
}

/// Closes a document when a check ends, also one that took too long.
struct CloseDocument {
    input: Arc<Mutex<pipe::Sender>>,
    uri: String,
}

impl Drop for CloseDocument {
    fn drop(&mut self) {
        let input = Arc::clone(&self.input);
        let text = json!({ "textDocument": { "uri": self.uri } });
        tokio::spawn(async move { send(&input, &notification("textDocument/didClose", text)).await });
    }
}

impl Conversation {
    /// Waits for the errors of a version of a file. A server that does not name versions is believed.
    async fn errors(&mut self, uri: &str, version: i64) -> Option<Vec<FoundError>> {
        let is_it = |published: &Value| {
            let same = published["version"].as_i64().is_none_or(|named| named == version);
            same && published["uri"].as_str().is_some_and(|named| same_file(named, uri))
        };
        let mut last = loop {
            let published = self.published.recv().await?;
            if is_it(&published) {
                break published;
            }
        };
        while let Ok(Some(published)) = tokio::time::timeout(QUIET, self.published.recv()).await {
            if is_it(&published) {
                last = published;
            }
        }
        Some(read_errors(&last))
    }
}

fn read_errors(published: &Value) -> Vec<FoundError> {
    let all = published["diagnostics"].as_array().map(Vec::as_slice).unwrap_or_default();
    let errors = all.iter().filter(|found| found["severity"].as_u64().unwrap_or(ERROR) == ERROR);
    let number = |value: &Value| value.as_u64().and_then(|n| u32::try_from(n + 1).ok()).unwrap_or_default();
    let error = |found: &Value| {
        let start = &found["range"]["start"];
        let message = found["message"].as_str().unwrap_or_default();
        let message = message.split_whitespace().collect::<Vec<_>>().join(" ");
        FoundError { line: number(&start["line"]), column: number(&start["character"]), message }
    };
    errors.take(MAX_READ).map(error).collect()
}

async fn run(
    commands: CommandSettings,
    command: String,
    directory: std::path::PathBuf,
    input: OwnedFd,
    chunks: mpsc::UnboundedSender<Vec<u8>>,
    stop: CancellationToken,
) {
    let (Some(fork_server), Ok(directory)) = (&commands.fork_server, File::open(&directory)) else { return };
    let request = CommandRequest {
        command: &command,
        directory: directory.into(),
        input: None,
        environment: &commands.environment,
        sandbox: &commands.sandbox,
        limits: commands.limits,
    };
    // Nobody reads any more once the server is dropped.
    let heard = |bytes: &[u8]| drop(chunks.send(bytes.to_vec()));
    // However it ends: its channel is closed then, which every check sees.
    let _ = fork_server.run_reading(request, input, heard, stop.cancelled()).await;
}

/// Splits the server's output into messages, answers its requests and passes on what it says about files.
async fn handle(
    mut received: mpsc::UnboundedReceiver<Vec<u8>>,
    input: Arc<Mutex<pipe::Sender>>,
    publish: mpsc::Sender<Value>,
    ready: watch::Sender<bool>,
    stop: CancellationToken,
) {
    let mut buffer = Vec::new();
    while let Some(chunk) = received.recv().await {
        buffer.extend_from_slice(&chunk);
        loop {
            match take_message(&mut buffer) {
                Ok(Some(message)) => handle_message(&message, &input, &publish, &ready, &stop).await,
                Ok(None) => break,
                Err(TooLong) => {
                    stop.cancel();
                    return;
                }
            }
        }
    }
}

async fn handle_message(
    message: &Value,
    input: &Arc<Mutex<pipe::Sender>>,
    publish: &mpsc::Sender<Value>,
    ready: &watch::Sender<bool>,
    stop: &CancellationToken,
) {
    match (message["method"].as_str(), message.get("id")) {
        (Some("textDocument/publishDiagnostics"), None) => {
            // One that does not fit is missed by a check that waits for it, which then reports nothing.
            let _ = publish.try_send(message["params"].clone());
        }
        (Some(method), Some(id)) => {
            let result = match method {
                "workspace/configuration" => {
                    let items = message["params"]["items"].as_array().map_or(1, Vec::len);
                    Value::Array(vec![Value::Null; items.min(MAX_READ)])
                }
                _ => Value::Null,
            };
            send(input, &json!({ "jsonrpc": "2.0", "id": id, "result": result })).await;
        }
        // The server cannot work here.
        (None, Some(_)) if message.get("error").is_some() => stop.cancel(),
        (None, Some(_)) if !*ready.borrow() => {
            send(input, &notification("initialized", json!({}))).await;
            ready.send_replace(true);
        }
        _ => {}
    }
}

/// A message is longer than allowed, or its head makes no sense.
struct TooLong;

/// Takes the first complete message from the buffer.
fn take_message(buffer: &mut Vec<u8>) -> Result<Option<Value>, TooLong> {
    let Some(end) = buffer.windows(4).position(|window| window == b"\r\n\r\n") else {
        return if buffer.len() > 64 << 10 { Err(TooLong) } else { Ok(None) };
    };
    let head = String::from_utf8_lossy(&buffer[..end]).to_ascii_lowercase();
    let length =
        head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse::<usize>().ok());
    let length = length.filter(|length| *length <= MAX_MESSAGE).ok_or(TooLong)?;
    let start = end + 4;
    if buffer.len() < start + length {
        return Ok(None);
    }
    let message = serde_json::from_slice(&buffer[start..start + length]).unwrap_or_default();
    buffer.drain(..start + length);
    Ok(Some(message))
}

/// Sends a message; `None` if the server has ended.
async fn send(input: &Mutex<pipe::Sender>, message: &Value) -> Option<()> {
    let body = message.to_string();
    let text = format!("Content-Length: {}\r\n\r\n{body}", body.len());
    input.lock().await.write_all(text.as_bytes()).await.ok()
}

fn notification(method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": method, "params": params })
}

fn initialize(root: &Path) -> Value {
    let uri = uri(root);
    let document = json!({ "publishDiagnostics": { "versionSupport": true }, "synchronization": {} });
    let params = json!({
        "processId": null,
        "clientInfo": { "name": "fusee" },
        "rootUri": uri,
        "workspaceFolders": [{ "uri": uri, "name": "workspace" }],
        "capabilities": {
            "textDocument": document,
            "workspace": { "configuration": true, "workspaceFolders": true },
        },
    });
    json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params })
}

/// The `file` URI of a path.
fn uri(path: &Path) -> String {
    reqwest::Url::from_file_path(path).map(String::from).unwrap_or_default()
}

/// Whether two URIs name the same file; servers differ in what they escape.
fn same_file(one: &str, other: &str) -> bool {
    let path = |uri: &str| reqwest::Url::parse(uri).ok().and_then(|uri| uri.to_file_path().ok());
    one == other || path(one).is_some_and(|path_of_one| Some(path_of_one) == path(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_taken_whole() {
        let mut buffer =
            b"Content-Length: 7\r\nContent-Type: x\r\n\r\n{\"a\":1}Content-Length: 2\r\n\r\n{".to_vec();
        assert_eq!(take_message(&mut buffer).ok().flatten(), Some(json!({"a": 1})));
        assert!(take_message(&mut buffer).is_ok_and(|message| message.is_none()));
        buffer.push(b'}');
        assert_eq!(take_message(&mut buffer).ok().flatten(), Some(json!({})));
        assert!(take_message(&mut b"Content-Length: 99999999999\r\n\r\n".to_vec()).is_err());
        assert!(take_message(&mut b"Content-Type: x\r\n\r\n".to_vec()).is_err());
        assert!(take_message(&mut vec![b'x'; 70_000]).is_err());
    }

    #[test]
    fn only_errors_are_read() {
        let range = json!({"start": {"line": 2, "character": 4}});
        let published = json!({"diagnostics": [
            {"range": range, "severity": 1, "message": "bad\n  type"},
            {"range": range, "severity": 2, "message": "unused"},
        ]});
        let expected = FoundError { line: 3, column: 5, message: "bad type".to_owned() };
        assert_eq!(read_errors(&published), [expected]);
    }

    #[test]
    fn uris_are_compared_as_paths() {
        assert_eq!(uri(Path::new("/a b/c.py")), "file:///a%20b/c.py");
        assert!(same_file("file:///a%20b/c%2Bd.py", "file:///a%20b/c+d.py"));
        assert!(!same_file("file:///a.py", "file:///b.py"));
    }
}
