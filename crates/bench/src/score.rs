//! Scoring: runs the original tests on the work, in the sandbox, offline and with a time limit, and reads the verdict.

mod reward;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use fusee::engine::run::{ActiveSandbox, FailureClass};
use fusee::tools::CommandSettings;
use fusee::tools::sandbox::{CommandEnd, CommandRequest, FinishedCommand, MovedFolder};
use fusee::{SandboxMode, SandboxOptions};
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use crate::case::{Case, Reference, Verdict};
use crate::feedback;
use crate::working_copy::WorkingCopy;

/// Maximum number of output bytes that are kept, from the end.
const MAX_OUTPUT: usize = 256 * 1024;

/// Where Harbor's tests write their logs.
const LOGS: &str = "/logs";

/// Runs tests. Clones share the limit on tests that run at the same time.
#[derive(Clone)]
pub struct Scorer {
    commands: CommandSettings,
    mode: SandboxMode,
    own: Vec<PathBuf>,
    running: Arc<Semaphore>,
}

/// Result of scoring.
#[derive(Clone, Debug, PartialEq)]
pub enum Score {
    /// The tests judged the work.
    Graded(Grade),
    /// The work could not be judged: class and description of the failure.
    Failed(FailureClass, String),
}

/// Verdict of the tests.
#[derive(Clone, Debug, PartialEq)]
pub struct Grade {
    /// Whether the work solves the case.
    pub passed: bool,
    /// Reward; 0 or 1 where the tests give none.
    pub reward: f64,
    /// Whether the tests were stopped at their time limit.
    pub timed_out: bool,
    /// Output of the tests, prepared for a model.
    pub feedback: String,
}

/// A command that has ended.
struct Ended {
    finished: FinishedCommand,
    output: String,
}

impl Scorer {
    /// Runs tests with these settings of commands, at most `concurrent` at a time. `own` are folders of the program
    /// that no test may see.
    pub fn new(commands: CommandSettings, mode: SandboxMode, own: Vec<PathBuf>, concurrent: usize) -> Self {
        Self { commands, mode, own, running: Arc::new(Semaphore::new(concurrent.max(1))) }
    }

    /// Scores the work on a case.
    pub(crate) async fn score(&self, case: &Case, copy: &WorkingCopy) -> Score {
        let broken = |message: String| Score::Failed(FailureClass::VerifierBroken, message);
        if let Err(error) = copy.copy_for_scoring(case) {
            return broken(error.to_string());
        }
        let folders = match self.folders(case, copy, None) {
            Ok(folders) => folders,
            Err(error) => return broken(error.to_string()),
        };
        let limit = Duration::from_secs(case.test.timeout_s);
        let ended = match self.run(&case.test.command, &copy.scored(), folders, limit).await {
            Ok(ended) => ended,
            Err(error) => return Score::Failed(FailureClass::Sandbox, error),
        };
        let timed_out = ended.finished.stopped;
        let directory = case.mounted_at.clone().unwrap_or_else(|| copy.scored());
        let mut feedback = feedback::normalise(&ended.output, &directory);
        if timed_out {
            feedback.push_str(&format!("\n[the tests were stopped after {} s]", case.test.timeout_s));
        }
        let reward = match (&case.test.verdict, ended.finished.ending) {
            _ if timed_out => 0.0,
            (Verdict::ExitCode, CommandEnd::Exited(0)) => 1.0,
            // The shell reports this when the program of the tests is not there.
            (Verdict::ExitCode, CommandEnd::Exited(code @ (126 | 127))) => {
                return broken(format!(
                    "the test command could not be started (exit code {code}): {feedback}"
                ));
            }
            (Verdict::ExitCode, _) => 0.0,
            (Verdict::RewardFile { .. }, _) => match reward::read(&copy.logs().join("verifier")) {
                Ok(reward) => reward,
                Err(message) => return broken(message),
            },
        };
        Score::Graded(Grade { passed: reward >= 1.0, reward, timed_out, feedback })
    }

    /// Puts the reference solution of a case into its working copy.
    pub(crate) async fn solve(
        &self,
        case: &Case,
        reference: &Reference,
        copy: &WorkingCopy,
    ) -> Result<(), String> {
        copy.put_reference(reference).map_err(|error| error.to_string())?;
        let Reference::Script(script) = reference else { return Ok(()) };
        let folders = self.folders(case, copy, script.parent()).map_err(|error| error.to_string())?;
        let folders: Vec<MovedFolder> = folders
            .into_iter()
            .map(|folder| match folder.source == copy.scored() {
                true => MovedFolder { source: copy.project(), ..folder },
                false => folder,
            })
            .collect();
        let limit = Duration::from_secs(case.test.timeout_s);
        let ended = self.run("bash /solution/solve.sh", &copy.project(), folders, limit).await?;
        match ended.finished.ending {
            _ if ended.finished.stopped => {
                Err(format!("{} does not end within {} s", script.display(), case.test.timeout_s))
            }
            CommandEnd::Exited(0) => Ok(()),
            _ => Err(format!("{} fails:\n{}", script.display(), ended.output)),
        }
    }

    /// Folders that the tests of a case expect at fixed paths.
    fn folders(
        &self,
        case: &Case,
        copy: &WorkingCopy,
        solution: Option<&Path>,
    ) -> std::io::Result<Vec<MovedFolder>> {
        let Some(workdir) = &case.mounted_at else { return Ok(Vec::new()) };
        let folder = |source: &Path, target: &Path, writable| {
            Ok::<_, std::io::Error>(MovedFolder {
                source: source.canonicalize()?,
                target: target.to_owned(),
                writable,
            })
        };
        for name in ["verifier", "agent", "artifacts"] {
            std::fs::create_dir_all(copy.logs().join(name))?;
        }
        std::fs::create_dir_all(copy.scored())?;
        let mut folders =
            vec![folder(&copy.scored(), workdir, true)?, folder(&copy.logs(), Path::new(LOGS), true)?];
        if let Verdict::RewardFile { tests } = &case.test.verdict {
            folders.push(folder(tests, Path::new("/tests"), false)?);
        }
        if let Some(solution) = solution {
            folders.push(folder(solution, Path::new("/solution"), false)?);
        }
        Ok(folders)
    }

    /// Runs a command in a sandbox around `directory`. The error says why it could not be run.
    async fn run(
        &self,
        command: &str,
        directory: &Path,
        moved: Vec<MovedFolder>,
        limit: Duration,
    ) -> Result<Ended, String> {
        let _permit = self.running.acquire().await.map_err(|error| error.to_string())?;
        let options = SandboxOptions {
            moved,
            limits: fusee::tools::sandbox::ResourceLimits::defaults(),
            ..SandboxOptions::default()
        };
        let directory =
            directory.canonicalize().map_err(|error| format!("{}: {error}", directory.display()))?;
        let sandbox =
            ActiveSandbox::activate(self.mode, options, &directory, self.commands.clone(), &self.own).await;
        if !sandbox.preapproved {
            return Err(sandbox.problem.unwrap_or_else(|| "no sandbox is available".to_owned()));
        }
        let commands = sandbox.commands;
        let fork_server = commands.fork_server.as_ref().ok_or("the fork server is not running")?;
        let opened =
            std::fs::File::open(&directory).map_err(|error| format!("{}: {error}", directory.display()))?;
        let request = CommandRequest {
            command,
            directory: opened.into(),
            input: None,
            environment: &commands.environment,
            sandbox: &commands.sandbox,
            limits: commands.limits,
        };
        let output = Mutex::new(Vec::new());
        let keep = |bytes: &[u8]| {
            let mut output = output.lock();
            output.extend_from_slice(bytes);
            if output.len() > 2 * MAX_OUTPUT {
                let surplus = output.len() - MAX_OUTPUT;
                output.drain(..surplus);
            }
        };
        let finished = fork_server
            .run(request, keep, tokio::time::sleep(limit))
            .await
            .map_err(|error| error.to_string())?;
        let output = output.into_inner();
        let kept = &output[output.len().saturating_sub(MAX_OUTPUT)..];
        Ok(Ended { finished, output: String::from_utf8_lossy(kept).into_owned() })
    }
}
