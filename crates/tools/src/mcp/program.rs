//! A server as a program: the fork server starts it, so that it ends with this process. rmcp reads its stdout and writes
//! its stdin; its stderr goes to a file.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncWriteExt as _, DuplexStream};
use tokio::net::unix::pipe;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::ProgramSettings;
use crate::sandbox::{CommandEnd, CommandRequest, ResourceLimits, Sandbox};

/// Maximum bytes of a message; a program that sends a longer one is stopped.
pub(super) const MAX_LINE: usize = 16 << 20;
/// Maximum bytes that wait to be read; a program that floods this process with messages is stopped.
const MAX_UNREAD: usize = 2 * MAX_LINE;
/// Bytes between this module and rmcp.
const BUFFER: usize = 64 << 10;
/// Bytes of the program's stderr included in an error.
const LOG_SHOWN: usize = 400;

/// A running server program; dropping it stops the program.
#[derive(Debug)]
pub(super) struct Program {
    stop: CancellationToken,
    /// Why the program ended.
    ended: watch::Receiver<Option<String>>,
}

impl Drop for Program {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Program {
    /// Starts the program; returns it with its stdout and stdin.
    pub(super) fn start(settings: &ProgramSettings) -> std::io::Result<(Self, DuplexStream, pipe::Sender)> {
        let (theirs, ours) = std::io::pipe()?;
        let input = pipe::Sender::from_owned_fd(ours.into())?;
        let (output, mut sink) = tokio::io::duplex(BUFFER);
        let (chunks, mut queue) = mpsc::unbounded_channel::<Vec<u8>>();
        let queue_in = Queue { chunks, unread: Arc::default() };
        let unread = Arc::clone(&queue_in.unread);
        tokio::spawn(async move {
            while let Some(chunk) = queue.recv().await {
                if sink.write_all(&chunk).await.is_err() {
                    return;
                }
                unread.fetch_sub(chunk.len(), Ordering::Relaxed);
            }
        });
        let (stop, (report, ended)) = (CancellationToken::new(), watch::channel(None));
        let (settings, stop_now) = (settings.clone(), stop.clone());
        tokio::spawn(Box::pin(async move {
            let why = run(&settings, theirs.into(), &queue_in, &stop_now).await;
            // Before the queue is dropped: who sees the end of the output finds the reason.
            report.send_replace(Some(why));
        }));
        Ok((Self { stop, ended }, output, input))
    }

    /// Waits for the end of the program; returns the reason.
    pub(super) async fn ended(&self) -> String {
        let mut ended = self.ended.clone();
        let why = ended.wait_for(Option::is_some).await.ok().and_then(|why| why.clone());
        why.unwrap_or_else(|| "it ended".to_owned())
    }
}

/// Output on its way to rmcp.
struct Queue {
    chunks: mpsc::UnboundedSender<Vec<u8>>,
    unread: Arc<AtomicUsize>,
}

/// Runs the program until it exits or is stopped; returns why it ended.
async fn run(settings: &ProgramSettings, input: OwnedFd, queue: &Queue, stop: &CancellationToken) -> String {
    let directory = match std::fs::File::open(&settings.directory) {
        Err(error) => return format!("{} cannot be entered: {error}", settings.directory.display()),
        Ok(directory) => directory.into(),
    };
    let request = CommandRequest {
        command: &command_line(settings),
        directory,
        input: None,
        environment: &settings.environment,
        sandbox: &Sandbox::Off,
        limits: ResourceLimits::default(),
    };
    let (mut line, mut fault) = (0, None);
    let heard = |bytes: &[u8]| {
        if fault.is_some() {
            return;
        }
        let ended = bytes.iter().rposition(|byte| *byte == b'\n');
        line = ended.map_or(line + bytes.len(), |at| bytes.len() - at - 1);
        let unread = queue.unread.fetch_add(bytes.len(), Ordering::Relaxed) + bytes.len();
        if line > MAX_LINE {
            fault = Some(format!("it sent a message of more than {MAX_LINE} bytes"));
        } else if unread > MAX_UNREAD {
            fault = Some("it sends messages faster than they can be read".to_owned());
        } else {
            // Nobody reads any more once the connection is closed.
            let _ = queue.chunks.send(bytes.to_vec());
            return;
        }
        stop.cancel();
    };
    let finished = settings.fork_server.run_reading(request, input, heard, stop.cancelled()).await;
    match (fault, finished) {
        (Some(fault), _) => fault,
        (None, Ok(finished)) => describe(finished.ending, settings),
        (None, Err(failure)) => failure.to_string(),
    }
}

fn describe(ending: CommandEnd, settings: &ProgramSettings) -> String {
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
