//! Runs the binary in throwaway projects, and judges what holds for every run: it ends in time, with a known exit
//! code, without a panic, and without showing its key.

use std::fs::{self, File};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use fusee_testkit::project::Project;
use rustix::process::{Pid, Signal, kill_process_group};

use crate::Finding;

/// A key that must not appear anywhere.
pub(crate) const KEY: &str = "sk-attack-0123456789abcdef";

/// Variables that hold the key.
const KEY_VARIABLES: [&str; 2] = ["OPENAI_API_KEY", "ANTHROPIC_API_KEY"];

/// Exit codes of `docs/reference`: completed to findings, and cancelled.
const KNOWN_CODES: [i32; 7] = [0, 1, 2, 3, 4, 5, 130];

/// Words in the output of a process that failed in a way it should not.
const FAULTS: [&str; 4] = ["panicked at", "internal error", "RUST_BACKTRACE", "stack overflow"];

/// Time limit of a command that should take moments. Other builds may be running on the machine.
pub(crate) const LIMIT: Duration = Duration::from_secs(90);

/// The binary under attack.
pub(crate) struct Arena {
    fusee: PathBuf,
}

/// A finished command.
#[derive(Debug)]
pub(crate) struct Ran {
    line: String,
    /// Exit code; `None` if it was killed.
    pub(crate) code: Option<i32>,
    is_late: bool,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// A running command in a process group of its own, which ends with this value.
pub(crate) struct Live {
    pub(crate) child: Child,
    begun: Instant,
    line: String,
    stdout: PathBuf,
    stderr: PathBuf,
}

impl Arena {
    pub(crate) fn new(fusee: &Path) -> Result<Self, String> {
        let fusee = fusee.canonicalize().map_err(|error| format!("{}: {error}", fusee.display()))?;
        Ok(Self { fusee })
    }

    /// Path of the binary.
    pub(crate) fn program(&self) -> &Path {
        &self.fusee
    }

    /// A project whose settings make failures fast.
    pub(crate) fn project(&self) -> Project {
        Project::new().with(
            "fusee.toml",
            "timeout_s = 2\ntask_timeout_s = 20\nmax_turns = 12\n\n[retry_policy]\nmax_retries = 2\nbackoff_ms = 10\n",
        )
    }

    /// Writes the user's own settings.
    pub(crate) fn settings(&self, project: &Project, text: &str) -> Result<(), Finding> {
        let folder = project.home().join(".config/fusee");
        fs::create_dir_all(&folder)
            .and_then(|()| fs::write(folder.join("config.toml"), text))
            .map_err(|error| format!("settings: {error}"))
    }

    pub(crate) fn start(&self, project: &Project, words: &[&str]) -> Result<Live, Finding> {
        self.start_with(project, words, &[])
    }

    /// Like [`Self::start`], with further variables.
    pub(crate) fn start_with(
        &self,
        project: &Project,
        words: &[&str],
        variables: &[(&str, &str)],
    ) -> Result<Live, Finding> {
        let (stdout, stderr) = (project.scratch("stdout"), project.scratch("stderr"));
        let file = |path: &Path| File::create(path).map_err(|error| format!("{}: {error}", path.display()));
        let child = Command::new(&self.fusee)
            .args(words)
            .env_clear()
            .envs(project.environment())
            .envs(KEY_VARIABLES.map(|name| (name, KEY)))
            .envs(variables.iter().copied())
            .current_dir(project.dir())
            .stdin(Stdio::null())
            .stdout(file(&stdout)?)
            .stderr(file(&stderr)?)
            .process_group(0)
            .spawn()
            .map_err(|error| format!("cannot start fusee: {error}"))?;
        Ok(Live { child, begun: Instant::now(), line: words.join(" "), stdout, stderr })
    }

    /// Runs a command to its end and judges it.
    pub(crate) fn run(&self, project: &Project, words: &[&str]) -> Result<Ran, Finding> {
        self.start(project, words)?.wait(LIMIT)?.judged()
    }

    /// Like [`Self::run`], and the files of the project do not contain the key either.
    pub(crate) fn run_secretly(&self, project: &Project, words: &[&str]) -> Result<Ran, Finding> {
        let ran = self.run(project, words)?;
        for path in project.all_files() {
            let bytes = fs::read(&path).unwrap_or_default();
            if memchr::memmem::find(&bytes, KEY.as_bytes()).is_some() {
                return Err(format!("`fusee {}` left the key in {}", ran.line, path.display()));
            }
        }
        Ok(ran)
    }
}

impl Live {
    /// Waits for the end; a command that takes longer than the limit is killed.
    pub(crate) fn wait(mut self, limit: Duration) -> Result<Ran, Finding> {
        let mut is_late = false;
        let status = loop {
            match self.child.try_wait().map_err(|error| format!("wait: {error}"))? {
                Some(status) => break status,
                None if self.begun.elapsed() > limit => {
                    is_late = true;
                    self.kill_group();
                    break self.child.wait().map_err(|error| format!("wait: {error}"))?;
                }
                None => std::thread::sleep(Duration::from_millis(3)),
            }
        };
        let read = |path: &Path| String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned();
        let code = status.code().filter(|_| status.signal().is_none());
        let (stdout, stderr) = (read(&self.stdout), read(&self.stderr));
        Ok(Ran { line: self.line.clone(), code, is_late, stdout, stderr })
    }

    fn kill_group(&self) {
        // The process may have ended meanwhile.
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.kill_group();
        let _ = self.child.wait();
    }
}

impl Ran {
    /// What holds for every command, unless something killed it.
    pub(crate) fn judged(self) -> Result<Self, Finding> {
        let why = if self.is_late {
            "did not end in time".to_owned()
        } else if self.code.is_none_or(|code| !KNOWN_CODES.contains(&code)) {
            format!("ended with {:?}", self.code)
        } else if let Some(fault) = FAULTS.iter().find(|fault| self.stderr.contains(**fault)) {
            format!("said \"{fault}\"")
        } else if self.stdout.contains(KEY) || self.stderr.contains(KEY) {
            "showed the key".to_owned()
        } else if self.stdout.bytes().chain(self.stderr.bytes()).any(|byte| byte == 0x1b) {
            "printed a terminal escape".to_owned()
        } else {
            return Ok(self);
        };
        Err(self.wrong(&why))
    }

    /// A finding with the output.
    pub(crate) fn wrong(&self, why: &str) -> Finding {
        let end = |text: &str| {
            text.chars().rev().take(1500).collect::<Vec<_>>().into_iter().rev().collect::<String>()
        };
        format!(
            "`fusee {}` {why}\n--- stdout\n{}\n--- stderr\n{}",
            self.line,
            end(&self.stdout),
            end(&self.stderr)
        )
    }
}
