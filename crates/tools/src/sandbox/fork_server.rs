//! The fork server: the process that starts commands, forked first thing in `main` and gone when the main
//! process is.

pub(crate) mod exec;
pub(crate) mod exit_report;
pub(crate) mod protocol;
pub(crate) mod reap;
pub(crate) mod supervisor;
pub(crate) mod supervisor_pool;
mod takeover;
pub(crate) mod usage;

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
};
use rustix::process::{Pid, PidfdFlags, WaitOptions};
use tokio::sync::OnceCell;

use super::cgroup::{self, Cgroup};
use super::probe::SandboxProbe;
use crate::sandbox::fork_server::exec::Descriptors;
use crate::sandbox::fork_server::protocol::{DecodedConfinement, DecodedRequest};
use crate::sandbox::fork_server::supervisor::SupervisorState;
use crate::sandbox::fork_server::supervisor_pool::{
    ForkedSupervisor, SupervisorBoard, SupervisorPool, SupervisorSlot,
};
use crate::sandbox::namespaces::sandbox;

use crate::sandbox::sys::process::{self, CloseRange, ForkSide};

/// Time limit for the fork server to end.
const END_TIMEOUT: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };

/// Number of times, 1 ms apart, that the end of a sweep is looked for: longer than a sweep takes at most.
const SWEEP_TRIES: u32 = 8000;

/// Why the fork server could not be started.
#[derive(Debug, thiserror::Error)]
pub enum ForkServerError {
    /// Other threads exist already, and a fork would copy their state at an arbitrary point.
    #[error("the fork server must be started first in `main`, but there are already {threads} threads")]
    TooLate {
        /// Number of threads.
        threads: usize,
    },
    /// A system call failed.
    #[error("cannot start the fork server")]
    System(#[from] io::Error),
}

/// Handle to the fork server. When the last clone is dropped, or this process ends in any way, the fork
/// server kills every command and then exits.
#[derive(Clone, Debug)]
pub struct ForkServer {
    socket: Arc<RequestSocket>,
}

#[derive(Debug)]
struct RequestSocket {
    socket: Option<OwnedFd>,
    /// States of the supervisors.
    board: SupervisorBoard,
    /// PID of the first fork server, a child of this process.
    pid: Pid,
    /// Result of probing this machine.
    probed: OnceCell<SandboxProbe>,
    /// The cgroup around all commands, or why there is none.
    cgroup: OnceCell<Result<Cgroup, String>>,
}

/// Starts the fork server. Must be called first in `main`, before any thread or runtime exists, because it
/// forks.
pub fn init() -> Result<ForkServer, ForkServerError> {
    let threads = std::fs::read_dir("/proc/self/task").map_or(1, Iterator::count);
    if threads > 1 {
        return Err(ForkServerError::TooLate { threads });
    }
    let board = SupervisorBoard::new()?;
    let (ours, theirs) =
        rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
            .map_err(io::Error::from)?;
    // A terminal interrupt at this point must not kill the fork server before it ignores such signals.
    match process::fork_signals_blocked()? {
        ForkSide::Parent(pid) => {
            board.set_fork_server(pid);
            let (probed, cgroup) = (OnceCell::new(), OnceCell::new());
            let socket = RequestSocket { socket: Some(ours), board, pid, probed, cgroup };
            Ok(ForkServer { socket: Arc::new(socket) })
        }
        ForkSide::Child => {
            drop(ours);
            let code = serve(theirs, &board);
            process::exit_now(code)
        }
    }
}

impl ForkServer {
    /// Sends a message. Fails with [`Errno::AGAIN`] if the fork server is busy; nothing was sent then.
    pub(super) fn send(&self, message: &[u8], descriptors: &[BorrowedFd<'_>]) -> rustix::io::Result<()> {
        let Some(socket) = &self.socket.socket else { return Err(Errno::PIPE) };
        send_with_descriptors(socket, message, descriptors, SendFlags::DONTWAIT)?;
        if !self.socket.board.has_ready() {
            if self.socket.board.is_abandoned() {
                return Err(Errno::PIPE);
            }
            self.socket.board.wake();
        }
        Ok(())
    }

    /// Number of the current fork server. It grows when another process takes over.
    pub(super) fn number(&self) -> u32 {
        self.socket.board.current()
    }

    /// Waits until nothing is left of commands whose supervisor has died. `number` is the fork server's when the command
    /// was sent. Returns whether it is certain that nothing is left.
    pub(super) async fn sweep(&self, number: u32) -> bool {
        let board = &self.socket.board;
        let sweep = board.request_sweep();
        for _ in 0..SWEEP_TRIES {
            if board.is_swept(sweep) {
                // A later fork server is not the parent of what was started before it.
                return board.current() == number;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        false
    }

    pub(super) fn probed(&self) -> &OnceCell<SandboxProbe> {
        &self.socket.probed
    }

    pub(super) fn parent_cgroup(&self) -> &OnceCell<Result<Cgroup, String>> {
        &self.socket.cgroup
    }

    /// PID of the fork server. Another one takes over when it dies.
    #[must_use]
    pub fn process_id(&self) -> i32 {
        self.socket.board.fork_server().unwrap_or(self.socket.pid).as_raw_nonzero().get()
    }
}

impl Drop for RequestSocket {
    fn drop(&mut self) {
        drop(self.socket.take());
        // No process of a command may outlive this one, so wait for the fork server to end. That takes
        // moments; one that is stuck is left to the system.
        let pid = self.board.fork_server().unwrap_or(self.pid);
        if let Ok(end) = rustix::process::pidfd_open(pid, PidfdFlags::empty()) {
            let _ = poll(&mut [PollFd::new(&end, PollFlags::IN)], Some(&END_TIMEOUT));
        }
        let _ = rustix::process::waitpid(Some(self.pid), WaitOptions::NOHANG);
        if let Some(Ok(cgroup)) = self.cgroup.get() {
            cgroup.remove();
        }
    }
}

/// Body of the first fork server.
fn serve(socket: OwnedFd, board: &SupervisorBoard) -> i32 {
    let Ok((line, wake_fd, watch)) = daemonize(socket, board.wake_fd()) else { return 1 };
    let board = board.with_wake_fd(wake_fd);
    keep_supervisors(&line, &watch, &board, SupervisorPool::new(&board))
}

/// Main loop of the fork server: keeps a supervisor ready for the next command, and kills everything when the
/// socket is closed.
///
/// Ready supervisors read the socket themselves, so a command starts without communication between processes.
/// A supervisor whose command left nothing behind becomes ready again: most commands cost no fork but their
/// own and wake no other process.
fn keep_supervisors(
    line: &OwnedFd,
    watch: &OwnedFd,
    board: &SupervisorBoard,
    mut pool: SupervisorPool<'_>,
) -> i32 {
    let fork_server = Some(rustix::process::getpid());
    loop {
        let mut missing = false;
        if board.needs_supervisor(line) {
            match pool.spawn() {
                ForkedSupervisor::Here(slot) => return supervisor_loop(line, fork_server, watch, &slot),
                ForkedSupervisor::There => {}
                // Commands wait in the socket meanwhile.
                ForkedSupervisor::Nobody => missing = true,
            }
        }
        let retry = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
        let mut events = [
            PollFd::new(line, PollFlags::empty()),
            PollFd::from_borrowed_fd(board.wake_fd(), PollFlags::IN),
            PollFd::new(watch, PollFlags::IN),
        ];
        if poll(&mut events, missing.then_some(&retry)).is_err() {
            continue;
        }
        let hung_up = !events[0].revents().is_empty();
        board.reset_wake();
        // Read before sweeping: what is requested meanwhile is done in the next round.
        let due = board.sweep_due();
        reap_supervisors(&mut pool, watch, due.is_some());
        due.into_iter().for_each(|number| board.sweep_done(number));
        if hung_up {
            reap::end_children(watch, &[], |_, _| {});
            return 0;
        }
    }
}

/// Time that a used supervisor waits for another command before it tries to leave the pool.
const IDLE: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// Main loop of a supervisor: waits for a command on the socket, runs it, and waits for the next.
fn supervisor_loop(
    line: &OwnedFd,
    fork_server: Option<Pid>,
    watch: &OwnedFd,
    slot: &SupervisorSlot<'_>,
) -> i32 {
    if !adopt_orphans() {
        return 1;
    }
    // If memory runs out, the kernel should kill a command first; commands inherit this. If it cannot be
    // written, the kernel chooses.
    let _ = std::fs::write("/proc/self/oom_score_adj", "500");
    let mut message = vec![0; protocol::MAX_MESSAGE];
    let mut used = false;
    loop {
        if used && !matches!(poll(&mut [PollFd::new(line, PollFlags::IN)], Some(&IDLE)), Ok(1..)) {
            if slot.leave() {
                return 0;
            }
            // No other supervisor is ready: continue like one that never had a command.
            used = false;
        }
        // Another supervisor may have taken the message: a used one must not block forever.
        let flags = if used { RecvFlags::DONTWAIT } else { RecvFlags::empty() };
        match receive(line, &mut message, flags) {
            Received::Nothing => {}
            Received::End => return 0,
            // Without the fork server, the processes of a command would be left behind if this process died.
            Received::Message(length, received) if rustix::process::getppid() != fork_server => {
                return takeover::run(&message[..length], received, line, watch, slot);
            }
            Received::Message(length, received) => {
                if perform(&message[..length], received, fork_server, watch, line, slot)
                    == SupervisorState::Spent
                {
                    return 0;
                }
                used = true;
                slot.ready();
            }
        }
    }
}

/// Makes orphaned descendants of this process its children. A forked process does not inherit this.
fn adopt_orphans() -> bool {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).is_ok()
}

/// Handles a message.
fn perform(
    message: &[u8],
    received: Vec<OwnedFd>,
    fork_server: Option<Pid>,
    watch: &OwnedFd,
    line: &OwnedFd,
    slot: &SupervisorSlot<'_>,
) -> SupervisorState {
    match protocol::decode(message) {
        Some(DecodedRequest::Run(spec)) => {
            let Some(descriptors) = Descriptors::new(&spec, received) else {
                return SupervisorState::Reusable;
            };
            let started = || match spec.confinement {
                DecodedConfinement::Unsandboxed | DecodedConfinement::Landlock(_) => slot.mark_busy(line),
                // The supervisor is in the sandbox's namespaces then.
                DecodedConfinement::Namespaces(_) => slot.last(),
            };
            supervisor::supervise(&spec, descriptors, watch, started, || slot.ready())
        }
        Some(DecodedRequest::CreateNamespaces(policy)) => {
            slot.last();
            sandbox::make(&policy, received);
            SupervisorState::Spent
        }
        Some(DecodedRequest::LimitAll(bounds)) => {
            slot.mark_busy(line);
            cgroup::handle_limit_request(fork_server, bounds, received);
            SupervisorState::Reusable
        }
        None => SupervisorState::Reusable,
    }
}

/// Detaches from the parent: its terminal, session and open files.
fn daemonize(socket: OwnedFd, wake_fd: BorrowedFd<'_>) -> io::Result<(OwnedFd, OwnedFd, OwnedFd)> {
    rustix::process::setsid()?;
    process::reset_signals();
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    let _ = rustix::thread::set_name(c"fusee-fork");
    let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::CLOEXEC;
    let null = rustix::fs::open("/dev/null", flags, rustix::fs::Mode::empty())?;
    for number in 0..3 {
        process::duplicate_to(null.as_fd(), number)?;
    }
    // Move them out of the way, then to the first free numbers, so that everything above can be closed.
    let away = |descriptor: BorrowedFd<'_>| rustix::io::fcntl_dupfd_cloexec(descriptor, FIRST_FREE);
    for (descriptor, number) in [(away(socket.as_fd())?, 3), (away(wake_fd)?, 4)] {
        process::duplicate_to(descriptor.as_fd(), number)?;
        std::mem::forget(descriptor);
    }
    std::mem::forget((socket, null));
    close_others();
    let (socket, wake_fd) = (process::take_ownership(3), process::take_ownership(4));
    for descriptor in [&socket, &wake_fd] {
        rustix::io::fcntl_setfd(descriptor, rustix::io::FdFlags::CLOEXEC)?;
    }
    // The working directory would keep a file system busy that the user may want to unmount.
    let _ = rustix::process::chdir("/");
    Ok((socket, wake_fd, process::watch_children()?))
}

/// First number after the standard streams, the socket and the eventfd.
const FIRST_FREE: i32 = 5;

fn close_others() {
    if process::close_from(FIRST_FREE.unsigned_abs(), CloseRange::Now).is_ok() {
        return;
    }
    let open: Vec<i32> = std::fs::read_dir("/proc/self/fd")
        .map(|entries| {
            entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
        })
        .unwrap_or_default();
    open.into_iter().filter(|number| *number >= FIRST_FREE).for_each(process::close_number);
}

/// Reaps supervisors that have ended. If one was killed, its command's processes are now children of this
/// process and are killed as well, in any case if a sweep was requested.
fn reap_supervisors(pool: &mut SupervisorPool<'_>, watch: &OwnedFd, requested: bool) {
    reap::drain(watch);
    let mut orphans = requested;
    reap::reap(|pid, status| {
        let known = pool.remove(pid);
        orphans |= status.signaled() || !known;
    });
    if orphans {
        let spared = pool.pids();
        // The sweep also reaps supervisors that end meanwhile.
        reap::end_children(watch, &spared, |pid, _| {
            pool.remove(pid);
        });
    }
}

enum Received {
    Message(usize, Vec<OwnedFd>),
    /// No message is available yet.
    Nothing,
    /// The peer is gone.
    End,
}

fn receive(socket: &OwnedFd, message: &mut [u8], flags: RecvFlags) -> Received {
    match receive_with_descriptors(socket, message, flags) {
        Ok((length, descriptors)) if length > 0 => Received::Message(length, descriptors),
        Err(Errno::INTR | Errno::AGAIN) => Received::Nothing,
        Ok(_) | Err(_) => Received::End,
    }
}

/// Receives a message with the descriptors attached to it.
pub(super) fn receive_with_descriptors(
    socket: impl AsFd,
    message: &mut [u8],
    flags: RecvFlags,
) -> rustix::io::Result<(usize, Vec<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(protocol::MAX_DESCRIPTORS))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let flags = flags | RecvFlags::CMSG_CLOEXEC;
    let received = rustix::net::recvmsg(socket, &mut [IoSliceMut::new(message)], &mut ancillary, flags)?;
    let descriptors = ancillary.drain().flat_map(|part| match part {
        RecvAncillaryMessage::ScmRights(descriptors) => descriptors.collect::<Vec<OwnedFd>>(),
        _ => Vec::new(),
    });
    Ok((received.bytes, descriptors.collect()))
}

/// Sends a message with descriptors attached.
pub(super) fn send_with_descriptors(
    socket: impl AsFd,
    message: &[u8],
    descriptors: &[BorrowedFd<'_>],
    flags: SendFlags,
) -> rustix::io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(protocol::MAX_DESCRIPTORS))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(Errno::INVAL);
    }
    rustix::net::sendmsg(socket, &[IoSlice::new(message)], &mut ancillary, flags | SendFlags::NOSIGNAL)
        .map(drop)
}
