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
use rustix::process::{Pid, PidfdFlags, WaitOptions};
use tokio::sync::OnceCell;

use super::child::Descriptors;
use super::crew::{Board, Crew, Enlisted, Post};
use super::group::{self, Surrounding};
use super::probe::Probe;
use super::room;
use super::spec::{self, Hold, Order};
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
    /// Who would take a command.
    board: Board,
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
    let board = Board::new()?;
    let (ours, theirs) =
        rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
            .map_err(io::Error::from)?;
    // An interrupt from the terminal that comes now must not end the keeper before it stopped listening.
    match system::fork_deaf()? {
        Fork::Parent(pid) => {
            let (probed, surrounding) = (OnceCell::new(), OnceCell::new());
            let line = Line { socket: Some(ours), board, pid, probed, surrounding };
            Ok(Keeper { line: Arc::new(line) })
        }
        Fork::Child => {
            drop(ours);
            let code = keep(theirs, &board);
            system::exit_now(code)
        }
    }
}

impl Keeper {
    /// Sends a command on its way. [`Errno::AGAIN`] when the keeper is busy with others; nothing was sent then.
    pub(super) fn send(&self, message: &[u8], descriptors: &[BorrowedFd<'_>]) -> rustix::io::Result<()> {
        let Some(socket) = &self.line.socket else { return Err(Errno::PIPE) };
        send_with_descriptors(socket, message, descriptors, SendFlags::DONTWAIT)?;
        if !self.line.board.anybody_ready() {
            self.line.board.ring();
        }
        Ok(())
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

/// The keeper's whole life: to have a supervisor there for every command, and to end everything when the line is dead.
///
/// A supervisor that is ready reads the line itself, so a command starts without a word between processes. One whose
/// command left nothing behind is ready again: most commands so cost no fork but their own, and wake nobody else.
fn keep(socket: OwnedFd, board: &Board) -> i32 {
    let Ok((line, bell, watch)) = settle_in(socket, board.bell()) else { return 1 };
    let board = board.with_bell(bell);
    let mut crew = Crew::new(&board);
    let keeper = Some(rustix::process::getpid());
    loop {
        let mut missing = false;
        if board.lacks_somebody(&line) {
            match crew.enlist() {
                Enlisted::Here(post) => return stand_ready(&line, keeper, &watch, &post),
                Enlisted::There => {}
                // Commands wait on the line meanwhile.
                Enlisted::Nobody => missing = true,
            }
        }
        let retry = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
        let mut events = [
            PollFd::new(&line, PollFlags::empty()),
            PollFd::from_borrowed_fd(board.bell(), PollFlags::IN),
            PollFd::new(&watch, PollFlags::IN),
        ];
        if poll(&mut events, missing.then_some(&retry)).is_err() {
            continue;
        }
        let hung_up = !events[0].revents().is_empty();
        board.hear();
        look_after(&mut crew, &watch);
        if hung_up {
            sweep::end_children(&watch, &[], |_, _| {});
            return 0;
        }
    }
}

/// How long a supervisor that has done a command waits for another before it asks whether it is needed.
const IDLE: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// A supervisor's life: it waits for a command on the line, sees it through, and waits for the next.
fn stand_ready(line: &OwnedFd, keeper: Option<Pid>, watch: &OwnedFd, post: &Post<'_>) -> i32 {
    if rustix::process::set_child_subreaper(Some(rustix::process::getpid())).is_err() {
        return 1;
    }
    // When memory runs out a command goes, not we: it has this from here. Where it cannot be written, the kernel chooses.
    let _ = std::fs::write("/proc/self/oom_score_adj", "500");
    let mut message = vec![0; spec::MOST];
    let mut used = false;
    loop {
        if used && !matches!(poll(&mut [PollFd::new(line, PollFlags::IN)], Some(&IDLE)), Ok(1..)) {
            if post.leave() {
                return 0;
            }
            // Nobody else is there: as good as one that never had a command.
            used = false;
        }
        // Another may have been faster: a used one must not wait for ever.
        let flags = if used { RecvFlags::DONTWAIT } else { RecvFlags::empty() };
        match receive(line, &mut message, flags) {
            Received::Nothing => {}
            Received::End => return 0,
            Received::Order(_, received) if rustix::process::getppid() != keeper => {
                // Nobody would end what is left of a command if something happened to this process. Whoever sends one more
                // is to see it at once.
                let _ = rustix::net::shutdown(line, rustix::net::Shutdown::Both);
                supervisor::decline(received);
                return 0;
            }
            Received::Order(length, received) => {
                if perform(&message[..length], received, keeper, watch, line, post) == Clean::No {
                    return 0;
                }
                used = true;
                post.ready();
            }
        }
    }
}

/// Does what a message asks for.
fn perform(
    message: &[u8],
    received: Vec<OwnedFd>,
    keeper: Option<Pid>,
    watch: &OwnedFd,
    line: &OwnedFd,
    post: &Post<'_>,
) -> Clean {
    match spec::decode(message) {
        Some(Order::Run(spec)) => {
            let Some(descriptors) = Descriptors::of(&spec, received) else { return Clean::Yes };
            let started = || match spec.hold {
                Hold::Free | Hold::Fence(_) => post.busy(line),
                // It stands in the room's namespaces then.
                Hold::Room(_) => post.last(),
            };
            supervisor::supervise(&spec, descriptors, watch, started, || post.ready())
        }
        Some(Order::MakeRoom(policy)) => {
            post.last();
            room::make(&policy, received);
            Clean::No
        }
        Some(Order::Bound(bounds)) => {
            post.busy(line);
            group::answer(keeper, bounds, received);
            Clean::Yes
        }
        None => Clean::Yes,
    }
}

/// Leaves everything of the parent's behind: its terminal, its session, its open files.
fn settle_in(socket: OwnedFd, bell: BorrowedFd<'_>) -> io::Result<(OwnedFd, OwnedFd, OwnedFd)> {
    rustix::process::setsid()?;
    system::forget_signals();
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    let _ = rustix::thread::set_name(c"fusee-keeper");
    let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::CLOEXEC;
    let null = rustix::fs::open("/dev/null", flags, rustix::fs::Mode::empty())?;
    for number in 0..3 {
        system::duplicate_to(null.as_fd(), number)?;
    }
    // Out of the way first, then under the first free numbers, so that everything from the next one on can be closed.
    let away = |descriptor: BorrowedFd<'_>| rustix::io::fcntl_dupfd_cloexec(descriptor, FIRST_FREE);
    for (descriptor, number) in [(away(socket.as_fd())?, 3), (away(bell)?, 4)] {
        system::duplicate_to(descriptor.as_fd(), number)?;
        std::mem::forget(descriptor);
    }
    std::mem::forget((socket, null));
    close_others();
    let (socket, bell) = (system::own(3), system::own(4));
    for descriptor in [&socket, &bell] {
        rustix::io::fcntl_setfd(descriptor, rustix::io::FdFlags::CLOEXEC)?;
    }
    // The working directory would keep a file system busy that the user may want to unmount.
    let _ = rustix::process::chdir("/");
    Ok((socket, bell, system::watch_children()?))
}

/// The first number after the standard streams, the line and the bell.
const FIRST_FREE: i32 = 5;

fn close_others() {
    if system::close_from(FIRST_FREE.unsigned_abs(), Close::Now).is_ok() {
        return;
    }
    let open: Vec<i32> = std::fs::read_dir("/proc/self/fd")
        .map(|entries| {
            entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
        })
        .unwrap_or_default();
    open.into_iter().filter(|number| *number >= FIRST_FREE).for_each(system::close_number);
}

/// Reaps supervisors that are done. If one was killed, its command's processes are ours now and go as well.
fn look_after(crew: &mut Crew<'_>, watch: &OwnedFd) {
    sweep::drain(watch);
    let mut orphans = false;
    sweep::reap(|pid, status| {
        let known = crew.forget(pid);
        orphans |= status.signaled() || !known;
    });
    if orphans {
        let spared = crew.pids();
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
