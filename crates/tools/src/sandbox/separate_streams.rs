//! Commands whose standard error is read separately from their output, as the protocol of hooks needs it.
//! `command` has the usual ones.

use std::future::Future;
use std::io;

use tokio::net::unix::pipe;
use tokio_util::sync::CancellationToken;

use super::command::CommandStreams;
#[cfg(target_os = "linux")]
use super::command_handle::input_with;
#[cfg(not(target_os = "linux"))]
use super::other_systems::input_with;
use super::{CommandFailure, CommandRequest, FinishedCommand, ForkServer};

/// Size of the read buffer in bytes.
const READ_BUFFER: usize = 16 * 1024;

impl ForkServer {
    /// Like [`Self::run`], with standard error passed to `errors` and not to `output`.
    pub async fn run_with_errors(
        &self,
        request: CommandRequest<'_>,
        output: impl FnMut(&[u8]),
        errors: impl FnMut(&[u8]),
        stop: impl Future<Output = ()>,
    ) -> Result<FinishedCommand, CommandFailure> {
        let (ours, theirs) = io::pipe()?;
        let input = input_with(request.input.unwrap_or_default())?;
        let streams = CommandStreams { input: Some(input), errors: Some(theirs.into()) };
        let reader = pipe::Receiver::from_owned_fd(ours.into())?;
        let ended = CancellationToken::new();
        let run = async {
            let result = self.run_watched(request, streams, output, stop).await;
            ended.cancel();
            result
        };
        let (result, ()) = tokio::join!(run, read(&reader, errors, &ended));
        result
    }
}

/// Reads until the end of the stream, or until the command has ended and nothing is left in the pipe: a process
/// that escaped could keep the other end open.
async fn read(pipe: &pipe::Receiver, mut errors: impl FnMut(&[u8]), ended: &CancellationToken) {
    let mut buffer = vec![0u8; READ_BUFFER];
    loop {
        tokio::select! {
            biased;
            ready = pipe.readable() => if ready.is_err() { return },
            () = ended.cancelled() => {}
        }
        match pipe.try_read(&mut buffer) {
            Ok(0) => return,
            Ok(length) => errors(&buffer[..length]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                if ended.is_cancelled() {
                    return;
                }
            }
            Err(_) => return,
        }
    }
}
