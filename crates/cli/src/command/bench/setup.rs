//! What the benchmark commands take from this process: the sandbox that tests run in, the machine, folders.

use std::path::{Path, PathBuf};
use std::time::Duration;

use fusee::engine::run::{ActiveSandbox, SandboxMode, SandboxOptions};
use fusee::engine::tools::CommandSettings;
use fusee_bench::job::JobError;
use fusee_bench::language::TestCommands;
use fusee_bench::machine::HostMachine;
use fusee_bench::score::Scorer;
use fusee_bench::suite::{DEMO, Selection, Slice};

use clap::Args;

use crate::process::Process;
use crate::process::error::CliError;

/// Which cases of a suite.
#[derive(Args, Clone, Default)]
#[command(next_help_heading = "Cases")]
pub(super) struct SelectionFlags {
    /// Only these languages, comma-separated
    #[arg(long, value_name = "LANGUAGES", value_delimiter = ',')]
    languages: Vec<String>,
    /// Only cases whose name or keywords contain one of these words, comma-separated
    #[arg(long, value_name = "WORDS", value_delimiter = ',')]
    keywords: Vec<String>,
    /// Random order, the same for the same SEED [default: by name]
    #[arg(long, value_name = "SEED")]
    shuffle: Option<u64>,
    /// Only this range of the cases, such as 0:10
    #[arg(long, value_name = "FROM:TO")]
    slice: Option<Slice>,
    /// Maximum number of cases
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Use this test command for a language; can be repeated
    #[arg(long = "test-command", value_name = "LANGUAGE=COMMAND", value_parser = test_command)]
    test_commands: Vec<(String, String)>,
}

fn test_command(text: &str) -> Result<(String, String), String> {
    let parts =
        text.split_once('=').filter(|(language, command)| !language.is_empty() && !command.is_empty());
    parts
        .map(|(language, command)| (language.to_owned(), command.to_owned()))
        .ok_or_else(|| format!("`{text}` is not LANGUAGE=COMMAND"))
}

impl SelectionFlags {
    pub(super) fn selection(&self) -> Selection {
        Selection {
            languages: self.languages.clone(),
            keywords: self.keywords.clone(),
            shuffle: self.shuffle,
            slice: self.slice,
            limit: self.limit,
        }
    }

    pub(super) fn test_commands(&self) -> TestCommands {
        self.test_commands.iter().cloned().collect()
    }
}

/// What running tests needs.
pub(super) struct BenchSetup {
    pub(super) machine: HostMachine,
    pub(super) scorer: Scorer,
    pub(super) scratch: PathBuf,
}

impl BenchSetup {
    /// Finds out what the machine offers. Tests run in the sandbox unless the user turned it off.
    pub(super) async fn new(
        mode: SandboxMode,
        concurrent: usize,
        process: &Process,
    ) -> Result<Self, CliError> {
        let environment = &process.environment;
        let scratch = scratch_folder(process)?;
        let own: Vec<PathBuf> =
            [environment.config_folder(), environment.state_folder()].into_iter().flatten().collect();
        let commands = CommandSettings {
            fork_server: process.fork_server.clone(),
            environment: process.command_environment(),
            ..CommandSettings::default()
        };
        let probe =
            ActiveSandbox::activate(mode, SandboxOptions::default(), &scratch, commands.clone(), &own).await;
        if !probe.preapproved {
            let problem = probe.problem.unwrap_or_default();
            let error =
                CliError::usage(format!("tests cannot be run: no sandbox is available here ({problem})"));
            return Err(error.help("`--sandbox off` runs them unsandboxed"));
        }
        let path = environment.variable("PATH").map(|path| std::env::split_paths(path).collect());
        let machine = HostMachine::new(path.unwrap_or_default(), probe.state.starts_with("namespaces"));
        // Tests are computation: more of them at a time than processors only slow each other down.
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let scorer = Scorer::new(commands, mode, own, concurrent.min(processors));
        Ok(Self { machine, scorer, scratch })
    }
}

/// The folder for working copies: in the folder for temporary files, outside any project, and private.
pub(super) fn scratch_folder(process: &Process) -> Result<PathBuf, CliError> {
    use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
    let user = rustix::process::getuid().as_raw();
    let temporary = process.environment.variable("TMPDIR").filter(|path| !path.is_empty());
    let temporary = temporary.map_or_else(|| PathBuf::from("/tmp"), PathBuf::from);
    let folder = temporary.join(format!("fusee-bench-{user}"));
    let fault = |error: std::io::Error| CliError::failed(format!("{}: {error}", folder.display()));
    match std::fs::DirBuilder::new().mode(0o700).create(&folder) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
        made => made.map_err(fault)?,
    }
    let found = std::fs::symlink_metadata(&folder).map_err(fault)?;
    if !found.is_dir() || found.uid() != user {
        return Err(CliError::failed(format!("{} is owned by another user", folder.display())));
    }
    folder.canonicalize().map_err(fault)
}

/// The suite as it is stored: `demo`, unless there is a folder of that name, or an absolute path.
pub(super) fn suite_path(given: &Path, process: &Process) -> PathBuf {
    let path = process.environment.directory().join(given);
    if given == Path::new(DEMO) && !path.exists() {
        return given.to_owned();
    }
    path.canonicalize().unwrap_or(path)
}

pub(super) fn seconds(seconds: Option<u64>) -> Option<Duration> {
    seconds.map(Duration::from_secs)
}

impl From<JobError> for CliError {
    fn from(error: JobError) -> Self {
        match error {
            JobError::Usage(message) => Self::usage(message),
            JobError::Failed(message) => Self::failed(message),
            JobError::Suite(problems) if problems.is_empty() => {
                Self::usage("no case is selected").help("`fusee bench list SUITE` lists the cases of a suite")
            }
            JobError::Suite(problems) => {
                let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
                Self::usage(format!("the suite has no usable case:\n{}", lines.join("\n")))
            }
            JobError::Launch(error) => {
                let made = match error.kind {
                    fusee::launch::LaunchErrorKind::Usage => Self::usage(error.message),
                    _ => Self::failed(error.message),
                };
                Self { help: error.help, ..made }
            }
        }
    }
}
