//! Counting what a command and everything it started use at this moment.
//!
//! In a room the supervisor is the first process of the command's own, so whoever is in `/proc` belongs to it. Elsewhere
//! it is a subreaper: whoever descends from it does.

use std::time::{Duration, Instant};

use super::allowance::{Allowance, Exceeded};

/// Before the first count. Most commands have ended by then, and cost nothing.
const FIRST: Duration = Duration::from_millis(50);
/// Between two counts.
const BETWEEN: Duration = Duration::from_millis(100);

/// Looks at a command's tree from time to time.
pub(super) struct Counter<'a> {
    allowance: &'a Allowance,
    /// What children that have ended used before this command: a supervisor may have had others.
    before: Duration,
    next: Instant,
}

/// What a tree uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Used {
    tasks: u64,
    memory_bytes: u64,
    cpu: Duration,
}

impl<'a> Counter<'a> {
    pub(super) fn of(allowance: &'a Allowance) -> Option<Self> {
        let counter = || Self { allowance, before: ended_children(), next: Instant::now() + FIRST };
        allowance.is_counted().then(counter)
    }

    /// How long until the next count.
    pub(super) fn rest(&self) -> Duration {
        self.next.saturating_duration_since(Instant::now())
    }

    /// Counts if it is time to: what there is too much of, if anything.
    pub(super) fn look(&mut self) -> Option<Exceeded> {
        if Instant::now() < self.next {
            return None;
        }
        let limit = self.allowance;
        let used = count(limit.processes);
        self.next = Instant::now() + BETWEEN;
        let cpu = used.cpu + ended_children().saturating_sub(self.before);
        [
            (Exceeded::Processes, limit.processes, used.tasks),
            (Exceeded::Memory, limit.memory_bytes, used.memory_bytes),
            (Exceeded::Cpu, limit.cpu_s, cpu.as_secs()),
        ]
        .into_iter()
        .find_map(|(what, most, used)| (most > 0 && used > most).then_some(what))
    }
}

/// Processor time of children that have ended, with theirs.
fn ended_children() -> Duration {
    let own = std::fs::read_to_string("/proc/self/stat").ok();
    own.and_then(|stat| Stat::read(&stat)).map_or(Duration::ZERO, |stat| stat.ended)
}

/// Counts the tree, not further than one past `most` tasks.
fn count(most: u64) -> Used {
    let (mut used, mut shared) = (Used::default(), 0);
    let enough = |used: &Used| most > 0 && used.tasks > most;
    let mut add = |pid: i32, used: &mut Used| {
        let read = |name: &str| std::fs::read_to_string(format!("/proc/{pid}/{name}"));
        let Some(stat) = read("stat").ok().and_then(|text| Stat::read(&text)) else { return };
        used.tasks += stat.tasks;
        used.cpu += stat.own + stat.ended;
        if let Ok(status) = read("status") {
            used.memory_bytes += kilobytes(&status, "RssAnon:") * 1024;
            // Seen from each process that shares it: counted once.
            shared = shared.max(kilobytes(&status, "RssShmem:") * 1024);
        }
    };
    if rustix::process::getpid().is_init() {
        let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        for pid in pids.filter(|pid| *pid != 1) {
            add(pid, &mut used);
            if enough(&used) {
                break;
            }
        }
    } else {
        let mut waiting = children(rustix::process::getpid().as_raw_nonzero().get());
        while let Some(pid) = waiting.pop() {
            add(pid, &mut used);
            if enough(&used) {
                break;
            }
            waiting.extend(children(pid));
        }
    }
    used.memory_bytes += shared;
    used
}

/// The children of a process, of all its threads. None where the kernel was built without a list of them; the
/// system's limits for each process hold there all the same.
fn children(pid: i32) -> Vec<i32> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    lists
        .flat_map(|list| {
            list.split_ascii_whitespace().filter_map(|word| word.parse().ok()).collect::<Vec<_>>()
        })
        .collect()
}

/// What `/proc/PID/stat` says.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    tasks: u64,
    /// Processor time of its own, and of children that it has waited for.
    own: Duration,
    ended: Duration,
}

impl Stat {
    fn read(text: &str) -> Option<Self> {
        // The name in parentheses may hold anything; what follows its last parenthesis is numbers from the third on.
        let numbers: Vec<u64> = text
            .rsplit_once(')')?
            .1
            .split_ascii_whitespace()
            .map(|word| word.parse().unwrap_or_default())
            .collect();
        let ticks = |at: usize| numbers.get(at - 3).map(|ticks| Duration::from_millis(ticks * 10));
        Some(Self {
            tasks: *numbers.get(20 - 3)?,
            own: ticks(14)? + ticks(15)?,
            ended: ticks(16)? + ticks(17)?,
        })
    }
}

fn kilobytes(status: &str, name: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|rest| rest.split_ascii_whitespace().next()?.parse().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
