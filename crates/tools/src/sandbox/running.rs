//! A command seen from our side: its output as it comes, its end, and ways to bring that about.

use std::ffi::OsStr;
use std::future::Future;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::pin::pin;
use std::time::Duration;

use rustix::fs::MemfdFlags;
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use tokio::io::unix::AsyncFd;
use tokio::net::unix::pipe;

use super::allowance::{Allowance, Exceeded};
use super::fault::Fault;
use super::guard::Undone;
use super::keeper::receive_with_descriptors;
use super::report::Report;
use super::spec::{self, RoomWay, Way};
use super::{Environment, Keeper, Policy, Sandbox, system};

/// How long a busy keeper is waited for. It needs less than a millisecond for a command.
const SEND_TRIES: u32 = 5000;

/// How long a supervisor that was told to end its command is waited for. It gives up earlier itself.
const STOP_PATIENCE: Duration = Duration::from_secs(10);

/// How long an answer of the keeper's may take. A room needs a few milliseconds.
const PATIENCE: Duration = Duration::from_secs(10);

/// Most commands are over within this: their output is then read once, at their end, instead of as it comes.
const MOMENT: Duration = Duration::from_millis(2);

/// How much output is read at once.
const PIECE: usize = 16 * 1024;

/// Longest answer: words about what went wrong.
pub(super) const MOST_ANSWER: usize = 4096;

/// What to run.
#[derive(Debug)]
pub struct CommandRequest<'r> {
    /// A line for `/bin/sh -c`.
    pub command: &'r str,
    /// Where; opened by the workspace, so it is inside.
    pub directory: OwnedFd,
    /// What the command reads; nothing if there is none.
    pub input: Option<&'r [u8]>,
    /// The variables it sees.
    pub environment: &'r Environment,
    /// What holds it.
    pub sandbox: &'r Sandbox,
    /// How much it may use.
    pub allowance: Allowance,
}

/// A command that could not be run.
#[derive(Debug, thiserror::Error)]
pub enum CommandFailure {
    /// It cannot be handed to the system.
    #[error("The command cannot be run: {0}.")]
    Unfit(String),
    /// The keeper is gone.
    #[error("The process that starts commands is gone; no command can be run until Fusee is started again.")]
    KeeperGone,
    /// The system refused to start it.
    #[error("The command could not be started: {0}.")]
    NotStarted(io::Error),
    /// It would not have been confined as its sandbox says.
    #[error("The command was not run, because its sandbox could not be set up: {0}.")]
    NotConfined(String),
    /// Its supervisor disappeared and nobody knows how it ended.
    #[error("The command's supervisor was killed, and the command with it; its effects are unknown.")]
    SupervisorGone,
    /// A pipe or socket for it could not be had.
    #[error("The command could not be set up: {0}.")]
    Setup(#[from] io::Error),
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// By itself, with this code.
    Exited(i32),
    /// By a signal.
    Signalled(i32),
}

/// A command that has ended, with everything it had started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finished {
    /// How.
    pub ending: Ending,
    /// Whether it was ended because `stop` came.
    pub stopped: bool,
    /// Processes it had left running, which were ended.
    pub ended: u32,
    /// Processes that could not be ended.
    pub left: u32,
    /// Whether it had made something that it may not make, which was taken back.
    pub undone: bool,
    /// What it used more of than it may, if that is why it was ended.
    pub exceeded: Option<Exceeded>,
}

impl Keeper {
    /// Runs a command to its end. Its output, both streams in the order they were written, goes to `output` piece by
    /// piece. When `stop` completes, or when this future is dropped, the command and all its descendants are killed.
    pub async fn run(
        &self,
        request: CommandRequest<'_>,
        output: impl FnMut(&[u8]),
        stop: impl Future<Output = ()>,
    ) -> Result<Finished, CommandFailure> {
        self.start(request, None).await?.until_its_end(output, stop).await
    }

    /// The same with an input that somebody writes to while it runs.
    pub(crate) async fn run_reading(
        &self,
        request: CommandRequest<'_>,
        input: OwnedFd,
        output: impl FnMut(&[u8]),
        stop: impl Future<Output = ()>,
    ) -> Result<Finished, CommandFailure> {
        self.start(request, Some(input)).await?.until_its_end(output, stop).await
    }

    async fn start(
        &self,
        request: CommandRequest<'_>,
        stream: Option<OwnedFd>,
    ) -> Result<Running, CommandFailure> {
        let Request { message, doors } = self.put_into_words(&request).await?;
        let setup = |error: Errno| CommandFailure::Setup(error.into());
        let (control, their_control) =
            rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
                .map_err(setup)?;
        let (output, their_output) =
            rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).map_err(setup)?;
        let input = match stream {
            Some(stream) => Some(stream),
            None => request.input.map(holding).transpose()?,
        };
        let mut descriptors = vec![their_control.as_fd(), their_output.as_fd(), request.directory.as_fd()];
        descriptors.extend(doors);
        descriptors.extend(input.as_ref().map(OwnedFd::as_fd));
        self.hand_over(&message, &descriptors).await?;
        rustix::io::ioctl_fionbio(&control, true).map_err(setup)?;
        Ok(Running { control: system::register(control)?, output, _keeper: self.clone() })
    }

    /// The message of a command, and the descriptors of what holds it.
    async fn put_into_words<'r>(&self, request: &CommandRequest<'r>) -> Result<Request<'r>, CommandFailure> {
        let words = |way: Way<'_>, environment: &Environment| {
            spec::encode(way, &request.allowance, OsStr::new(request.command), environment.variables())
                .map_err(|error| CommandFailure::Unfit(error.to_string()))
        };
        match request.sandbox {
            Sandbox::Off => {
                Ok(Request { message: words(Way::Free, request.environment)?, doors: Vec::new() })
            }
            Sandbox::Namespaces(room) => {
                let standing = room.standing(self).await?;
                let way = Way::Room(RoomWay {
                    users: standing.users(),
                    layers: standing.layers(),
                    network: room.policy().network,
                    owner: room.policy().owner,
                    directory: &path_of(&request.directory)?,
                    absent: &room.absent(standing),
                });
                Ok(Request { message: words(way, request.environment)?, doors: standing.doors().collect() })
            }
            Sandbox::Landlock(fence) => {
                let standing = fence.standing().await?;
                let Policy { network, owner, .. } = *fence.policy();
                let way = Way::Fence { network, owner, guarded: &fence.guarded() };
                let message = words(way, &standing.environment(request.environment))?;
                Ok(Request { message, doors: vec![standing.ruleset()] })
            }
        }
    }

    /// Gives the keeper something to do that has an answer, and waits for it.
    pub(super) async fn ask(&self, message: &[u8]) -> Result<(Vec<u8>, Vec<OwnedFd>), CommandFailure> {
        let (control, theirs) =
            rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
                .map_err(io::Error::from)?;
        self.hand_over(message, &[theirs.as_fd()]).await?;
        drop(theirs);
        let control = system::register(control)?;
        let answer = async {
            loop {
                let mut ready = control.readable().await?;
                let received = ready.try_io(|control| {
                    let mut answer = vec![0; MOST_ANSWER];
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
        let late =
            |_| CommandFailure::NotConfined(format!("it was not ready after {} s", PATIENCE.as_secs()));
        Ok(tokio::time::timeout(PATIENCE, answer).await.map_err(late)??)
    }

    /// Gives the keeper something to do, waiting while it is busy with others.
    pub(super) async fn hand_over(
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
                    return Err(CommandFailure::KeeperGone);
                }
                Err(Errno::MSGSIZE) => {
                    return Err(CommandFailure::Unfit(spec::SpecError::TooLong.to_string()));
                }
                Err(error) => return Err(CommandFailure::Setup(error.into())),
            }
        }
        Err(CommandFailure::KeeperGone)
    }
}

/// A command as it is sent.
struct Request<'r> {
    message: Vec<u8>,
    doors: Vec<BorrowedFd<'r>>,
}

/// A command between its start and its end.
struct Running {
    control: AsyncFd<OwnedFd>,
    output: OwnedFd,
    /// Without it the keeper would end, and the command with it.
    _keeper: Keeper,
}

impl Running {
    async fn until_its_end(
        self,
        mut output: impl FnMut(&[u8]),
        stop: impl Future<Output = ()>,
    ) -> Result<Finished, CommandFailure> {
        let mut stopped = false;
        let report = match tokio::time::timeout(MOMENT, self.report()).await {
            Ok(report) => report?,
            Err(_) => self.streamed(&mut output, stop, &mut stopped).await?,
        };
        self.rest(&mut output)?;
        match report {
            Some(Report::Ended { ending, ended, left, undone, exceeded }) => {
                let undone = undone == Undone::Something;
                Ok(Finished { ending, stopped, ended, left, undone, exceeded })
            }
            Some(Report::NotStarted(error)) if error == Errno::OWNERDEAD.raw_os_error() => {
                Err(CommandFailure::KeeperGone)
            }
            Some(Report::NotStarted(error)) => {
                Err(CommandFailure::NotStarted(io::Error::from_raw_os_error(error)))
            }
            Some(Report::NotConfined(step, error)) => {
                let fault = Fault { step, path: None, error: io::Error::from_raw_os_error(error) };
                Err(CommandFailure::NotConfined(fault.to_string()))
            }
            None => Err(CommandFailure::SupervisorGone),
        }
    }

    /// The output of a command that takes its time, as it comes, until the supervisor's word.
    async fn streamed(
        &self,
        output: &mut impl FnMut(&[u8]),
        stop: impl Future<Output = ()>,
        stopped: &mut bool,
    ) -> Result<Option<Report>, CommandFailure> {
        let pipe = pipe::Receiver::from_owned_fd(self.output.try_clone()?)?;
        let mut stop = pin!(stop);
        let mut patience = pin!(tokio::time::sleep(STOP_PATIENCE));
        let mut open = true;
        let mut buffer = vec![0u8; PIECE];
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
                    patience.as_mut().reset(tokio::time::Instant::now() + STOP_PATIENCE);
                    // If it is gone already, its last word is still to be read.
                    let _ = rustix::net::send(self.control.get_ref(), b"K", SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
                }
                () = &mut patience, if *stopped => return Ok(None),
            }
        }
    }

    /// What was written before the end is in the pipe, even if somebody outside still holds its other side. Read without
    /// asking the runtime, which may not have heard of it yet.
    fn rest(&self, output: &mut impl FnMut(&[u8])) -> io::Result<()> {
        rustix::io::ioctl_fionbio(&self.output, true)?;
        let mut buffer = vec![0u8; PIECE];
        loop {
            match rustix::io::read(&self.output, &mut buffer) {
                Err(Errno::INTR) => {}
                Ok(0) | Err(_) => return Ok(()),
                Ok(length) => output(&buffer[..length]),
            }
        }
    }

    /// The supervisor's word; `None` if it ended without one.
    async fn report(&self) -> io::Result<Option<Report>> {
        loop {
            let mut ready = self.control.readable().await?;
            let received = ready.try_io(|control| {
                let mut message = [0u8; Report::LENGTH];
                let (_, length) =
                    rustix::net::recv(control.get_ref(), &mut message[..], RecvFlags::DONTWAIT)?;
                Ok((message, length))
            });
            match received {
                Ok(Ok((_, 0))) => return Ok(None),
                Ok(Ok((message, length))) => {
                    if let Some(report) = Report::decode(&message[..length]) {
                        return Ok(Some(report));
                    }
                }
                // It ended without having read our word; its own follows.
                Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionReset => {}
                Ok(Err(error)) => return Err(error),
                Err(_would_block) => {}
            }
        }
    }
}

/// Where a directory is, by name. The name is looked up again inside of the sandbox, and what is found compared.
fn path_of(directory: &OwnedFd) -> io::Result<PathBuf> {
    std::fs::read_link(format!("/proc/self/fd/{}", directory.as_raw_fd()))
}

/// A file in memory that holds `input`: unlike a pipe it takes everything at once and nobody has to feed it.
fn holding(input: &[u8]) -> io::Result<OwnedFd> {
    let descriptor = rustix::fs::memfd_create("stdin", MemfdFlags::CLOEXEC)?;
    let mut file = std::fs::File::from(descriptor);
    io::Write::write_all(&mut file, input)?;
    io::Seek::rewind(&mut file)?;
    Ok(file.into())
}
