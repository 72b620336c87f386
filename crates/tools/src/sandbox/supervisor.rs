//! One process for each command: starts it, waits for it, and leaves nothing of it behind.
//!
//! It ends in one of three ways: the command ended, somebody asked on the control socket for its end, or the other
//! end of that socket is gone, which is how our own death looks from here, however it came.

use std::cell::Cell;
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{RecvFlags, SendFlags};
use rustix::process::{Pid, WaitStatus};

use super::child::{self, Descriptors};
use super::spec::{Report, Spec};
use super::sweep::{self, Swept};
use super::{Ending, system};

/// Runs a command from its start to the end of its last descendant. `started` is called once it runs.
pub(super) fn supervise(spec: &Spec<'_>, descriptors: Descriptors, watch: &OwnedFd, started: impl FnOnce()) {
    if hung_up(&descriptors.control) {
        return started();
    }
    let start = system::start(|| child::become_command(spec, &descriptors));
    started();
    let Descriptors { control, output, directory, input } = descriptors;
    // The reader of the output must see its end when the command's own copies are gone.
    drop((output, directory, input));
    let command = match start {
        Ok(command) => command,
        Err(error) => return tell(&control, Report::NotStarted(error.raw_os_error().unwrap_or(0))),
    };

    let status: Cell<Option<WaitStatus>> = Cell::new(None);
    let mut note = |pid: Pid, ended: WaitStatus| {
        if pid == command {
            status.set(Some(ended));
        }
    };
    let mut swept = Swept::default();
    if wait_for_end(command, &control, watch, &mut note) {
        let ended_by_itself = status.get().is_some();
        swept = sweep::end_children(watch, &[], &mut note);
        // The command itself is not counted among what it left behind.
        swept.ended = swept.ended.saturating_sub(u32::from(!ended_by_itself));
    }
    let ending = match status.get().map(|status| (status.exit_status(), status.terminating_signal())) {
        Some((Some(code), _)) => Ending::Exited(code),
        Some((None, signal)) => Ending::Signalled(signal.unwrap_or(0)),
        // It could not be killed, which is in the count of those left.
        None => Ending::Signalled(0),
    };
    tell(&control, Report::Ended { ending, ended: swept.ended, left: swept.left });
}

/// Waits until the command has ended or is to end. Whether there are other children.
fn wait_for_end(
    command: Pid,
    control: &OwnedFd,
    watch: &OwnedFd,
    note: &mut impl FnMut(Pid, WaitStatus),
) -> bool {
    loop {
        let mut ended = false;
        let any = sweep::reap(|pid, status| {
            ended |= pid == command;
            note(pid, status);
        });
        if ended || !any {
            return any;
        }
        let mut events = [PollFd::new(watch, PollFlags::IN), PollFd::new(control, PollFlags::IN)];
        if poll(&mut events, None).is_err() {
            continue;
        }
        if !events[1].revents().is_empty() {
            // Read, because a socket that is closed with something unread takes our last words with it.
            let _ = rustix::net::recv(control, &mut [0u8; 8][..], RecvFlags::DONTWAIT);
            return true;
        }
        sweep::drain(watch);
    }
}

/// Whether nobody is interested any more.
fn hung_up(control: &OwnedFd) -> bool {
    let mut byte = [0u8; 1];
    matches!(rustix::net::recv(control, &mut byte[..], RecvFlags::DONTWAIT | RecvFlags::PEEK), Ok((_, 0)))
}

fn tell(control: &OwnedFd, report: Report) {
    // If nobody listens any more, nobody needs to know.
    let _ = rustix::net::send(control.as_fd(), &report.encode(), SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
}
