//! Stdio transport of MCP: the fork server starts the program, so it ends with this process; one message per
//! line.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::Value;
use tokio::net::unix::pipe;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::ProgramSettings;
use super::client::RequestFailure;
use super::jsonrpc::{self, IncomingMessage, RpcError};
use crate::sandbox::{CommandEnd, CommandRequest, ResourceLimits, Sandbox};

/// Maximum bytes of a message; a program that sends a longer one is stopped.
const MAX_LINE: usize = 16 << 20;
/// Messages queued for the program. If it does not read, senders block until their time limit.
const OUTBOX: usize = 64;
/// Bytes of the program's stderr included in an error.
const LOG_SHOWN: usize = 400;

type PendingCall = Arc<Mutex<PendingCalls>>;

#[derive(Debug, Default)]
struct PendingCalls {
    answers: HashMap<u64, oneshot::Sender<Result<Value, RpcError>>>,
    next: u64,
    /// Why the connection ended; set once no more answers will arrive.
    over: Option<String>,
}

/// A running server program; dropping it stops the program.
#[derive(Debug)]
pub(super) struct StdioServer {
    outbox: mpsc::Sender<Vec<u8>>,
    waiting: PendingCall,
    stop: CancellationToken,
}

impl Drop for StdioServer {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl StdioServer {
    pub(super) fn start(settings: &ProgramSettings) -> Result<Self, RequestFailure> {
        let gone = |error: std::io::Error| RequestFailure::Gone(format!("it could not be started: {error}"));
        let (theirs, ours) =
            rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).map_err(|error| gone(error.into()))?;
        let input = pipe::Sender::from_owned_fd(ours).map_err(gone)?;
        let (outbox, letters) = mpsc::channel(OUTBOX);
        let (waiting, stop) = (PendingCall::default(), CancellationToken::new());
        tokio::spawn(write(input, letters));
        tokio::spawn(Box::pin(run(
            settings.clone(),
            theirs,
            Arc::clone(&waiting),
            outbox.clone(),
            stop.clone(),
        )));
        Ok(Self { outbox, waiting, stop })
    }

    pub(super) async fn request(
        &self,
        method: &str,
        params: &Value,
        limit: Duration,
    ) -> Result<Value, RequestFailure> {
        let (sender, answer) = oneshot::channel();
        let id = {
            let mut waiting = self.waiting.lock();
            if let Some(why) = &waiting.over {
                return Err(RequestFailure::Gone(why.clone()));
            }
            waiting.next += 1;
            let id = waiting.next;
            waiting.answers.insert(id, sender);
            id
        };
        let exchange = async {
            self.send(&jsonrpc::request(id, method, params)).await?;
            match answer.await {
                Ok(answer) => answer.map_err(RequestFailure::Refused),
                Err(_) => {
                    let why = self.waiting.lock().over.clone();
                    Err(RequestFailure::Gone(why.unwrap_or_else(|| "it ended".to_owned())))
                }
            }
        };
        let result = tokio::time::timeout(limit, exchange).await;
        self.waiting.lock().answers.remove(&id);
        result.unwrap_or(Err(RequestFailure::Silent(limit)))
    }

    pub(super) async fn notify(&self, method: &str) -> Result<(), RequestFailure> {
        self.send(&jsonrpc::notice(method)).await
    }

    async fn send(&self, message: &Value) -> Result<(), RequestFailure> {
        let mut line = message.to_string().into_bytes();
        line.push(b'\n');
        self.outbox.send(line).await.map_err(|_| RequestFailure::Gone("it does not read any more".to_owned()))
    }
}

/// Writes queued messages to the program's stdin, in order.
async fn write(input: pipe::Sender, mut letters: mpsc::Receiver<Vec<u8>>) {
    while let Some(letter) = letters.recv().await {
        let mut rest = letter.as_slice();
        while !rest.is_empty() {
            if input.writable().await.is_err() {
                return;
            }
            match input.try_write(rest) {
                Ok(written) => rest = &rest[written..],
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(_) => return,
            }
        }
    }
}

/// Runs the program until it exits or is stopped, and delivers its messages.
async fn run(
    settings: ProgramSettings,
    input: std::os::fd::OwnedFd,
    waiting: PendingCall,
    outbox: mpsc::Sender<Vec<u8>>,
    stop: CancellationToken,
) {
    let command = command_line(&settings);
    let mut line = Vec::new();
    let mut overlong = false;
    let heard = |bytes: &[u8]| {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            if line.len() + piece.len() > MAX_LINE {
                (overlong, line) = (true, Vec::new());
                stop.cancel();
            }
            if overlong {
                return;
            }
            line.extend_from_slice(piece);
            if line.ends_with(b"\n") {
                deliver(&line, &waiting, &outbox);
                line.clear();
            }
        }
    };
    let why = match std::fs::File::open(&settings.directory) {
        Err(error) => format!("{} cannot be entered: {error}", settings.directory.display()),
        Ok(directory) => {
            let request = CommandRequest {
                command: &command,
                directory: directory.into(),
                input: None,
                environment: &settings.environment,
                sandbox: &Sandbox::Off,
                allowance: ResourceLimits::default(),
            };
            match settings.fork_server.run_reading(request, input, heard, stop.cancelled()).await {
                Ok(finished) => ended(finished.ending, &settings),
                Err(failure) => failure.to_string(),
            }
        }
    };
    let why = if overlong { format!("it sent a message of more than {MAX_LINE} bytes") } else { why };
    let mut waiting = waiting.lock();
    waiting.over = Some(why);
    // Dropping the senders wakes all waiting requests.
    waiting.answers.clear();
}

fn deliver(line: &[u8], waiting: &PendingCall, outbox: &mpsc::Sender<Vec<u8>>) {
    match jsonrpc::read(line) {
        Some(IncomingMessage::Answer(id, answer)) => {
            if let Some(sender) = waiting.lock().answers.remove(&id) {
                // The requester may have given up.
                let _ = sender.send(answer);
            }
        }
        Some(IncomingMessage::Asked(answer)) => {
            let mut letter = answer.to_string().into_bytes();
            letter.push(b'\n');
            // A program that sends requests faster than it reads gets no reply.
            let _ = outbox.try_send(letter);
        }
        Some(IncomingMessage::Notification) | None => {}
    }
}

fn ended(ending: CommandEnd, settings: &ProgramSettings) -> String {
    let how = match ending {
        CommandEnd::Exited(127) => "the program was not found".to_owned(),
        CommandEnd::Exited(code) => format!("it ended with code {code}"),
        CommandEnd::Signalled(signal) => format!("it was ended by signal {signal}"),
    };
    let log = settings.log.as_ref().and_then(|log| std::fs::read(log).ok()).unwrap_or_default();
    let last = String::from_utf8_lossy(&log[log.len().saturating_sub(LOG_SHOWN)..]).trim().to_owned();
    if last.is_empty() { how } else { format!("{how}; it said: {last}") }
}

/// Builds the shell command with every word quoted and stderr redirected to the log.
fn command_line(settings: &ProgramSettings) -> String {
    let quoted = |word: &str| format!("'{}'", word.replace('\'', "'\\''"));
    let words: Vec<String> = settings.command.iter().map(|word| quoted(word)).collect();
    let log = settings.log.as_ref().map_or_else(|| "/dev/null".to_owned(), |log| log.display().to_string());
    format!("exec {} 2>{}", words.join(" "), quoted(&log))
}
