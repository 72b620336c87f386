//! Kills the unmodified binary with SIGKILL at a chosen change of the files of a project. A small C program
//! (`trace.c`), built here with `cc`, follows it with ptrace.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::project::{Command, Project};

const SOURCE: &str = include_str!("trace.c");

/// Exit code of a command that was killed.
pub const KILLED: i32 = 137;

/// The built program.
pub struct FileKillInjector {
    directory: tempfile::TempDir,
    traces: AtomicUsize,
}

/// The changes of files that a command made. If it was killed, the last one was not made any more.
pub struct FileTrace(PathBuf);

impl FileKillInjector {
    /// Builds the program.
    pub fn build() -> Self {
        let directory =
            tempfile::Builder::new().prefix("fusee-trace-").tempdir().expect("a temporary directory");
        let source = directory.path().join("trace.c");
        fs::write(&source, SOURCE).expect("a source file");
        let built = std::process::Command::new("cc")
            .args(["-O1", "-Wall", "-o"])
            .args([&directory.path().join("trace"), &source])
            .output()
            .expect("cc is installed");
        assert!(built.status.success(), "cc: {}", String::from_utf8_lossy(&built.stderr));
        Self { directory, traces: AtomicUsize::new(0) }
    }

    /// Runs a program in a project and kills it before its n-th change of a file, counted from 1; with 0, only lists the
    /// changes.
    pub fn command<'p>(&self, project: &'p Project, program: &str, n: usize) -> (Command<'p>, FileTrace) {
        let number = self.traces.fetch_add(1, Ordering::Relaxed);
        let trace = self.directory.path().join(format!("changes-{number}"));
        let files = project.dir().canonicalize().expect("the project's directory");
        let command = project.command(self.directory.path().join("trace"));
        let command = command.args([files.as_os_str(), trace.as_os_str()]);
        (command.args([n.to_string().as_str(), program]), FileTrace(trace))
    }
}

impl FileTrace {
    /// One line per change: what it was, and the path.
    pub fn changes(&self) -> Vec<String> {
        let text = fs::read_to_string(&self.0).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}
