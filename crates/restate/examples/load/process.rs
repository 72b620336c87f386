//! Child processes and what they use.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::{floor, server};

/// What a process has used.
#[derive(Clone, Default)]
pub(crate) struct Usage {
    pub(crate) cpu: Duration,
    pub(crate) peak_kib: u64,
}

impl Usage {
    pub(crate) fn since(&self, before: &Self) -> Self {
        Self { cpu: self.cpu.saturating_sub(before.cpu), peak_kib: self.peak_kib }
    }
}

/// Ticks of the processor time in `/proc` per second, which is the same on every Linux.
const TICKS: f64 = 100.0;

/// What a process and its ended children have used so far.
pub(crate) fn usage(pid: u32) -> Usage {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("a process");
    let fields = stat.rsplit(')').next().unwrap_or_default();
    // utime, stime, cutime and cstime are the fields 14 to 17, counted from 1; the third comes after the name.
    let ticks: u64 =
        fields.split_whitespace().skip(11).take(4).filter_map(|text| text.parse::<u64>().ok()).sum();
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("a process");
    let peak =
        status.lines().find(|line| line.starts_with("VmHWM")).and_then(|line| line.split_whitespace().nth(1));
    Usage {
        cpu: Duration::from_secs_f64(ticks as f64 / TICKS),
        peak_kib: peak.and_then(|number| number.parse().ok()).unwrap_or_default(),
    }
}

/// Bytes of all files in a folder.
pub(crate) fn size(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let sizes = entries.map(|entry| match entry.metadata() {
        Ok(found) if found.is_dir() => size(&entry.path()),
        Ok(found) => found.len(),
        Err(_) => 0,
    });
    sizes.sum()
}

/// A process that is killed when this is dropped.
pub(crate) struct Child(std::process::Child);

impl Child {
    pub(crate) fn spawn(command: &mut Command) -> Self {
        let command = command.stdin(Stdio::null()).stdout(Stdio::null());
        Self(command.spawn().expect("it starts"))
    }

    /// A worker of fusee.
    pub(crate) fn worker(fusee: &Path, engine: &str, folder: &Path) -> Self {
        let listen = format!("127.0.0.1:{}", server::free_port());
        Self::spawn(
            Command::new(fusee)
                .args(["worker", "--engine", engine, "--listen", &listen, "--allow-unsandboxed", "--folder"])
                .arg(folder.join("worker"))
                .arg("--blobs")
                .arg(folder.join("blobs"))
                .env("HOME", folder)
                .current_dir(folder),
        )
    }

    /// The worker that does nothing, which the caller registers.
    pub(crate) fn floor(engine: &str, folder: &Path) -> Self {
        let listen = format!("127.0.0.1:{}", server::free_port());
        let own = std::env::current_exe().expect("this program");
        let child = Self::spawn(Command::new(own).args([floor::COMMAND, &listen]).current_dir(folder));
        server::register(engine, &format!("http://{listen}"));
        child
    }

    pub(crate) fn usage(&self) -> Usage {
        usage(self.0.id())
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
