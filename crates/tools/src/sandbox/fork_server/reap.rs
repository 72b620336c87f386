//! Kills every descendant of this process, including those that left their process group and session.
//!
//! This process is a subreaper: orphaned descendants become its children. So only children are ever killed,
//! and their PIDs cannot be reused before this process reaps them. Their own children are then reparented
//! here, and the next round finds them.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};

/// Time limit of a sweep, for processes that cannot be killed (another user's, or stuck in the kernel).
const TIMEOUT: Duration = Duration::from_secs(5);

/// Result of a sweep: how many processes were killed and how many could not be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReapResult {
    pub(crate) killed_leftovers: u32,
    pub(crate) unkillable: u32,
}

/// Reaps children that have ended and passes each to `reaped`. Returns whether any children remain.
pub(crate) fn reap(mut reaped: impl FnMut(Pid, WaitStatus)) -> bool {
    loop {
        match rustix::process::wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) => reaped(pid, status),
            Ok(None) => return true,
            Err(Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}

/// Kills and reaps children, and descendants that become children by that, until only `spared` are left.
pub(crate) fn end_children(
    watch: &OwnedFd,
    spared: &[Pid],
    mut reaped: impl FnMut(Pid, WaitStatus),
) -> ReapResult {
    let mut swept = ReapResult::default();
    let deadline = Instant::now() + TIMEOUT;
    let own_group = rustix::process::getpgid(None).ok();
    loop {
        let any = reap(|pid, status| {
            swept.killed_leftovers += u32::from(status.terminating_signal() == Some(Signal::KILL.as_raw()));
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
            // The whole process group at once: a process that forks faster than the list is read stays in its
            // group.
            if let Ok(group) = rustix::process::getpgid(Some(child))
                && Some(group) != own_group
            {
                let _ = rustix::process::kill_process_group(group, Signal::KILL);
            }
            let _ = rustix::process::kill_process(child, Signal::KILL);
        }
        if Instant::now() > deadline {
            swept.unkillable = u32::try_from(children.len()).unwrap_or(u32::MAX);
            return swept;
        }
        wait_for_an_end(watch, Duration::from_millis(20));
    }
}

/// Waits at most `most` for a child to end.
fn wait_for_an_end(watch: &OwnedFd, most: Duration) {
    let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(most.subsec_nanos()) };
    let _ = poll(&mut [PollFd::new(watch, PollFlags::IN)], Some(&timeout));
    drain(watch);
}

/// Drains the SIGCHLD signalfd. Reaping finds out what happened.
pub(crate) fn drain(watch: &OwnedFd) {
    let mut buffer = [0u8; 1024];
    while rustix::io::read(watch, &mut buffer).is_ok_and(|length| length > 0) {}
}

/// The children of this process, which has one thread.
fn children() -> Vec<Pid> {
    match std::fs::read_to_string("/proc/thread-self/children") {
        Ok(list) => {
            list.split_ascii_whitespace().filter_map(|word| Pid::from_raw(word.parse().ok()?)).collect()
        }
        // The kernel was built without CONFIG_PROC_CHILDREN.
        Err(_) => children_by_scan(),
    }
}

/// Finds the children by reading the parent PID of every process.
fn children_by_scan() -> Vec<Pid> {
    let own = rustix::process::getpid().as_raw_nonzero().get();
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let parent_of = |pid: i32| -> Option<i32> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name in parentheses may contain anything; the state and the parent PID follow its last
        // parenthesis.
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
