//! A project in a temporary directory, and commands run in it the way a user would.
//!
//! [`Project`] holds the files, its own home directory and the model scripts; [`Command`] is one invocation
//! of the binary, [`Running`] a started one, [`Outcome`] its result. `events` checks event streams.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde_json::Value;

use crate::events::{self, Part};
use crate::script::Line;
use crate::secret_scan::SecretScan;
use crate::server::ClosedPort;

/// Time limit of every test command: a hang fails the test and shows the output instead of blocking the
/// suite.
const LIMIT: Duration = Duration::from_secs(60);

/// A git repository with a separate home directory.
pub struct Project {
    root: tempfile::TempDir,
    scratch: AtomicUsize,
    /// Where commands look for model servers, so that they find none of the machine's.
    no_server: ClosedPort,
}

impl Project {
    /// Creates an empty repository: `git init`, no commit.
    pub fn new() -> Self {
        let root = tempfile::Builder::new().prefix("fusee-test-").tempdir().expect("a temporary directory");
        let project = Self { root, scratch: AtomicUsize::new(0), no_server: ClosedPort::reserve() };
        for dir in [project.dir(), project.home()] {
            fs::create_dir_all(dir).expect("a directory in a new directory");
        }
        let git = std::process::Command::new("git")
            .args(["init", "--quiet", "--initial-branch=main", "."])
            .current_dir(project.dir())
            .status()
            .expect("git is installed");
        assert!(git.success(), "git init failed");
        project
    }

    /// Adds a file.
    #[must_use]
    pub fn with(self, path: &str, text: &str) -> Self {
        self.write(path, text);
        self
    }

    /// Workspace directory.
    pub fn dir(&self) -> PathBuf {
        self.root.path().join("project")
    }

    /// Home directory for commands in this project.
    pub fn home(&self) -> PathBuf {
        self.root.path().join("home")
    }

    /// Path of the project's journal.
    pub fn journal(&self) -> PathBuf {
        self.dir().join(".fusee/journal.db")
    }

    /// Returns a unique path outside the workspace.
    pub fn scratch(&self, name: &str) -> PathBuf {
        let n = self.scratch.fetch_add(1, Ordering::Relaxed);
        self.root.path().join(format!("{n}-{name}"))
    }

    /// Writes a file in the workspace.
    pub fn write(&self, path: &str, text: &str) {
        let path = self.dir().join(path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).expect("a directory for a file");
        }
        fs::write(path, text).expect("a file of the workspace");
    }

    /// Reads a file in the workspace; empty if it is missing.
    pub fn read(&self, path: &str) -> String {
        fs::read_to_string(self.dir().join(path)).unwrap_or_default()
    }

    /// All files in the project and its home directory, including the journal.
    pub fn all_files(&self) -> Vec<PathBuf> {
        let (mut found, mut folders) = (Vec::new(), vec![self.dir(), self.home()]);
        while let Some(folder) = folders.pop() {
            let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
            for entry in entries {
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() => folders.push(entry.path()),
                    Ok(kind) if kind.is_file() => found.push(entry.path()),
                    _ => {}
                }
            }
        }
        found
    }

    /// Writes a model script and returns the value for `--model`.
    pub fn script(&self, lines: &[Line]) -> String {
        let path = self.scratch("script.jsonl");
        let text: String = lines.iter().map(|line| line.to_json() + "\n").collect();
        fs::write(&path, text).expect("a script file");
        format!("script:{}", path.display())
    }

    /// Processes whose working directory is in the workspace; after a run there must be none.
    pub fn processes(&self) -> Vec<u32> {
        let inside = |pid: &u32| {
            fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd.starts_with(self.dir()))
        };
        let entries = fs::read_dir("/proc").expect("a /proc");
        let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        pids.filter(inside).collect()
    }

    /// Waits until no process is left in the workspace; panics if one remains.
    #[track_caller]
    pub fn assert_no_process_left(&self) {
        let begun = Instant::now();
        while !self.processes().is_empty() {
            let line = |pid: &u32| fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let left: Vec<String> = self.processes().iter().map(line).collect();
            assert!(begun.elapsed() < Duration::from_secs(15), "processes left behind: {left:?}");
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Environment of the project's commands: PATH, HOME and LANG, and for each kind of local model server an
    /// address where nothing listens. Nothing else of the machine's environment is passed on.
    pub fn environment(&self) -> Vec<(&'static str, OsString)> {
        let nowhere = OsString::from(self.no_server.base_url());
        vec![
            ("PATH", std::env::var_os("PATH").unwrap_or_default()),
            ("HOME", self.home().into()),
            ("LANG", "C.UTF-8".into()),
            // Not OLLAMA_BASE_URL, which would override the OLLAMA_HOST of a test.
            ("OLLAMA_HOST", nowhere.clone()),
            ("LLAMA_CPP_BASE_URL", nowhere.clone()),
            ("LMSTUDIO_BASE_URL", nowhere.clone()),
            ("VLLM_BASE_URL", nowhere),
        ]
    }

    /// Creates a command in the workspace, with [`environment`](Self::environment).
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command<'_> {
        Command {
            project: self,
            program: program.as_ref().to_owned(),
            args: Vec::new(),
            env: Vec::new(),
            stdin: None,
            limit: LIMIT,
            directory: self.dir(),
        }
    }
}

impl Default for Project {
    fn default() -> Self {
        Self::new()
    }
}

/// One invocation, not yet started.
#[derive(Clone)]
pub struct Command<'a> {
    project: &'a Project,
    program: OsString,
    args: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    stdin: Option<String>,
    limit: Duration,
    directory: PathBuf,
}

impl Command<'_> {
    /// Adds arguments.
    #[must_use]
    pub fn args<A: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.env.push((name.into(), value.as_ref().to_owned()));
        self
    }

    /// Sets stdin; without it stdin stays open and empty, so that waiting for input shows up as a hang.
    #[must_use]
    pub fn stdin(mut self, text: &str) -> Self {
        self.stdin = Some(text.to_owned());
        self
    }

    /// Sets the time after which the test fails.
    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Sets the working directory, if not the workspace.
    #[must_use]
    pub fn in_directory(mut self, directory: &Path) -> Self {
        directory.clone_into(&mut self.directory);
        self
    }

    /// Starts the command in its own process group.
    pub fn start(self) -> Running {
        let stdout = self.project.scratch("stdout");
        let stderr = self.project.scratch("stderr");
        let mut command = std::process::Command::new(&self.program);
        command
            .args(&self.args)
            .env_clear()
            .envs(self.project.environment())
            .envs(self.env.iter().cloned())
            .current_dir(&self.directory)
            .stdin(Stdio::piped())
            .stdout(File::create(&stdout).expect("a file for stdout"))
            .stderr(File::create(&stderr).expect("a file for stderr"))
            .process_group(0);
        let watch = SecretScan::over(self.project.root.path(), &self.env);
        let begun = Instant::now();
        let mut child = command
            .spawn()
            .unwrap_or_else(|error| panic!("{} does not start: {error}", self.program.display()));
        if let Some(text) = &self.stdin {
            use std::io::Write;
            let mut pipe = child.stdin.take().expect("a pipe was asked for");
            // A command may exit without reading its input.
            let _ = pipe.write_all(text.as_bytes());
        }
        let line = self.args.iter().map(|arg| arg.to_string_lossy()).collect::<Vec<_>>().join(" ");
        Running { child, begun, limit: self.limit, line, stdout, stderr, watch }
    }

    /// Starts the command and waits for its end.
    pub fn run(self) -> Outcome {
        self.start().wait()
    }
}

/// A running command. Dropping it kills its process group.
pub struct Running {
    child: Child,
    begun: Instant,
    limit: Duration,
    line: String,
    stdout: PathBuf,
    stderr: PathBuf,
    watch: SecretScan,
}

impl Running {
    /// The process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Process id of its first child: under `script`, the process attached to the terminal.
    pub fn child(&self) -> u32 {
        let (id, begun) = (self.id(), Instant::now());
        loop {
            let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
            if let Some(child) = children.split_whitespace().next().and_then(|child| child.parse().ok()) {
                return child;
            }
            assert!(begun.elapsed() < self.limit, "`fusee {}` starts nothing", self.line);
            thread::sleep(Duration::from_millis(2));
        }
    }

    /// Sends a signal; does nothing if the process has exited.
    pub fn signal(&self, signal: Signal) {
        let _ = kill_process(Pid::from_child(&self.child), signal);
    }

    /// Writes to stdin and keeps it open.
    pub fn type_in(&mut self, keys: &str) {
        use std::io::Write;
        let pipe = self.child.stdin.as_mut().expect("a command whose stdin was not given");
        pipe.write_all(keys.as_bytes()).expect("a command that reads");
    }

    /// Closes stdin, so that the command sees the end of its input.
    pub fn close_stdin(&mut self) {
        drop(self.child.stdin.take());
    }

    /// Output on stdout so far.
    pub fn stdout_so_far(&self) -> String {
        fs::read_to_string(&self.stdout).unwrap_or_default()
    }

    /// Output on stderr so far.
    pub fn stderr_so_far(&self) -> String {
        fs::read_to_string(&self.stderr).unwrap_or_default()
    }

    /// Waits until stdout satisfies the condition; panics if it never does.
    pub fn wait_for_stdout(&mut self, what: &str, seen: impl Fn(&str) -> bool) {
        while !seen(&self.stdout_so_far()) {
            let ended = self.child.try_wait().expect("a child can be waited for").is_some();
            if (ended && !seen(&self.stdout_so_far())) || self.begun.elapsed() > self.limit {
                panic!("no {what} from `fusee {}`:\n{}", self.line, self.describe());
            }
            thread::sleep(Duration::from_millis(2));
        }
    }

    /// Whether the process is still running.
    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("a child can be waited for").is_none()
    }

    /// Waits for the end; past the limit the command is killed and the test fails with its output.
    pub fn wait(mut self) -> Outcome {
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("a child can be waited for") {
                break status;
            }
            if self.begun.elapsed() > self.limit {
                self.end_group();
                panic!("`fusee {}` still ran after {:?}:\n{}", self.line, self.limit, self.describe());
            }
            thread::sleep(Duration::from_millis(1));
        };
        let elapsed = self.begun.elapsed();
        self.watch.assert_kept(&self.line);
        Outcome {
            line: self.line.clone(),
            code: status.code(),
            signal: status.signal(),
            stdout: read_lossy(&self.stdout),
            stderr: read_lossy(&self.stderr),
            elapsed,
        }
    }

    fn describe(&self) -> String {
        format!("--- stdout\n{}\n--- stderr\n{}", read_lossy(&self.stdout), read_lossy(&self.stderr))
    }

    fn end_group(&mut self) {
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.end_group();
        }
    }
}

fn read_lossy(path: &Path) -> String {
    String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned()
}

/// Result of a command.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Arguments, for messages.
    pub line: String,
    /// Exit code, unless killed by a signal.
    pub code: Option<i32>,
    /// Signal that killed the process.
    pub signal: Option<i32>,
    /// Entire stdout.
    pub stdout: String,
    /// Entire stderr.
    pub stderr: String,
    /// Time from start to end.
    pub elapsed: Duration,
}

impl Outcome {
    /// Asserts the exit code; shows the output if it differs.
    #[track_caller]
    pub fn exits(self, code: i32) -> Self {
        assert_eq!(
            self.code,
            Some(code),
            "`fusee {}` (signal {:?})\n--- stdout\n{}\n--- stderr\n{}",
            self.line,
            self.signal,
            self.stdout,
            self.stderr
        );
        self
    }

    /// Whether SIGKILL ended the process.
    pub fn was_killed(&self) -> bool {
        self.signal == Some(Signal::KILL.as_raw())
    }

    /// Events on stdout, checked against the schema and as a complete task lifecycle.
    #[track_caller]
    pub fn events(&self) -> Vec<Value> {
        events::read_checked(&self.stdout, Part::Whole)
    }

    /// Events of a resumed run, which may begin where the killed one stopped.
    #[track_caller]
    pub fn events_after_resume(&self) -> Vec<Value> {
        events::read_checked(&self.stdout, Part::Tail)
    }

    /// Events of a killed run: valid and in order, but without an end.
    #[track_caller]
    pub fn events_until_killed(&self) -> Vec<Value> {
        events::read_checked(&self.stdout, Part::Head)
    }
}
