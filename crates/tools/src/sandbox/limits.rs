//! Resource limits of a command and everything it starts: CPU time, memory, processes, file size.
//!
//! The system's own limits (rlimits) count each process separately, and some do not apply to root. They are
//! set here where they apply. The supervisor measures the usage of the whole process tree (`usage`) and
//! enforces the limits on it.

use std::io;

use rustix::process::{Resource, Rlimit};
use serde::{Deserialize, Serialize};

/// Seconds of CPU time after which the system kills a process that the supervisor did not.
const CPU_GRACE_S: u64 = 2;

/// Minimum limit on processes and threads of all commands: several at a time, each within its own limit.
const MIN_TASKS: u64 = 4096;

/// Resource limits of a command. 0, the default, means unlimited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceLimits {
    /// CPU time in seconds, of all its processes together.
    pub cpu_s: u64,
    /// Memory in bytes, of all its processes together.
    pub memory_bytes: u64,
    /// Number of processes and threads at a time.
    pub processes: u64,
    /// Size in bytes of each file that it writes.
    pub file_bytes: u64,
}

impl ResourceLimits {
    /// Default limits: more than a well-behaved command needs, and low enough for this machine to survive.
    #[must_use]
    pub fn defaults() -> Self {
        Self { cpu_s: 2 * 3600, memory_bytes: default_memory(), processes: 2048, file_bytes: 16 << 30 }
    }

    pub(super) const LENGTH: usize = 32;

    /// Whether the supervisor has to measure the usage of the process tree.
    pub(super) fn is_counted(&self) -> bool {
        self.cpu_s > 0 || self.memory_bytes > 0 || self.processes > 0
    }

    pub(super) fn encode(&self) -> [u8; Self::LENGTH] {
        let mut bytes = [0; Self::LENGTH];
        let numbers = [self.cpu_s, self.memory_bytes, self.processes, self.file_bytes];
        for (place, number) in bytes.chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    pub(super) fn decode(bytes: &[u8; Self::LENGTH]) -> Self {
        let mut numbers = [0u64; 4];
        for (number, place) in numbers.iter_mut().zip(bytes.chunks_exact(8)) {
            *number = place.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
        }
        let [cpu_s, memory_bytes, processes, file_bytes] = numbers;
        Self { cpu_s, memory_bytes, processes, file_bytes }
    }

    /// Sets the rlimits of this process, which its children inherit.
    pub(super) fn apply(&self) -> io::Result<()> {
        let set = |resource: Resource, most: u64| -> io::Result<()> {
            let known = rustix::process::getrlimit(resource);
            let most = known.maximum.map_or(most, |known| known.min(most));
            Ok(rustix::process::setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?)
        };
        if self.cpu_s > 0 {
            // Later than the supervisor, which can say why it ended the command.
            set(Resource::Cpu, self.cpu_s.saturating_add(CPU_GRACE_S))?;
        }
        if self.memory_bytes > 0 {
            // Private writable memory. Address space as such costs nothing, and runtimes reserve a lot of it.
            set(Resource::Data, self.memory_bytes)?;
        }
        if self.file_bytes > 0 {
            set(Resource::Fsize, self.file_bytes)?;
        }
        Ok(())
    }
}

/// Limits on the usage of all commands of a fork server together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CgroupLimits {
    /// Maximum resident memory of all processes together.
    pub memory_bytes: u64,
    /// Number of processes and threads at a time.
    pub tasks: u64,
}

impl CgroupLimits {
    /// Limits that the machine survives, and not below those of a single command.
    #[must_use]
    pub fn protecting_machine(limits: &ResourceLimits) -> Self {
        Self {
            memory_bytes: ResourceLimits::defaults().memory_bytes.max(limits.memory_bytes),
            tasks: MIN_TASKS.max(limits.processes.saturating_mul(2)),
        }
    }
}

/// The limit that a command exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExceededLimit {
    /// CPU time of all processes together.
    Cpu,
    /// Memory of all processes together.
    Memory,
    /// Number of processes and threads at a time.
    Processes,
}

impl ExceededLimit {
    const ALL: [Self; 3] = [Self::Cpu, Self::Memory, Self::Processes];

    pub(super) fn mark(what: Option<Self>) -> u8 {
        let known = Self::ALL.iter().zip(1u8..).find(|(known, _)| Some(**known) == what);
        known.map_or(0, |(_, mark)| mark)
    }

    pub(super) fn from_code(mark: u8) -> Option<Self> {
        Self::ALL.get(usize::from(mark).checked_sub(1)?).copied()
    }
}

/// Three quarters of the memory of the machine, or of the container this process runs in.
fn default_memory() -> u64 {
    let machine = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| {
        let word = text.strip_prefix("MemTotal:")?.split_ascii_whitespace().next()?.parse::<u64>();
        word.ok().map(|kilobytes| kilobytes * 1024)
    });
    let container = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"]
        .iter()
        .find_map(|path| std::fs::read_to_string(path).ok()?.trim().parse::<u64>().ok());
    let most = machine.into_iter().chain(container).min().unwrap_or(4 << 30);
    most / 4 * 3
}

#[cfg(test)]
mod tests;
