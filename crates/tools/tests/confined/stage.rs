//! Test fixture: a workspace, a home with secrets, and a directory outside, for one test.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use fusee_tools::sandbox::{
    CommandFailure, CommandRequest, FinishedCommand, Network, Policy, ResourceLimits, SandboxInputs,
};
use fusee_tools::{CommandEnvironment, ForkServer, Sandbox};

pub(crate) type Test = fn(&Stage);

/// Content of files that commands must not be able to read.
pub(crate) const SECRET: &str = "the-secret-of-outside";

/// A variable of the main process that commands must not see.
pub(crate) const SECRET_VARIABLE: &str = "FUSEE_ESCAPE_TOKEN";

/// Where a copy of this program creates its directories, if another user runs it.
pub(crate) const BASE_VARIABLE: &str = "FUSEE_TEST_BASE";

pub(crate) struct Stage {
    pub(crate) fork_server: ForkServer,
    pub(crate) runtime: tokio::runtime::Runtime,
    pub(crate) limits: ResourceLimits,
    /// Contains `workspace`, `home` and `outside`.
    pub(crate) base: PathBuf,
    _directory: Option<tempfile::TempDir>,
}

/// Output and result of a command.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) output: String,
    pub(crate) result: Result<FinishedCommand, CommandFailure>,
}

impl Stage {
    #[expect(clippy::disallowed_methods, reason = "a copy of this program is told where it may write")]
    pub(crate) fn new(fork_server: ForkServer) -> Self {
        // Not in /tmp, which is invisible in the sandbox anyway.
        let given = std::env::var_os(BASE_VARIABLE);
        let base = given.as_deref().map_or(Path::new(env!("CARGO_TARGET_TMPDIR")), Path::new);
        let directory = tempfile::tempdir_in(base).unwrap();
        let mut stage = Self::at(fork_server, directory.path());
        stage._directory = Some(directory);
        stage
    }

    pub(crate) fn at(fork_server: ForkServer, base: &Path) -> Self {
        let base = base.canonicalize().unwrap();
        for name in ["workspace", "home/.ssh", "home/.cargo/bin", "outside"] {
            std::fs::create_dir_all(base.join(name)).unwrap();
        }
        for name in ["home/.ssh/id", "home/.cargo/credentials.toml", "outside/secret"] {
            std::fs::write(base.join(name), SECRET).unwrap();
        }
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        Self { fork_server, runtime, limits: ResourceLimits::defaults(), base, _directory: None }
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.base.join("workspace")
    }

    /// A path in the workspace.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.workspace().join(name)
    }

    pub(crate) fn outside(&self, name: &str) -> PathBuf {
        self.base.join("outside").join(name)
    }

    pub(crate) fn environment(&self) -> CommandEnvironment {
        let home = self.base.join("home");
        let cargo = home.join(".cargo").into_os_string();
        let own = [
            ("HOME", home.into_os_string()),
            ("CARGO_HOME", cargo),
            ("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".into()),
            ("LANG", "C.UTF-8".into()),
            (SECRET_VARIABLE, SECRET.into()),
        ];
        CommandEnvironment::allowed(own.map(|(name, value)| (OsString::from(name), value)))
    }

    pub(crate) fn policy(&self, environment: &CommandEnvironment) -> Policy {
        self.policy_with(environment, Network::Own)
    }

    pub(crate) fn policy_with(&self, environment: &CommandEnvironment, network: Network) -> Policy {
        let workspace = self.workspace();
        let own = [self.base.join("state")];
        Policy::defaults(&SandboxInputs { workspace: &workspace, environment, own: &own, network }).unwrap()
    }

    /// A namespace sandbox with the default policy.
    pub(crate) fn sandbox(&self) -> Sandbox {
        Sandbox::namespaces(self.policy(&self.environment()))
    }

    /// A Landlock sandbox with the default policy.
    pub(crate) fn fence(&self) -> Sandbox {
        Sandbox::landlock(self.policy(&self.environment()))
    }

    pub(crate) fn run(&self, sandbox: &Sandbox, command: &str) -> Outcome {
        self.run_in(sandbox, command, &self.workspace(), &self.environment())
    }

    pub(crate) fn run_in(
        &self,
        sandbox: &Sandbox,
        command: &str,
        directory: &Path,
        environment: &CommandEnvironment,
    ) -> Outcome {
        self.runtime.block_on(self.run_until(
            sandbox,
            command,
            directory,
            environment,
            std::future::pending(),
        ))
    }

    pub(crate) async fn run_until(
        &self,
        sandbox: &Sandbox,
        command: &str,
        directory: &Path,
        environment: &CommandEnvironment,
        stop: impl Future<Output = ()>,
    ) -> Outcome {
        let directory = std::fs::File::open(directory).unwrap().into();
        let limits = self.limits;
        let request = CommandRequest { command, directory, input: None, environment, sandbox, limits };
        let mut output = Vec::new();
        let result = self.fork_server.run(request, |bytes| output.extend_from_slice(bytes), stop).await;
        Outcome { output: String::from_utf8_lossy(&output).into_owned(), result }
    }

    /// Runs a command that must succeed, and returns its output.
    pub(crate) fn good(&self, sandbox: &Sandbox, command: &str) -> String {
        let outcome = self.run(sandbox, command);
        assert!(outcome.is_good(), "{command}\n{outcome:?}");
        outcome.output
    }

    /// Runs a command as a plain child process, without any of the code under test, and returns its output.
    #[expect(clippy::disallowed_methods, reason = "runs outside the supervisor on purpose")]
    pub(crate) fn bare(&self, command: &str) -> String {
        let output = Command::new("/bin/sh")
            .args(["-c", command])
            .current_dir(self.workspace())
            .env("HOME", self.base.join("home"))
            .env(SECRET_VARIABLE, SECRET)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    }

    /// Waits until a file in the workspace holds a complete line, and returns it.
    pub(crate) fn line_of(&self, name: &str) -> String {
        let path = self.path(name);
        eventually(|| std::fs::read_to_string(&path).is_ok_and(|text| text.ends_with('\n')));
        std::fs::read_to_string(&path).unwrap().trim().to_owned()
    }

    pub(crate) fn write(&self, name: &str, content: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
}

impl Outcome {
    pub(crate) fn is_good(&self) -> bool {
        self.result
            .as_ref()
            .is_ok_and(|finished| finished.ending == fusee_tools::sandbox::CommandEnd::Exited(0))
    }
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

pub(crate) fn eventually(condition: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !condition() {
        assert!(Instant::now() < deadline, "waited in vain");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// PIDs of processes with this word in their command line. Zombies have no command line.
pub(crate) fn processes_with(word: &str) -> Vec<i32> {
    let own = std::process::id().cast_signed();
    std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
        .filter(|pid| *pid != own)
        .filter(|pid| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.split(|byte| *byte == 0).any(|part| part == word.as_bytes())
        })
        .collect()
}
