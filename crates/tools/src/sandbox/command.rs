//! A command to run, and how it ended. `command_handle` runs it on Linux, `other_systems` elsewhere.

use std::future::Future;
use std::io;
use std::os::fd::OwnedFd;

use super::limits::{ExceededLimit, ResourceLimits};
use super::protected_paths::report::ProtectionReport;
use super::{CommandEnvironment, ForkServer, Sandbox};

/// A command to run.
#[derive(Debug)]
pub struct CommandRequest<'r> {
    /// Command line for `/bin/sh -c`.
    pub command: &'r str,
    /// Working directory, opened by the workspace and therefore inside it.
    pub directory: OwnedFd,
    /// Standard input; empty if `None`.
    pub input: Option<&'r [u8]>,
    /// Environment variables of the command.
    pub environment: &'r CommandEnvironment,
    /// Sandbox to run in.
    pub sandbox: &'r Sandbox,
    /// Resource limits.
    pub limits: ResourceLimits,
}

/// Why a command could not be run.
#[derive(Debug, thiserror::Error)]
pub enum CommandFailure {
    /// It cannot be passed to the system.
    #[error("The command cannot be run: {0}.")]
    Unencodable(String),
    /// No fork server answers on the socket; commands cannot be started.
    #[error("The process that starts commands is gone; no command can be run until Fusee is started again.")]
    ForkServerGone,
    /// The system refused to start it.
    #[error("The command could not be started: {0}.")]
    NotStarted(io::Error),
    /// Its sandbox could not be set up.
    #[error("The command was not run, because its sandbox could not be set up: {0}.")]
    NotConfined(String),
    /// Its supervisor disappeared, so its result is unknown. The protected paths were checked all the same.
    #[error("The command's supervisor was killed, and the command with it; its effects are unknown.")]
    SupervisorGone(ProtectionReport),
    /// Creating a pipe or socket for it failed.
    #[error("The command could not be set up: {0}.")]
    Setup(#[from] io::Error),
}

/// Exit of a command, or what ended it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandEnd {
    /// It exited with this code.
    Exited(i32),
    /// It was killed by this signal.
    Signalled(i32),
}

/// Result of a command that has ended, with everything it had started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinishedCommand {
    /// How the command ended.
    pub ending: CommandEnd,
    /// Whether it was killed because `stop` completed.
    pub stopped: bool,
    /// Number of processes it had left running, which were killed.
    pub killed_leftovers: u32,
    /// Number of processes that could not be killed.
    pub unkillable: u32,
    /// What it had done to protected paths.
    pub protection: ProtectionReport,
    /// The limit it exceeded, if it was killed for that.
    pub exceeded: Option<ExceededLimit>,
}

/// Streams of a command that replace the usual ones.
#[derive(Default)]
pub(super) struct CommandStreams {
    pub(super) input: Option<OwnedFd>,
    /// Standard error. It follows the input in the message, so it needs one.
    pub(super) errors: Option<OwnedFd>,
}

impl ForkServer {
    /// Runs a command to its end. Its output, both streams in the order in which they were written, is passed
    /// to `output` in chunks. When `stop` completes, or when this future is dropped, the command and all its
    /// descendants are killed.
    pub async fn run(
        &self,
        request: CommandRequest<'_>,
        output: impl FnMut(&[u8]),
        stop: impl Future<Output = ()>,
    ) -> Result<FinishedCommand, CommandFailure> {
        self.run_watched(request, CommandStreams::default(), output, stop).await
    }

    /// Like [`Self::run`], with an input that is written to while the command runs.
    pub(crate) async fn run_reading(
        &self,
        request: CommandRequest<'_>,
        input: OwnedFd,
        output: impl FnMut(&[u8]),
        stop: impl Future<Output = ()>,
    ) -> Result<FinishedCommand, CommandFailure> {
        let streams = CommandStreams { input: Some(input), errors: None };
        self.run_watched(request, streams, output, stop).await
    }
}
