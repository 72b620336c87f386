//! The supervisor pool: a page of memory shared by the main process, the fork server and its supervisors.
//!
//! Most commands come one after the other, and one supervisor is enough for those: it takes the next command
//! when it is done. The fork server therefore sleeps until it is woken through an eventfd, either by the main
//! process when it sent a command and no supervisor is ready, or by a supervisor that took a command and sees
//! another one queued. No command is missed: the main process reads the states after sending, and a
//! supervisor polls the socket after marking itself busy.
//!
//! If the fork server is killed, the supervisor that gets the next command becomes the fork server (`takeover`). Each
//! fork server has slots of its own, so that the states of supervisors which died with an earlier one are forgotten.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::process::Pid;

use crate::sandbox::sys::process::{self, ForkSide};

/// State of a supervisor slot. A slot that is `Gone` is free.
#[repr(u8)]
#[derive(Clone, Copy, PartialEq, Eq)]
enum SlotState {
    Gone = 0,
    Ready = 1,
    /// Has a command and will be ready again.
    Busy = 2,
    /// Has a command and will not be ready again.
    Last = 3,
}

/// The states of all supervisors, and the eventfd that wakes the fork server.
#[derive(Debug)]
pub(crate) struct SupervisorBoard {
    /// [`Self::MAX_SUPERVISORS`] slots for each fork server.
    states: &'static [AtomicU8],
    numbers: &'static BoardNumbers,
    wake_fd: OwnedFd,
}

/// Numbers of the last sweep that was requested and of the last that was done, the number of the current fork server,
/// and the PIDs of all fork servers.
type BoardNumbers = [AtomicU32; 3 + SupervisorBoard::MAX_FORK_SERVERS];

const REQUESTED: usize = 0;
const DONE: usize = 1;
const CURRENT: usize = 2;
const PIDS: usize = 3;

impl SupervisorBoard {
    /// Maximum number of supervisors; further commands wait in the socket.
    const MAX_SUPERVISORS: usize = 4096;

    /// Maximum number of fork servers, one after the other. When the last one dies, no command can be run.
    pub(crate) const MAX_FORK_SERVERS: usize = 16;

    /// Creates an empty board. Called before the fork server is forked, so that all processes share it.
    pub(crate) fn new() -> io::Result<Self> {
        let wake_fd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let states = process::shared_bytes(Self::MAX_FORK_SERVERS * Self::MAX_SUPERVISORS)?;
        let numbers = process::shared_words(PIDS + Self::MAX_FORK_SERVERS)?;
        let numbers = numbers.first_chunk().ok_or(io::ErrorKind::UnexpectedEof)?;
        Ok(Self { states, numbers, wake_fd })
    }

    /// The same board with another descriptor of the eventfd, for a process that renumbers its descriptors.
    pub(crate) fn with_wake_fd(&self, wake_fd: OwnedFd) -> Self {
        Self { wake_fd, ..*self }
    }

    pub(crate) fn wake_fd(&self) -> BorrowedFd<'_> {
        self.wake_fd.as_fd()
    }

    /// Whether a supervisor is ready to take a command now.
    pub(crate) fn has_ready(&self) -> bool {
        self.has_state(SlotState::Ready)
    }

    /// Whether another supervisor has to be forked: none is ready and either a command is waiting or none
    /// will become ready.
    pub(crate) fn needs_supervisor(&self, line: &OwnedFd) -> bool {
        !self.has_state(SlotState::Ready) && (is_readable(line) || !self.has_state(SlotState::Busy))
    }

    fn has_state(&self, does: SlotState) -> bool {
        self.slots().iter().any(|state| state.load(Ordering::SeqCst) == does as u8)
    }

    /// The slots of the current fork server's supervisors.
    fn slots(&self) -> &'static [AtomicU8] {
        let first = self.current() as usize * Self::MAX_SUPERVISORS;
        &self.states[first..first + Self::MAX_SUPERVISORS]
    }

    /// Number of the current fork server; the first one is 0.
    pub(crate) fn current(&self) -> u32 {
        self.numbers[CURRENT].load(Ordering::SeqCst)
    }

    /// PID of the current fork server. `None` for a moment, while another one takes over.
    pub(crate) fn fork_server(&self) -> Option<Pid> {
        Pid::from_raw(self.numbers[PIDS + self.current() as usize].load(Ordering::SeqCst).cast_signed())
    }

    /// Sets the PID of the current fork server.
    pub(crate) fn set_fork_server(&self, pid: Pid) {
        let pid = pid.as_raw_nonzero().get().cast_unsigned();
        self.numbers[PIDS + self.current() as usize].store(pid, Ordering::SeqCst);
    }

    /// Makes this process the fork server after the one with this number.
    pub(crate) fn take_over(&self, from: u32) -> Takeover {
        if from as usize + 1 >= Self::MAX_FORK_SERVERS {
            return Takeover::TooOften;
        }
        if self.numbers[CURRENT].compare_exchange(from, from + 1, Ordering::SeqCst, Ordering::SeqCst).is_err()
        {
            return Takeover::ByAnother;
        }
        self.set_fork_server(rustix::process::getpid());
        Takeover::Done
    }

    /// Whether nobody is left who could take a command: the fork server is dead, and none of its supervisors is or will
    /// be ready.
    pub(crate) fn is_abandoned(&self) -> bool {
        let is_dead = self.fork_server().is_some_and(process::has_ended);
        let takes_commands = [SlotState::Ready as u8, SlotState::Busy as u8];
        // One look at each slot: a supervisor may change between these two states meanwhile.
        is_dead && !self.slots().iter().any(|state| takes_commands.contains(&state.load(Ordering::SeqCst)))
    }

    /// Wakes the fork server.
    pub(crate) fn wake(&self) {
        // Fails only if the counter is full, and then the fork server wakes up anyway.
        let _ = rustix::io::write(&self.wake_fd, &1u64.to_ne_bytes());
    }

    /// Asks the fork server to kill everything that dead supervisors left behind. Returns the number of the
    /// sweep.
    pub(crate) fn request_sweep(&self) -> u32 {
        let number = self.numbers[REQUESTED].fetch_add(1, Ordering::SeqCst).wrapping_add(1);
        self.wake();
        number
    }

    /// Whether the sweep of this number, or a later one, is done.
    pub(crate) fn is_swept(&self, number: u32) -> bool {
        self.numbers[DONE].load(Ordering::SeqCst).wrapping_sub(number) < u32::MAX / 2
    }

    /// The number of the last sweep that was requested, if it is not done.
    pub(crate) fn sweep_due(&self) -> Option<u32> {
        let requested = self.numbers[REQUESTED].load(Ordering::SeqCst);
        (self.numbers[DONE].load(Ordering::SeqCst) != requested).then_some(requested)
    }

    /// Marks a sweep, and all before it, as done.
    pub(crate) fn sweep_done(&self, number: u32) {
        self.numbers[DONE].store(number, Ordering::SeqCst);
    }

    /// Resets the eventfd, so that the next wake-up is seen.
    pub(crate) fn reset_wake(&self) {
        let _ = rustix::io::read(&self.wake_fd, &mut [0u8; 8]);
    }

    fn set(&self, place: usize, state: SlotState) {
        self.states[place].store(state as u8, Ordering::SeqCst);
    }
}

/// Result of trying to become the fork server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Takeover {
    /// This process is the fork server now.
    Done,
    /// Another process is.
    ByAnother,
    /// There have been [`SupervisorBoard::MAX_FORK_SERVERS`] already.
    TooOften,
}

/// A supervisor's own slot on the board.
pub(crate) struct SupervisorSlot<'b> {
    board: &'b SupervisorBoard,
    fork_server: u32,
    place: usize,
}

impl<'b> SupervisorSlot<'b> {
    pub(crate) fn board(&self) -> &'b SupervisorBoard {
        self.board
    }

    /// Number of the fork server that this supervisor belongs to.
    pub(crate) fn fork_server(&self) -> u32 {
        self.fork_server
    }

    /// Marks this supervisor as ready for a command.
    pub(crate) fn ready(&self) {
        self.board.set(self.place, SlotState::Ready);
    }

    /// Marks this supervisor as busy. Wakes the fork server only if a command is waiting and no supervisor is
    /// ready.
    pub(crate) fn mark_busy(&self, line: &OwnedFd) {
        self.board.set(self.place, SlotState::Busy);
        if is_readable(line) && !self.board.has_ready() {
            self.board.wake();
        }
    }

    /// Marks this supervisor as busy with its last command, and wakes the fork server if no other one is
    /// ready for the next.
    pub(crate) fn last(&self) {
        self.board.set(self.place, SlotState::Last);
        if !self.board.has_ready() {
            self.board.wake();
        }
    }

    /// Tries to leave the pool. Returns false, and stays ready, if no other supervisor is ready.
    pub(crate) fn leave(&self) -> bool {
        self.board.set(self.place, SlotState::Last);
        let others = self.board.has_ready();
        if !others {
            self.ready();
        }
        others
    }
}

fn is_readable(line: &OwnedFd) -> bool {
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    matches!(poll(&mut [PollFd::new(line, PollFlags::IN)], Some(&at_once)), Ok(1..))
}

/// The running supervisors, as the fork server knows them.
pub(crate) struct SupervisorPool<'b> {
    board: &'b SupervisorBoard,
    members: Vec<(Pid, usize)>,
}

/// Result of forking one more supervisor.
pub(crate) enum ForkedSupervisor<'b> {
    /// This process is the new supervisor.
    Here(SupervisorSlot<'b>),
    /// This process is the fork server, and a supervisor was forked.
    There,
    /// No free slot, or the fork failed.
    Nobody,
}

impl<'b> SupervisorPool<'b> {
    pub(crate) fn new(board: &'b SupervisorBoard) -> Self {
        Self { board, members: Vec::new() }
    }

    /// Forks one more supervisor.
    pub(crate) fn spawn(&mut self) -> ForkedSupervisor<'b> {
        let is_free = |state: &AtomicU8| state.load(Ordering::SeqCst) == SlotState::Gone as u8;
        let Some(place) = self.board.slots().iter().position(is_free) else {
            return ForkedSupervisor::Nobody;
        };
        let (board, fork_server) = (self.board, self.board.current());
        let place = fork_server as usize * SupervisorBoard::MAX_SUPERVISORS + place;
        // Set before the fork: the child may take a command and be busy before the parent continues.
        self.board.set(place, SlotState::Ready);
        match process::fork() {
            Ok(ForkSide::Child) => ForkedSupervisor::Here(SupervisorSlot { board, fork_server, place }),
            Ok(ForkSide::Parent(pid)) => {
                self.members.push((pid, place));
                ForkedSupervisor::There
            }
            Err(_) => {
                self.board.set(place, SlotState::Gone);
                ForkedSupervisor::Nobody
            }
        }
    }

    /// Removes a supervisor that has ended. Returns whether it belonged to this pool.
    pub(crate) fn remove(&mut self, pid: Pid) -> bool {
        let Some(at) = self.members.iter().position(|(member, _)| *member == pid) else { return false };
        let (_, place) = self.members.swap_remove(at);
        self.board.set(place, SlotState::Gone);
        true
    }

    pub(crate) fn pids(&self) -> Vec<Pid> {
        self.members.iter().map(|(pid, _)| *pid).collect()
    }
}
