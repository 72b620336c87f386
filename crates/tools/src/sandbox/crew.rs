//! Who is there to take a command: a page of memory that we, the keeper and its supervisors share.
//!
//! Most commands come one after the other, and for those one supervisor is enough: it takes the next when it is done.
//! So the keeper sleeps until somebody rings: we, when a command was sent and nobody is ready, or a supervisor that
//! took one and sees another behind it. Between the two none is missed: we look at the board after sending, and a
//! supervisor looks at the line after saying on the board that it is busy.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU8, Ordering};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::process::Pid;

use super::system::{self, Fork};

/// What a supervisor does. Nobody is there where the board has another number.
#[repr(u8)]
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Gone = 0,
    Ready = 1,
    /// It will be ready again.
    Busy = 2,
    /// It is busy and will not be ready again.
    Last = 3,
}

/// What every supervisor does, and the bell by the keeper's bed.
#[derive(Debug)]
pub(super) struct Board {
    states: &'static [AtomicU8],
    bell: OwnedFd,
}

impl Board {
    /// Supervisors at once; commands beyond that wait on the line. A page holds that many.
    const MOST: usize = 4096;

    /// A board with nobody on it. Made before the keeper is forked, so that it is everybody's.
    pub(super) fn new() -> io::Result<Self> {
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { states: system::shared_bytes(Self::MOST)?, bell })
    }

    /// The same board by another descriptor of the bell: a process that closes its files gives it a new number.
    pub(super) fn with_bell(&self, bell: OwnedFd) -> Self {
        Self { states: self.states, bell }
    }

    pub(super) fn bell(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    /// Whether somebody would take a command now.
    pub(super) fn anybody_ready(&self) -> bool {
        self.anybody(State::Ready)
    }

    /// Whether one more is needed: nobody would take what waits on the line, or nobody ever would take anything.
    pub(super) fn lacks_somebody(&self, line: &OwnedFd) -> bool {
        !self.anybody(State::Ready) && (is_readable(line) || !self.anybody(State::Busy))
    }

    fn anybody(&self, does: State) -> bool {
        self.states.iter().any(|state| state.load(Ordering::SeqCst) == does as u8)
    }

    /// Wakes the keeper.
    pub(super) fn ring(&self) {
        // Full only if it has been rung very often and not yet heard once.
        let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
    }

    /// Takes note of the bell, so that it can be heard again.
    pub(super) fn hear(&self) {
        let _ = rustix::io::read(&self.bell, &mut [0u8; 8]);
    }

    fn set(&self, place: usize, state: State) {
        self.states[place].store(state as u8, Ordering::SeqCst);
    }

    fn is_free(&self, place: usize) -> bool {
        self.states[place].load(Ordering::SeqCst) == State::Gone as u8
    }
}

/// A supervisor's own place on the board.
pub(super) struct Post<'b> {
    board: &'b Board,
    place: usize,
}

impl Post<'_> {
    /// Says that this one takes commands again.
    pub(super) fn ready(&self) {
        self.board.set(self.place, State::Ready);
    }

    /// Says that this one has a command. The keeper hears of it only if another waits on the line for nobody.
    pub(super) fn busy(&self, line: &OwnedFd) {
        self.board.set(self.place, State::Busy);
        if is_readable(line) && !self.board.anybody_ready() {
            self.board.ring();
        }
    }

    /// Says that this one has a command and will not take another: the next is to be there in time.
    pub(super) fn last(&self) {
        self.board.set(self.place, State::Last);
        if !self.board.anybody_ready() {
            self.board.ring();
        }
    }

    /// Whether this one can go without being missed.
    pub(super) fn leave(&self) -> bool {
        self.board.set(self.place, State::Last);
        let others = self.board.anybody_ready();
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

/// The supervisors there are, as the keeper knows them.
pub(super) struct Crew<'b> {
    board: &'b Board,
    members: Vec<(Pid, usize)>,
}

/// What came of an attempt to have one more.
pub(super) enum Enlisted<'b> {
    /// We are the new one.
    Here(Post<'b>),
    /// There is one more.
    There,
    /// There are too many processes.
    Nobody,
}

impl<'b> Crew<'b> {
    pub(super) fn new(board: &'b Board) -> Self {
        Self { board, members: Vec::new() }
    }

    /// Forks one more supervisor.
    pub(super) fn enlist(&mut self) -> Enlisted<'b> {
        let Some(place) = (0..Board::MOST).find(|place| self.board.is_free(*place)) else {
            return Enlisted::Nobody;
        };
        // Before the fork: it may take a command and be busy before we are back here.
        self.board.set(place, State::Ready);
        match system::fork() {
            Ok(Fork::Child) => Enlisted::Here(Post { board: self.board, place }),
            Ok(Fork::Parent(pid)) => {
                self.members.push((pid, place));
                Enlisted::There
            }
            Err(_) => {
                self.board.set(place, State::Gone);
                Enlisted::Nobody
            }
        }
    }

    /// Forgets one that has ended. Whether it was one of ours.
    pub(super) fn forget(&mut self, pid: Pid) -> bool {
        let Some(at) = self.members.iter().position(|(member, _)| *member == pid) else { return false };
        let (_, place) = self.members.swap_remove(at);
        self.board.set(place, State::Gone);
        true
    }

    pub(super) fn pids(&self) -> Vec<Pid> {
        self.members.iter().map(|(pid, _)| *pid).collect()
    }
}
