//! A command as seen from the main process: its output as it arrives, its end, and ways to stop it.

use std::ffi::OsStr;
use std::future::Future;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::time::Duration;

use rustix::fs::MemfdFlags;
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use tokio::io::unix::AsyncFd;
use tokio::net::unix::pipe;

use super::command::{CommandFailure, CommandRequest, CommandStreams, FinishedCommand};
use super::error::{SandboxError, SetupStep};
use super::fork_server::receive_with_descriptors;
use super::protected_paths::{self, report::ProtectionReport};
use super::{CommandEnvironment, ForkServer, NamespaceSandbox, Policy, Sandbox};
use crate::sandbox::fork_server::exit_report::ExitReport;
use crate::sandbox::fork_server::protocol::{self, EncodedConfinement, NamespaceJoin};
use crate::sandbox::protected_paths::settings_backup::SettingsBackup;
use crate::sandbox::sys::process;

/// Number of attempts, 1 ms apart, to send to a busy fork server. It needs less than a millisecond per
/// command.
const SEND_TRIES: u32 = 5000;

/// Time limit for a supervisor that was asked to stop its command. It gives up earlier by itself.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

/// Time limit for an answer of the fork server. Creating a namespace sandbox takes a few milliseconds.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Most commands end within this time; their output is then read once, at the end, instead of as it arrives.
const STREAM_AFTER: Duration = Duration::from_millis(2);

/// Size of the read buffer for output, in bytes.
const READ_BUFFER: usize = 16 * 1024;

/// Maximum size of an answer in bytes: an error message.
pub(super) const MAX_ANSWER: usize = 4096;

impl ForkServer {
    pub(super) async fn run_watched(
        &self,
        request: CommandRequest<'_>,
        streams: CommandStreams,
        output: impl FnMut(&[u8]),
        stop: impl Future<Output = ()>,
    ) -> Result<FinishedCommand, CommandFailure> {
        let after = AfterSupervisor::new(&request)?;
        let watched = match request.sandbox.repositories() {
            Some(repositories) => Some(repositories.begin().await),
            None => None,
        };
        let number = self.number();
        let ended = self.start(request, streams).await?.wait_to_end(output, stop).await;
        let mut ended = self.checked(ended, after, number).await;
        if let (
            Ok(FinishedCommand { protection, .. }) | Err(CommandFailure::SupervisorGone(protection)),
            Some(watched),
        ) = (&mut ended, watched)
        {
            protection.add(watched.end().await);
        }
        ended
    }

    /// Checks the protected paths if the supervisor died before it did.
    async fn checked(
        &self,
        ended: Result<FinishedCommand, CommandFailure>,
        after: AfterSupervisor<'_>,
        fork_server: u32,
    ) -> Result<FinishedCommand, CommandFailure> {
        let Err(CommandFailure::SupervisorGone(_)) = ended else { return ended };
        // What still runs could change them again.
        let swept = self.sweep(fork_server).await;
        let mut protection = after.check();
        if !swept {
            let left = io::Error::other("processes of the command may still be running");
            after.paths().iter().for_each(|path| protection.note_failure(path, &left));
        }
        Err(CommandFailure::SupervisorGone(protection))
    }

    async fn start(
        &self,
        request: CommandRequest<'_>,
        streams: CommandStreams,
    ) -> Result<CommandHandle, CommandFailure> {
        let EncodedRequest { message, handles } = self.encode_command(&request).await?;
        let setup = |error: Errno| CommandFailure::Setup(error.into());
        let (control, their_control) =
            rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
                .map_err(setup)?;
        let (output, their_output) =
            rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).map_err(setup)?;
        let input = match streams.input {
            Some(input) => Some(input),
            None => request.input.map(input_with).transpose()?,
        };
        let mut descriptors = vec![their_control.as_fd(), their_output.as_fd(), request.directory.as_fd()];
        descriptors.extend(handles);
        descriptors.extend(input.as_ref().map(OwnedFd::as_fd));
        descriptors.extend(streams.errors.as_ref().map(OwnedFd::as_fd));
        self.send_with_retry(&message, &descriptors).await?;
        rustix::io::ioctl_fionbio(&control, true).map_err(setup)?;
        Ok(CommandHandle { control: process::register(control)?, output, _fork_server: self.clone() })
    }

    /// Encodes a command, and collects the descriptors of its sandbox.
    async fn encode_command<'r>(
        &self,
        request: &CommandRequest<'r>,
    ) -> Result<EncodedRequest<'r>, CommandFailure> {
        let words = |confinement: EncodedConfinement<'_>, environment: &CommandEnvironment| {
            protocol::encode(
                confinement,
                &request.limits,
                OsStr::new(request.command),
                environment.variables(),
            )
            .map_err(|error| CommandFailure::Unencodable(error.to_string()))
        };
        match request.sandbox {
            Sandbox::Off => Ok(EncodedRequest {
                message: words(EncodedConfinement::Unsandboxed, request.environment)?,
                handles: Vec::new(),
            }),
            Sandbox::Namespaces(namespaces) => {
                let built = namespaces.built(self).await?;
                let absent: Vec<_> = namespaces
                    .missing_protected_paths(built)
                    .into_iter()
                    .map(|(path, on_create)| (namespaces.policy().inside(path), on_create))
                    .collect();
                let absent: Vec<_> =
                    absent.iter().map(|(path, on_create)| (path.as_path(), *on_create)).collect();
                let confinement = EncodedConfinement::Namespaces(NamespaceJoin {
                    users: built.users(),
                    layers: built.layers(),
                    network: namespaces.policy().network,
                    owner: namespaces.policy().owner,
                    substituted: namespaces.policy().substitute.is_some(),
                    directory: &namespaces.policy().inside(&path_of(&request.directory)?),
                    absent: &absent,
                });
                let environment = request.environment.clone().with(built.proxy_variables());
                let message = words(confinement, &environment)?;
                Ok(EncodedRequest { message, handles: built.descriptors().collect() })
            }
            Sandbox::Landlock(landlock) => {
                let built = landlock.built().await?;
                let Policy { network, owner, .. } = *landlock.policy();
                let confinement =
                    EncodedConfinement::Landlock { network, owner, guarded: &landlock.guarded() };
                let message = words(confinement, &built.environment(request.environment))?;
                Ok(EncodedRequest { message, handles: vec![built.ruleset()] })
            }
        }
    }

    /// Sends a request to the fork server and waits for the answer.
    pub(super) async fn ask(&self, message: &[u8]) -> Result<(Vec<u8>, Vec<OwnedFd>), CommandFailure> {
        let (control, theirs) =
            rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
                .map_err(io::Error::from)?;
        self.send_with_retry(message, &[theirs.as_fd()]).await?;
        drop(theirs);
        let control = process::register(control)?;
        let answer = async {
            loop {
                let mut ready = control.readable().await?;
                let received = ready.try_io(|control| {
                    let mut answer = vec![0; MAX_ANSWER];
                    let (length, descriptors) =
                        receive_with_descriptors(control.get_ref(), &mut answer, RecvFlags::DONTWAIT)?;
                    answer.truncate(length);
                    Ok((answer, descriptors))
                });
                if let Ok(received) = received {
                    return received;
                }
            }
        };
        let late = |_| CommandFailure::NotConfined(format!("it was not ready after {} s", TIMEOUT.as_secs()));
        Ok(tokio::time::timeout(TIMEOUT, answer).await.map_err(late)??)
    }

    /// Sends a message to the fork server, retrying while it is busy.
    pub(super) async fn send_with_retry(
        &self,
        message: &[u8],
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<(), CommandFailure> {
        for _ in 0..SEND_TRIES {
            match self.send(message, descriptors) {
                Ok(()) => return Ok(()),
                Err(Errno::AGAIN | Errno::NOBUFS | Errno::TOOMANYREFS) => {
                    tokio::time::sleep(Duration::from_millis(1)).await
                }
                Err(Errno::INTR) => {}
                Err(Errno::PIPE | Errno::CONNRESET | Errno::NOTCONN) => {
                    return Err(CommandFailure::ForkServerGone);
                }
                Err(Errno::MSGSIZE) => {
                    return Err(CommandFailure::Unencodable(protocol::SpecError::TooLong.to_string()));
                }
                Err(error) => return Err(CommandFailure::Setup(error.into())),
            }
        }
        Err(CommandFailure::ForkServerGone)
    }
}

/// What this process needs to check the protected paths in place of a supervisor that died.
enum AfterSupervisor<'r> {
    /// Nothing is protected.
    Unsandboxed,
    /// Existing paths were mounted read-only; only what was created has to be reverted.
    Namespaces(&'r NamespaceSandbox),
    /// Existing paths could be changed as well.
    Landlock(SettingsBackup, &'r Policy),
}

impl<'r> AfterSupervisor<'r> {
    fn new(request: &CommandRequest<'r>) -> Result<Self, CommandFailure> {
        Ok(match request.sandbox {
            Sandbox::Off => Self::Unsandboxed,
            Sandbox::Namespaces(namespaces) => Self::Namespaces(namespaces),
            Sandbox::Landlock(landlock) => {
                let failed = |error| {
                    CommandFailure::NotConfined(SetupStep::BackUpSettings.failed()(error).to_string())
                };
                Self::Landlock(
                    SettingsBackup::create(&landlock.guarded()).map_err(failed)?,
                    landlock.policy(),
                )
            }
        })
    }

    fn check(&self) -> ProtectionReport {
        match self {
            Self::Unsandboxed => ProtectionReport::default(),
            Self::Namespaces(namespaces) => {
                let kept = |git: &Path| namespaces.policy().guarded.iter().any(|guarded| guarded.path == git);
                protected_paths::check(namespaces.absent_paths().into_iter(), &kept)
            }
            Self::Landlock(backup, _) => backup.restore(),
        }
    }

    fn paths(&self) -> &[PathBuf] {
        match self {
            Self::Unsandboxed => &[],
            Self::Namespaces(namespaces) => &namespaces.policy().write,
            Self::Landlock(_, policy) => &policy.write,
        }
    }
}

/// An encoded command.
struct EncodedRequest<'r> {
    message: Vec<u8>,
    handles: Vec<BorrowedFd<'r>>,
}

/// A command that is running.
struct CommandHandle {
    control: AsyncFd<OwnedFd>,
    output: OwnedFd,
    /// Keeps the fork server alive: it would end, and the command with it.
    _fork_server: ForkServer,
}

impl CommandHandle {
    async fn wait_to_end(
        self,
        mut output: impl FnMut(&[u8]),
        stop: impl Future<Output = ()>,
    ) -> Result<FinishedCommand, CommandFailure> {
        let mut stopped = false;
        let report = match tokio::time::timeout(STREAM_AFTER, self.report()).await {
            Ok(report) => report?,
            Err(_) => self.streamed(&mut output, stop, &mut stopped).await?,
        };
        self.drain_output(&mut output)?;
        match report {
            Some(ExitReport::Ended { ending, killed_leftovers, unkillable, protection, exceeded }) => {
                Ok(FinishedCommand { ending, stopped, killed_leftovers, unkillable, protection, exceeded })
            }
            Some(ExitReport::NotStarted(error)) if error == Errno::OWNERDEAD.raw_os_error() => {
                Err(CommandFailure::ForkServerGone)
            }
            Some(ExitReport::NotStarted(error)) => {
                Err(CommandFailure::NotStarted(io::Error::from_raw_os_error(error)))
            }
            Some(ExitReport::NotConfined(step, error)) => {
                let fault = SandboxError { step, path: None, error: io::Error::from_raw_os_error(error) };
                Err(CommandFailure::NotConfined(fault.to_string()))
            }
            None => Err(CommandFailure::SupervisorGone(ProtectionReport::default())),
        }
    }

    /// Streams the output of a command that runs longer, until the supervisor's report.
    async fn streamed(
        &self,
        output: &mut impl FnMut(&[u8]),
        stop: impl Future<Output = ()>,
        stopped: &mut bool,
    ) -> Result<Option<ExitReport>, CommandFailure> {
        let pipe = pipe::Receiver::from_owned_fd(self.output.try_clone()?)?;
        let mut stop = pin!(stop);
        let mut patience = pin!(tokio::time::sleep(STOP_TIMEOUT));
        let mut open = true;
        let mut buffer = vec![0u8; READ_BUFFER];
        loop {
            tokio::select! {
                ready = pipe.readable(), if open => {
                    ready?;
                    match pipe.try_read(&mut buffer) {
                        Ok(0) => open = false,
                        Ok(length) => output(&buffer[..length]),
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                        Err(error) => return Err(error.into()),
                    }
                }
                report = self.report() => return Ok(report?),
                () = &mut stop, if !*stopped => {
                    *stopped = true;
                    patience.as_mut().reset(tokio::time::Instant::now() + STOP_TIMEOUT);
                    // If it is gone already, its report is still to be read.
                    let _ = rustix::net::send(self.control.get_ref(), b"K", SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
                }
                () = &mut patience, if *stopped => return Ok(None),
            }
        }
    }

    /// Reads what was written before the end and is still in the pipe, even if a process outside holds the
    /// write end. Bypasses the runtime, which may not know yet that the pipe is readable.
    fn drain_output(&self, output: &mut impl FnMut(&[u8])) -> io::Result<()> {
        rustix::io::ioctl_fionbio(&self.output, true)?;
        let mut buffer = vec![0u8; READ_BUFFER];
        loop {
            match rustix::io::read(&self.output, &mut buffer) {
                Err(Errno::INTR) => {}
                Ok(0) | Err(_) => return Ok(()),
                Ok(length) => output(&buffer[..length]),
            }
        }
    }

    /// The supervisor's report; `None` if it ended without one.
    async fn report(&self) -> io::Result<Option<ExitReport>> {
        loop {
            let mut ready = self.control.readable().await?;
            let received = ready.try_io(|control| {
                let mut message = [0u8; ExitReport::MAX_LENGTH];
                let (_, length) =
                    rustix::net::recv(control.get_ref(), &mut message[..], RecvFlags::DONTWAIT)?;
                Ok((message, length))
            });
            match received {
                Ok(Ok((_, 0))) => return Ok(None),
                Ok(Ok((message, length))) => {
                    if let Some(report) = ExitReport::decode(&message[..length]) {
                        return Ok(Some(report));
                    }
                }
                // It ended without reading our request; its report follows.
                Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionReset => {}
                Ok(Err(error)) => return Err(error),
                Err(_would_block) => {}
            }
        }
    }
}

/// Path of an open directory. It is resolved again inside the sandbox and the result compared with the
/// descriptor.
fn path_of(directory: &OwnedFd) -> io::Result<PathBuf> {
    std::fs::read_link(format!("/proc/self/fd/{}", directory.as_raw_fd()))
}

/// A memfd with the content `input`. Unlike a pipe it takes everything at once and needs no writer.
pub(super) fn input_with(input: &[u8]) -> io::Result<OwnedFd> {
    let descriptor = rustix::fs::memfd_create("stdin", MemfdFlags::CLOEXEC)?;
    let mut file = std::fs::File::from(descriptor);
    io::Write::write_all(&mut file, input)?;
    io::Seek::rewind(&mut file)?;
    Ok(file.into())
}
