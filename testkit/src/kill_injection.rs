//! Kills the unmodified binary with SIGKILL at a chosen write to its journal.
//!
//! A small C library (`kill_injection/preload.c`), built here with `cc` and loaded with `LD_PRELOAD`, counts the
//! writes, syncs and truncations of `journal.db` and its log. [`KillInjector`] first counts them in an undisturbed
//! run, then kills one run after another at each of them. [`file_changes`] does the same for changes of files.

pub mod file_changes;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::project::Command;

const SOURCE: &str = include_str!("kill_injection/preload.c");

/// When the process is killed, relative to the chosen write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KillTime {
    /// Nothing of the write reaches the file.
    Before,
    /// The write is complete.
    After,
    /// Half of the bytes are written.
    Torn,
}

/// The built preload library.
pub struct KillInjector {
    directory: tempfile::TempDir,
    traces: AtomicUsize,
}

/// Record of the journal writes of one run.
pub struct WriteTrace(PathBuf);

impl KillInjector {
    /// Builds the library; `cargo xtask test` checks that `cc` is installed.
    pub fn build() -> Self {
        let directory =
            tempfile::Builder::new().prefix("fusee-kill-").tempdir().expect("a temporary directory");
        let source = directory.path().join("preload.c");
        fs::write(&source, SOURCE).expect("a source file");
        let built = std::process::Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-Wall", "-o"])
            .args([&library(directory.path()), &source])
            .arg("-ldl")
            .output()
            .expect("cc is installed");
        assert!(built.status.success(), "cc: {}", String::from_utf8_lossy(&built.stderr));
        Self { directory, traces: AtomicUsize::new(0) }
    }

    /// Counts the command's journal writes.
    pub fn watch<'p>(&self, command: Command<'p>) -> (Command<'p>, WriteTrace) {
        let n = self.traces.fetch_add(1, Ordering::Relaxed);
        let trace = self.directory.path().join(format!("trace-{n}"));
        let command =
            command.env("LD_PRELOAD", library(self.directory.path())).env("FUSEE_KILL_TRACE", &trace);
        (command, WriteTrace(trace))
    }

    /// Kills the command at the n-th journal write, counted from 1.
    pub fn kill_at<'p>(&self, command: Command<'p>, n: usize, when: KillTime) -> Command<'p> {
        let when = match when {
            KillTime::Before => "before",
            KillTime::After => "after",
            KillTime::Torn => "torn",
        };
        let (command, _) = self.watch(command);
        command.env("FUSEE_KILL_AT", n.to_string()).env("FUSEE_KILL_WHEN", when)
    }
}

impl WriteTrace {
    /// One letter per call, in order: `w`, `s`, `t` for write, sync, truncate of the log, capitals for the
    /// database.
    pub fn letters(&self) -> String {
        fs::read_to_string(&self.0).unwrap_or_default()
    }

    /// Number of calls.
    pub fn count(&self) -> usize {
        self.letters().len()
    }
}

fn library(directory: &Path) -> PathBuf {
    directory.join("preload.so")
}

#[cfg(test)]
mod tests;
