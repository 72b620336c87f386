//! Ending every descendant of this process, also those that left their process group and session.
//!
//! This process is a subreaper: whoever loses its parent becomes our child. So only children are ever killed, whose
//! process ids cannot be reused before we reap them; their children then become ours, and the next round finds them.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};

/// A process that cannot be killed (another user's, or stuck in the kernel) must not hold us for ever.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a sweep did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Swept {
    pub(super) ended: u32,
    pub(super) left: u32,
}

/// Reaps children that have ended; each is given to `reaped`. Whether there are children still.
pub(super) fn reap(mut reaped: impl FnMut(Pid, WaitStatus)) -> bool {
    loop {
        match rustix::process::wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) => reaped(pid, status),
            Ok(None) => return true,
            Err(Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}

/// Kills and reaps children, and what becomes a child by that, until none is left but `spared`.
pub(super) fn end_children(
    watch: &OwnedFd,
    spared: &[Pid],
    mut reaped: impl FnMut(Pid, WaitStatus),
) -> Swept {
    let mut swept = Swept::default();
    let deadline = Instant::now() + PATIENCE;
    let own_group = rustix::process::getpgid(None).ok();
    loop {
        let any = reap(|pid, status| {
            swept.ended += u32::from(status.terminating_signal() == Some(Signal::KILL.as_raw()));
            reaped(pid, status);
        });
        if !any {
            return swept;
        }
        let children: Vec<Pid> = children().into_iter().filter(|pid| !spared.contains(pid)).collect();
        if children.is_empty() && !spared.is_empty() {
            return swept;
        }
        for &child in &children {
            // The whole group at once: a process that forks faster than we list cannot fork out of its group unseen.
            if let Ok(group) = rustix::process::getpgid(Some(child))
                && Some(group) != own_group
            {
                let _ = rustix::process::kill_process_group(group, Signal::KILL);
            }
            let _ = rustix::process::kill_process(child, Signal::KILL);
        }
        if Instant::now() > deadline {
            swept.left = u32::try_from(children.len()).unwrap_or(u32::MAX);
            return swept;
        }
        wait_for_an_end(watch, Duration::from_millis(20));
    }
}

/// Waits until a child has ended, not longer than `most`.
fn wait_for_an_end(watch: &OwnedFd, most: Duration) {
    let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(most.subsec_nanos()) };
    let _ = poll(&mut [PollFd::new(watch, PollFlags::IN)], Some(&timeout));
    drain(watch);
}

/// Empties the descriptor that tells of children; what happened is found by reaping.
pub(super) fn drain(watch: &OwnedFd) {
    let mut buffer = [0u8; 1024];
    while rustix::io::read(watch, &mut buffer).is_ok_and(|length| length > 0) {}
}

/// The children of this process, which has one thread.
fn children() -> Vec<Pid> {
    match std::fs::read_to_string("/proc/thread-self/children") {
        Ok(list) => {
            list.split_ascii_whitespace().filter_map(|word| Pid::from_raw(word.parse().ok()?)).collect()
        }
        // The kernel was built without it.
        Err(_) => children_by_scan(),
    }
}

/// The same by asking every process for its parent.
fn children_by_scan() -> Vec<Pid> {
    let own = rustix::process::getpid().as_raw_nonzero().get();
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let parent_of = |pid: i32| -> Option<i32> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name in parentheses may hold anything; the state and the parent follow its last parenthesis.
        stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?.parse().ok()
    };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
        .filter(|pid| parent_of(*pid) == Some(own))
        .filter_map(Pid::from_raw)
        .collect()
}

#[cfg(test)]
mod tests;
