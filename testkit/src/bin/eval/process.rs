//! Runs one program in the working copy, with a time limit, and outside Fusee's own sandbox confined by bubblewrap:
//! models write commands and code that nobody has read.

use std::ffi::{OsStr, OsString};
use std::fs::OpenOptions;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::Outcome;
use crate::working_copy::WorkingCopy;

/// Variables that a program inherits; the rest could change what it does, or tell it a key.
const INHERITED: &[&str] =
    &["PATH", "LANG", "LC_ALL", "USER", "RUSTUP_TOOLCHAIN", "PYENV_ROOT", "PYENV_VERSION", "GOROOT"];

/// Data segment of each process, in KiB: an endless list in a solution must not take the machine's memory.
const DATA_KIB: u64 = 4 * 1024 * 1024;

/// How often the end of a process is checked.
const POLL: Duration = Duration::from_millis(20);

/// How programs are kept from writing outside the working copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Confinement {
    /// Read-only file system except for the working copy, own process ids.
    Bubblewrap,
    /// The program confines itself, or the user asked for none.
    None,
}

impl Confinement {
    /// Bubblewrap unless the user declined it; fails where it is not installed.
    pub(crate) fn new(unconfined: bool) -> Outcome<Self> {
        match find("bwrap") {
            _ if unconfined => Ok(Self::None),
            Some(_) => Ok(Self::Bubblewrap),
            None => Err("bwrap not found; install bubblewrap, or pass --unconfined".to_owned()),
        }
    }
}

/// A program to run.
pub(crate) struct Job<'a> {
    pub(crate) words: Vec<OsString>,
    pub(crate) environment: Vec<(String, OsString)>,
    pub(crate) confinement: Confinement,
    pub(crate) network: bool,
    pub(crate) limit: Duration,
    /// File that output is appended to.
    pub(crate) log: &'a Path,
}

/// How a program ended.
pub(crate) struct Ended {
    /// Exit code; `None` if it was killed.
    pub(crate) code: Option<i32>,
    /// Whether it was killed at its time limit.
    pub(crate) timed_out: bool,
    pub(crate) seconds: f64,
}

impl Job<'_> {
    pub(crate) fn run(&self, copy: &WorkingCopy) -> Outcome<Ended> {
        let program = self.words.first().cloned().unwrap_or_default();
        let fault = |error: std::io::Error| format!("{}: {error}", program.display());
        let log = OpenOptions::new().create(true).append(true).open(self.log).map_err(fault)?;
        let mut command = self.command(copy);
        command
            .env_clear()
            .envs(INHERITED.iter().filter_map(|name| Some((name, std::env::var_os(name)?))))
            .envs(toolchain_homes())
            .env("HOME", copy.home())
            .env("TMPDIR", copy.temporary())
            .env("GOCACHE", copy.cache().join("go"))
            // Compiled files are matched by a time in whole seconds, which is too coarse for a quick rewrite.
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .current_dir(copy.project())
            .stdin(Stdio::null())
            .stdout(log.try_clone().map_err(fault)?)
            .stderr(log)
            .process_group(0);
        let begun = Instant::now();
        let mut child = command.spawn().map_err(fault)?;
        let mut timed_out = false;
        let status = loop {
            if let Some(status) = child.try_wait().map_err(fault)? {
                break status;
            }
            if begun.elapsed() >= self.limit {
                timed_out = true;
                let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
                break child.wait().map_err(fault)?;
            }
            std::thread::sleep(POLL);
        };
        let seconds = begun.elapsed().as_secs_f64();
        // Ends what the program left running in its group.
        let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
        Ok(Ended { code: status.code(), timed_out, seconds })
    }

    fn command(&self, copy: &WorkingCopy) -> Command {
        if self.confinement == Confinement::None {
            let mut command = Command::new(self.words.first().map_or(OsStr::new(""), OsString::as_os_str));
            command.args(self.words.iter().skip(1));
            return command;
        }
        let mut command = Command::new("bwrap");
        command.args(["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--bind"]);
        command.args([copy.root(), copy.root()]).args(["--unshare-pid", "--die-with-parent"]);
        if !self.network {
            command.arg("--unshare-net");
        }
        let limited = format!("ulimit -d {DATA_KIB}; exec \"$@\"");
        command.args(["--", "sh", "-c", &limited, "sh"]).args(&self.words);
        command
    }
}

/// Finds a program on the PATH.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|directory| directory.join(program)).find(|file| file.is_file())
}

/// Where rustup and cargo are, which a program with another home would not find.
fn toolchain_homes() -> impl Iterator<Item = (&'static str, OsString)> {
    [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")].into_iter().filter_map(|(name, directory)| {
        let usual = || Some(std::env::home_dir()?.join(directory).into_os_string());
        Some((name, std::env::var_os(name).or_else(usual)?))
    })
}
