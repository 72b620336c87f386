//! Takes over from a fork server that was killed.
//!
//! Its supervisors live on and finish their commands. The first of them that gets another command becomes the fork
//! server and leaves the command to a new supervisor. Others that were ready as well run one more command, as a fork
//! server for that command alone, and end. Either way a command never runs without a parent that ends what it leaves
//! behind.

use std::os::fd::OwnedFd;

use rustix::net::Shutdown;
use rustix::process::WaitOptions;

use super::supervisor_pool::{ForkedSupervisor, SupervisorBoard, SupervisorPool, SupervisorSlot, Takeover};
use super::{adopt_orphans, keep_supervisors, perform, reap, supervisor, supervisor_loop};
use crate::sandbox::fork_server::supervisor::SupervisorState;
use crate::sandbox::sys::process::{self, ForkSide};

/// Continues a supervisor that received this message and whose fork server is dead. Returns its exit code.
pub(super) fn run(
    message: &[u8],
    received: Vec<OwnedFd>,
    line: &OwnedFd,
    watch: &OwnedFd,
    slot: &SupervisorSlot<'_>,
) -> i32 {
    let board = slot.board();
    match board.take_over(slot.fork_server()) {
        Takeover::Done => become_fork_server(message, received, line, watch, board),
        Takeover::ByAnother => run_one(message, received, line, watch, slot),
        Takeover::TooOften => {
            // Shut the socket down so that the next sender notices at once.
            let _ = rustix::net::shutdown(line, Shutdown::Both);
            supervisor::decline(received);
            0
        }
    }
}

fn become_fork_server(
    message: &[u8],
    received: Vec<OwnedFd>,
    line: &OwnedFd,
    watch: &OwnedFd,
    board: &SupervisorBoard,
) -> i32 {
    let mut pool = SupervisorPool::new(board);
    let own = Some(rustix::process::getpid());
    match pool.spawn() {
        ForkedSupervisor::Here(slot) => {
            if !adopt_orphans()
                || perform(message, received, own, watch, line, &slot) == SupervisorState::Spent
            {
                return 0;
            }
            slot.ready();
            return supervisor_loop(line, own, watch, &slot);
        }
        ForkedSupervisor::There => drop(received),
        ForkedSupervisor::Nobody => supervisor::decline(received),
    }
    keep_supervisors(line, watch, board, pool)
}

fn run_one(
    message: &[u8],
    received: Vec<OwnedFd>,
    line: &OwnedFd,
    watch: &OwnedFd,
    slot: &SupervisorSlot<'_>,
) -> i32 {
    match process::fork() {
        Ok(ForkSide::Child) => {
            if adopt_orphans() {
                perform(message, received, slot.board().fork_server(), watch, line, slot);
            }
            0
        }
        Ok(ForkSide::Parent(child)) => {
            // The peer sees the end of the command's connection only when nothing of the command is left.
            let _control = received.into_iter().next();
            if rustix::process::waitpid(Some(child), WaitOptions::empty()).is_ok() {
                reap::end_children(watch, &[], |_, _| {});
            }
            0
        }
        Err(_) => {
            supervisor::decline(received);
            0
        }
    }
}
