//! The process that starts commands: forked first thing in `main`, and gone when we are.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
};
use rustix::pipe::PipeFlags;
use rustix::process::{Pid, PidfdFlags, WaitOptions};
use tokio::sync::OnceCell;

use super::child::Descriptors;
use super::group::{self, Surrounding};
use super::probe::Probe;
use super::room;
use super::spec::{self, Order};
use super::supervisor::{self, Clean};
use super::sweep;
use super::system::{self, Close, Fork};

/// How long the end of a keeper is waited for.
const END_PATIENCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };

/// No keeper could be started.
#[derive(Debug, thiserror::Error)]
pub enum KeeperError {
    /// There are threads already, whose state a fork would copy in the middle of anything.
    #[error("the keeper must be started first in `main`, but there are {threads} threads already")]
    TooLate {
        /// How many.
        threads: usize,
    },
    /// The system refused.
    #[error("the process that keeps commands cannot be started")]
    System(#[from] io::Error),
}

/// A connection to the process that starts commands. When the last clone is dropped, or this process ends in any way,
/// the keeper ends every command and then itself.
#[derive(Clone, Debug)]
pub struct Keeper {
    line: Arc<Line>,
}

#[derive(Debug)]
struct Line {
    socket: Option<OwnedFd>,
    pid: Pid,
    /// What was found out about this machine.
    probed: OnceCell<Probe>,
    /// What bounds all commands together, or why nothing does.
    surrounding: OnceCell<Result<Surrounding, String>>,
}

/// Starts the keeper. To be called first in `main`, before any thread or runtime: it forks.
pub fn init() -> Result<Keeper, KeeperError> {
    let threads = std::fs::read_dir("/proc/self/task").map_or(1, Iterator::count);
    if threads > 1 {
        return Err(KeeperError::TooLate { threads });
    }
    let (ours, theirs) =
        rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
            .map_err(io::Error::from)?;
    // An interrupt from the terminal that comes now must not end the keeper before it stopped listening.
    match system::fork_deaf()? {
        Fork::Parent(pid) => {
            let line =
                Line { socket: Some(ours), pid, probed: OnceCell::new(), surrounding: OnceCell::new() };
            Ok(Keeper { line: Arc::new(line) })
        }
        Fork::Child => {
            drop(ours);
            let code = keep(theirs);
            system::exit_now(code)
        }
    }
}

impl Keeper {
    /// Sends a command on its way. [`Errno::AGAIN`] when the keeper is busy with others; nothing was sent then.
    pub(super) fn send(&self, message: &[u8], descriptors: &[BorrowedFd<'_>]) -> rustix::io::Result<()> {
        let Some(socket) = &self.line.socket else { return Err(Errno::PIPE) };
        send_with_descriptors(socket, message, descriptors, SendFlags::DONTWAIT)
    }

    pub(super) fn probed(&self) -> &OnceCell<Probe> {
        &self.line.probed
    }

    pub(super) fn surrounding(&self) -> &OnceCell<Result<Surrounding, String>> {
        &self.line.surrounding
    }

    /// The keeper's process id, for those who want to show it.
    #[must_use]
    pub fn process_id(&self) -> i32 {
        self.line.pid.as_raw_nonzero().get()
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        drop(self.socket.take());
        // Nothing of a command outlives us, so its end is waited for, without a delay of our own. It comes within
        // moments; a keeper that is stuck is left to the system.
        if let Ok(end) = rustix::process::pidfd_open(self.pid, PidfdFlags::empty()) {
            let _ = poll(&mut [PollFd::new(&end, PollFlags::IN)], Some(&END_PATIENCE));
        }
        let _ = rustix::process::waitpid(Some(self.pid), WaitOptions::NOHANG);
        if let Some(Ok(surrounding)) = self.surrounding.get() {
            surrounding.remove();
        }
    }
}

/// The keeper's whole life: to have a supervisor ready at all times, and to end everything when the line is dead.
///
/// A supervisor that is ready reads the line itself, so a command starts without a word between processes. Only
/// then it tells the keeper, which makes the next one ready while the command runs already. One whose command left
/// nothing behind is ready again: most commands so cost no fork but their own.
fn keep(socket: OwnedFd) -> i32 {
    let Ok((line, watch)) = settle_in(socket) else { return 1 };
    let Ok((told, tell)) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK) else {
        return 1;
    };
    let mut crew = Crew::default();
    loop {
        if !crew.is_ready() {
            match system::fork() {
                Ok(Fork::Child) => return stand_ready(line, &watch, &tell),
                Ok(Fork::Parent(pid)) => crew.0.push((pid, State::Ready)),
                // Too many processes: commands wait on the line meanwhile.
                Err(_) => {}
            }
        }
        let retry = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
        let mut events = [
            PollFd::new(&line, PollFlags::empty()),
            PollFd::new(&told, PollFlags::IN),
            PollFd::new(&watch, PollFlags::IN),
        ];
        if poll(&mut events, (!crew.is_ready()).then_some(&retry)).is_err() {
            continue;
        }
        let hung_up = !events[0].revents().is_empty();
        // Before the dead are looked at: one that took a command may have ended already.
        crew.listen(&told);
        look_after(&mut crew, &watch);
        if hung_up {
            sweep::end_children(&watch, &[], |_, _| {});
            return 0;
        }
    }
}

/// The supervisors there are.
#[derive(Default)]
struct Crew(Vec<(Pid, State)>);

/// What a supervisor does, in the words in which it tells the keeper.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Ready = 1,
    Busy = 2,
}

impl State {
    /// The process and its state in five bytes, which a pipe keeps together.
    fn tell(self, pipe: &OwnedFd) {
        let mut word = [self as u8; 5];
        word[..4].copy_from_slice(&rustix::process::getpid().as_raw_nonzero().get().to_ne_bytes());
        // A pipe that is full holds thousands of words; the keeper then only forks one more than it must.
        let _ = rustix::io::write(pipe, &word);
    }
}

impl Crew {
    fn is_ready(&self) -> bool {
        self.0.iter().any(|(_, state)| *state == State::Ready)
    }

    /// Takes in what supervisors told.
    fn listen(&mut self, told: &OwnedFd) {
        let mut words = [0u8; 5 * 64];
        while let Ok(length @ 1..) = rustix::io::read(told, &mut words) {
            for word in words[..length].chunks_exact(5) {
                let pid = i32::from_ne_bytes([word[0], word[1], word[2], word[3]]);
                let state = if word[4] == State::Ready as u8 { State::Ready } else { State::Busy };
                if let Some(known) = self.0.iter_mut().find(|(known, _)| known.as_raw_nonzero().get() == pid)
                {
                    known.1 = state;
                }
            }
        }
    }

    /// Forgets one that has ended. Whether it was one of ours.
    fn forget(&mut self, pid: Pid) -> bool {
        let before = self.0.len();
        self.0.retain(|(known, _)| *known != pid);
        self.0.len() < before
    }
}

/// How long a supervisor that has done a command waits for another; the one that never had any waits for ever.
const IDLE: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// A supervisor's life: it waits for a command on the line, sees it through, and waits for the next.
fn stand_ready(line: OwnedFd, watch: &OwnedFd, tell: &OwnedFd) -> i32 {
    if rustix::process::set_child_subreaper(Some(rustix::process::getpid())).is_err() {
        return 1;
    }
    let keeper = rustix::process::getppid();
    let mut message = vec![0; spec::MOST];
    let (mut line, mut used) = (Some(line), false);
    while let Some(open) = &line {
        if used && !matches!(poll(&mut [PollFd::new(open, PollFlags::IN)], Some(&IDLE)), Ok(1..)) {
            return 0;
        }
        // Another may have been faster: a used one must not wait for ever.
        let flags = if used { RecvFlags::DONTWAIT } else { RecvFlags::empty() };
        match receive(open, &mut message, flags) {
            Received::Nothing => {}
            Received::End => return 0,
            Received::Order(length, received) => {
                if rustix::process::getppid() != keeper {
                    // Nobody makes another one ready: this is the last command, and whoever sends one more is to see it.
                    line = None;
                }
                let started = || State::Busy.tell(tell);
                let clean = match spec::decode(&message[..length]) {
                    Some(Order::Run(spec)) => match Descriptors::of(&spec, received) {
                        Some(descriptors) => supervisor::supervise(&spec, descriptors, watch, started),
                        None => Clean::Yes,
                    },
                    Some(Order::MakeRoom(policy)) => {
                        started();
                        room::make(&policy, received);
                        Clean::No
                    }
                    Some(Order::Bound(bounds)) => {
                        started();
                        group::answer(keeper, bounds, received);
                        Clean::Yes
                    }
                    None => Clean::Yes,
                };
                if clean == Clean::No {
                    return 0;
                }
                used = true;
                State::Ready.tell(tell);
            }
        }
    }
    0
}

/// Leaves everything of the parent's behind: its terminal, its session, its open files.
fn settle_in(socket: OwnedFd) -> io::Result<(OwnedFd, OwnedFd)> {
    rustix::process::setsid()?;
    system::forget_signals();
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    let _ = rustix::thread::set_name(c"fusee-keeper");
    let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::CLOEXEC;
    let null = rustix::fs::open("/dev/null", flags, rustix::fs::Mode::empty())?;
    for number in 0..3 {
        system::duplicate_to(null.as_fd(), number)?;
    }
    // Under the first free number, so that everything from the next one on can be closed.
    let socket = {
        system::duplicate_to(socket.as_fd(), 3)?;
        std::mem::forget((socket, null));
        close_others();
        system::own(3)
    };
    rustix::io::fcntl_setfd(&socket, rustix::io::FdFlags::CLOEXEC)?;
    // The working directory would keep a file system busy that the user may want to unmount.
    let _ = rustix::process::chdir("/");
    Ok((socket, system::watch_children()?))
}

fn close_others() {
    if system::close_from(4, Close::Now).is_ok() {
        return;
    }
    let open: Vec<i32> = std::fs::read_dir("/proc/self/fd")
        .map(|entries| {
            entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
        })
        .unwrap_or_default();
    open.into_iter().filter(|number| *number > 3).for_each(system::close_number);
}

/// Reaps supervisors that are done. If one was killed, its command's processes are ours now and go as well.
fn look_after(crew: &mut Crew, watch: &OwnedFd) {
    sweep::drain(watch);
    let mut orphans = false;
    sweep::reap(|pid, status| {
        let known = crew.forget(pid);
        orphans |= status.signaled() || !known;
    });
    if orphans {
        let spared: Vec<Pid> = crew.0.iter().map(|(pid, _)| *pid).collect();
        // A supervisor that ends meanwhile is reaped by the sweep.
        sweep::end_children(watch, &spared, |pid, _| {
            crew.forget(pid);
        });
    }
}

enum Received {
    Order(usize, Vec<OwnedFd>),
    /// Nothing yet.
    Nothing,
    /// The other end is gone.
    End,
}

fn receive(socket: &OwnedFd, message: &mut [u8], flags: RecvFlags) -> Received {
    match receive_with_descriptors(socket, message, flags) {
        Ok((length, descriptors)) if length > 0 => Received::Order(length, descriptors),
        Err(Errno::INTR | Errno::AGAIN) => Received::Nothing,
        Ok(_) | Err(_) => Received::End,
    }
}

/// A message with the descriptors that came beside it.
pub(super) fn receive_with_descriptors(
    socket: impl AsFd,
    message: &mut [u8],
    flags: RecvFlags,
) -> rustix::io::Result<(usize, Vec<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(spec::MOST_DESCRIPTORS))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let flags = flags | RecvFlags::CMSG_CLOEXEC;
    let received = rustix::net::recvmsg(socket, &mut [IoSliceMut::new(message)], &mut ancillary, flags)?;
    let descriptors = ancillary.drain().flat_map(|part| match part {
        RecvAncillaryMessage::ScmRights(descriptors) => descriptors.collect::<Vec<OwnedFd>>(),
        _ => Vec::new(),
    });
    Ok((received.bytes, descriptors.collect()))
}

/// Sends a message with descriptors beside it.
pub(super) fn send_with_descriptors(
    socket: impl AsFd,
    message: &[u8],
    descriptors: &[BorrowedFd<'_>],
    flags: SendFlags,
) -> rustix::io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(spec::MOST_DESCRIPTORS))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(Errno::INVAL);
    }
    rustix::net::sendmsg(socket, &[IoSlice::new(message)], &mut ancillary, flags | SendFlags::NOSIGNAL)
        .map(drop)
}
