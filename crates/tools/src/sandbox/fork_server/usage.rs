//! Measures the current resource usage of a command and everything it started.
//!
//! In a namespace sandbox the supervising process is PID 1 of the command's PID namespace, so every process
//! in `/proc` belongs to the command. Elsewhere it is a subreaper, and its descendants belong to the command.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use crate::sandbox::limits::{ExceededLimit, ResourceLimits};

/// Delay before the first measurement. Most commands have ended by then and cost nothing.
const FIRST: Duration = Duration::from_millis(50);
/// Interval between measurements.
const BETWEEN: Duration = Duration::from_millis(100);

/// Maximum number of open files of a process that are examined.
const MAX_DESCRIPTORS: usize = 1024;

/// Measures the process tree of a command periodically.
pub(crate) struct UsageSampler<'a> {
    limits: &'a ResourceLimits,
    /// CPU time of reaped children before this command: a supervisor may have run others.
    before: Duration,
    next: Instant,
}

/// Resource usage of a process tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ProcessUsage {
    tasks: u64,
    memory_bytes: u64,
    cpu: Duration,
}

impl<'a> UsageSampler<'a> {
    pub(crate) fn new(limits: &'a ResourceLimits) -> Option<Self> {
        let counter = || Self { limits, before: ended_children(), next: Instant::now() + FIRST };
        limits.is_counted().then(counter)
    }

    /// Time until the next measurement.
    pub(crate) fn rest(&self) -> Duration {
        self.next.saturating_duration_since(Instant::now())
    }

    /// Measures if it is time to, and returns the exceeded limit, if any.
    pub(crate) fn measure(&mut self) -> Option<ExceededLimit> {
        if Instant::now() < self.next {
            return None;
        }
        let limits = self.limits;
        let used = count(limits.processes);
        self.next = Instant::now() + BETWEEN;
        let cpu = used.cpu + ended_children().saturating_sub(self.before);
        [
            (ExceededLimit::Processes, limits.processes, used.tasks),
            (ExceededLimit::Memory, limits.memory_bytes, used.memory_bytes),
            // The second that is being used counts: the limit is exceeded when it is used up.
            (ExceededLimit::Cpu, limits.cpu_s, cpu.as_secs() + 1),
        ]
        .into_iter()
        .find_map(|(what, most, used)| (most > 0 && used > most).then_some(what))
    }
}

/// CPU time of reaped children and their descendants.
fn ended_children() -> Duration {
    let own = std::fs::read_to_string("/proc/self/stat").ok();
    own.and_then(|stat| ProcStat::read(&stat)).map_or(Duration::ZERO, |stat| stat.ended)
}

/// Sums up the usage of the tree; stops once it exceeds `most` tasks.
fn count(most: u64) -> ProcessUsage {
    let (mut used, mut shared, mut files) = (ProcessUsage::default(), 0, BTreeMap::new());
    let enough = |used: &ProcessUsage| most > 0 && used.tasks > most;
    let mut add = |pid: i32, used: &mut ProcessUsage| {
        let read = |name: &str| std::fs::read_to_string(format!("/proc/{pid}/{name}"));
        let Some(stat) = read("stat").ok().and_then(|text| ProcStat::read(&text)) else { return };
        used.tasks += stat.tasks;
        used.cpu += stat.own + stat.ended;
        if let Ok(status) = read("status") {
            used.memory_bytes += kilobytes(&status, "RssAnon:") * 1024;
            // Every process that shares it reports it, so count it once.
            shared = shared.max(kilobytes(&status, "RssShmem:") * 1024);
        }
        anonymous_files(pid, &mut files);
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
    // What is mapped of a file in memory is in both numbers.
    used.memory_bytes += shared.max(files.values().sum());
    used
}

/// Adds the files in memory (memfd) that a process has open, by inode, with the bytes they take. What is not
/// mapped counts for no process.
fn anonymous_files(pid: i32, files: &mut BTreeMap<u64, u64>) {
    let open = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    for entry in open.take(MAX_DESCRIPTORS) {
        let is_anonymous = |target: std::path::PathBuf| target.as_os_str().as_bytes().starts_with(b"/memfd:");
        if std::fs::read_link(entry.path()).is_ok_and(is_anonymous)
            && let Ok(status) = std::fs::metadata(entry.path())
        {
            files.insert(status.ino(), status.blocks() * 512);
        }
    }
}

/// The children of all threads of a process. Empty if the kernel was built without CONFIG_PROC_CHILDREN; the
/// rlimits of each process still apply there.
fn children(pid: i32) -> Vec<i32> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    lists
        .flat_map(|list| {
            list.split_ascii_whitespace().filter_map(|word| word.parse().ok()).collect::<Vec<_>>()
        })
        .collect()
}

/// The fields of `/proc/PID/stat` that are used.
#[derive(Debug, PartialEq, Eq)]
struct ProcStat {
    tasks: u64,
    /// CPU time of the process itself; `ended` is that of children it has waited for.
    own: Duration,
    ended: Duration,
}

impl ProcStat {
    fn read(text: &str) -> Option<Self> {
        // The name in parentheses may contain anything; numeric fields, starting with the third, follow its
        // last parenthesis.
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
