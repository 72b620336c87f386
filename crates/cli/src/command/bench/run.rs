//! `fusee bench run`, and the part of it that `fusee bench resume` shares: running a job with progress.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use fusee::engine::run::{ExitStatus, FailureClass, SandboxMode};
use fusee::launch::LaunchLimits;
use fusee::system;
use fusee_bench::job::{Job, JobEnd, JobOptions};
use fusee_bench::lock::{JobSettings, Variant};
use fusee_bench::results::TrialResult;
use tokio::signal::unix::{SignalKind, signal};

use super::progress::Progress;
use super::setup::{BenchSetup, SelectionFlags, seconds, suite_path};
use super::show;
use crate::command::launcher::{CommandLauncher, LaunchFlags};
use crate::config::flags::{ApprovalFlags, DirectoryFlag, ModelFlags, words};
use crate::config::{self, SANDBOX_MODES};
use crate::process::Process;
use crate::process::clock;
use crate::process::error::CliError;
use crate::process::stdio;

/// Trials at the same time if no server tells its number of slots.
const USUAL_CONCURRENCY: usize = 4;

/// Run a suite and score every trial.
///
/// Each model, flow and agent tries each case. After a failed try the model gets another one with the test output, as in
/// the polyglot benchmark. Results are written to the folder of --out; `fusee bench resume`, or the same command again,
/// continues a job that was stopped or killed.
///
/// Exits with 0 if every trial was graded, with 1 if some could not be graded, and with 2 on a bad suite or bad flags.
#[derive(Args)]
pub(crate) struct RunBenchArgs {
    /// Folder of the suite, a suite.toml, or `demo`
    #[arg(value_name = "SUITE")]
    suite: PathBuf,
    /// Model to measure; can be repeated [default: the configured model]
    #[arg(short, long = "model", value_name = "MODEL")]
    models: Vec<String>,
    /// Base URL of the models' server
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,
    /// Wire format of the models, as for `fusee run`
    #[arg(long, value_name = "API")]
    api: Option<String>,
    /// Flow to measure; can be repeated [default: the configured flow]
    #[arg(long = "flow", value_name = "FLOW")]
    flows: Vec<String>,
    /// Agent file to measure; can be repeated
    #[arg(long = "agent", value_name = "FILE")]
    agents: Vec<PathBuf>,
    /// Tries per attempt; each try after the first gets the test output
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=10))]
    tries: u32,
    /// Attempts per case, each from the start
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    attempts: u32,
    /// Folder for the results [default: bench/SUITE-DATE-TIME]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Let the runtime run the tests while the model works, as `--verify` does in `fusee run`
    #[arg(long)]
    verify: bool,
    /// Maximum number of model replies per run
    #[arg(long, value_name = "N")]
    max_turns: Option<u32>,
    /// Maximum number of tokens in the context of a run
    #[arg(long, value_name = "N")]
    max_tokens: Option<u64>,
    /// Maximum working time of a run
    #[arg(long, value_name = "SECONDS")]
    trial_timeout: Option<u64>,
    /// Print what would run, and run nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    selection: SelectionFlags,
    #[command(flatten)]
    execution: ExecutionFlags,
    #[command(flatten)]
    directory: DirectoryFlag,
}

/// How a job is run, without changing what it measures.
#[derive(Args, Clone)]
#[command(next_help_heading = "Execution")]
pub(crate) struct ExecutionFlags {
    /// Number of concurrent trials [default: the slots that the models' server reports, as llama.cpp does, else 4]
    #[arg(short = 'n', long, value_name = "N", value_parser = at_least_one)]
    concurrent: Option<usize>,
    /// Budget for the whole job, in US dollars; when it is spent, running trials are stopped and can be resumed
    #[arg(long, value_name = "USD")]
    budget_usd: Option<f64>,
    /// Time limit for the whole job
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<u64>,
    /// Run trials again that failed for these causes, comma-separated: sandbox, provider, timeout, overflow,
    /// budget, refusal, agent_error, verifier_broken, cancelled
    #[arg(long, value_name = "CAUSES", value_delimiter = ',')]
    redo: Vec<FailureClass>,
    /// Whether to run tests and commands in the sandbox; `off` runs them unsandboxed
    #[arg(long, value_name = "on|off", value_parser = words::<SandboxMode>(SANDBOX_MODES))]
    sandbox: Option<SandboxMode>,
    /// Print the result of each trial as a line of JSON when the trial ends
    #[arg(long)]
    json: bool,
}

fn at_least_one(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|number| *number > 0).ok_or_else(|| "must be at least 1".to_owned())
}

impl ExecutionFlags {
    fn options(&self, concurrent: usize) -> JobOptions {
        JobOptions {
            concurrent,
            budget_usd: self.budget_usd,
            timeout: seconds(self.timeout),
            redo: self.redo.clone(),
        }
    }

    pub(super) async fn setup(&self, process: &Process) -> Result<BenchSetup, CliError> {
        let tests = self.concurrent.unwrap_or(usize::MAX);
        BenchSetup::new(self.sandbox.unwrap_or_default(), tests, process).await
    }
}

impl RunBenchArgs {
    fn settings(&self, process: &Process) -> JobSettings {
        let directory = process.environment.directory();
        let agents: Vec<PathBuf> = self.agents.iter().map(|agent| directory.join(agent)).collect();
        JobSettings {
            suite: suite_path(&self.suite, process),
            selection: self.selection.selection(),
            variants: variants(&self.models, &self.flows, &agents),
            tries: self.tries,
            attempts: self.attempts,
            base_url: self.base_url.clone(),
            api: self.api.clone(),
            limits: LaunchLimits {
                max_turns: self.max_turns,
                max_tokens: self.max_tokens,
                timeout_s: self.trial_timeout,
                patience_s: None,
                budget_usd: None,
            },
            verify: self.verify,
            test_commands: self.selection.test_commands(),
        }
    }

    fn out(&self, now_ms: i64, process: &Process) -> PathBuf {
        let suite = self.suite.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let stamp: String = clock::rfc3339(now_ms).chars().filter(char::is_ascii_digit).take(14).collect();
        let (day, time) = stamp.split_at(8.min(stamp.len()));
        let usual = || PathBuf::from("bench").join(format!("{suite}-{day}-{time}"));
        process.environment.directory().join(self.out.clone().unwrap_or_else(usual))
    }
}

/// Every combination of what was named.
fn variants(models: &[String], flows: &[String], agents: &[PathBuf]) -> Vec<Variant> {
    fn each<T: Clone>(values: &[T]) -> Vec<Option<T>> {
        if values.is_empty() { vec![None] } else { values.iter().cloned().map(Some).collect() }
    }
    let mut variants = Vec::new();
    for model in each(models) {
        for flow in each(flows) {
            for agent in each(agents) {
                variants.push(Variant { model: model.clone(), flow: flow.clone(), agent });
            }
        }
    }
    variants.dedup();
    variants
}

/// Runs the command.
pub(super) async fn run(args: RunBenchArgs, process: &Process) -> Result<ExitStatus, CliError> {
    let now_ms = now_ms();
    let (settings, out) = (args.settings(process), args.out(now_ms, process));
    let setup = args.execution.setup(process).await?;
    let id = job_id()?;
    let job = Job::create(&out, &setup.scratch, settings, &setup.machine, &id, &clock::rfc3339(now_ms))?;
    tell_problems(&job);
    if args.dry_run {
        stdio::print(&job.trial_names().iter().map(|name| format!("{name}\n")).collect::<String>())?;
        return Ok(exit_of(&job, JobEnd::Complete, &[]));
    }
    perform(&job, &out, setup, &args.execution, args.directory.directory.as_deref(), process).await
}

/// Runs a job to its end, with progress on stderr, and prints its table.
pub(super) async fn perform(
    job: &Job,
    out: &Path,
    setup: BenchSetup,
    execution: &ExecutionFlags,
    directory: Option<&Path>,
    process: &Process,
) -> Result<ExitStatus, CliError> {
    let approval = ApprovalFlags { sandbox: execution.sandbox, ..ApprovalFlags::default() };
    let flags = LaunchFlags { approval, ..LaunchFlags::default() };
    let launcher = Arc::new(CommandLauncher::new(process, directory, flags)?);
    let concurrent = match execution.concurrent {
        Some(given) => given,
        None => usual_concurrency(&launcher, &job.lock().settings).await,
    };
    let (total, budget) = (job.trial_names().len(), execution.budget_usd.is_some());
    let mut progress = Progress::new(total, execution.json, budget, &process.environment);
    let mut printed = Ok(());
    let ended = job
        .run(launcher, setup.scorer, &execution.options(concurrent), stop_signal(), |event| {
            if let Err(error) = progress.show(&event) {
                printed = Err(error);
            }
        })
        .await;
    progress.clear();
    let (end, results) = ended?;
    printed?;
    job.write_summary(&results, clock::rfc3339(now_ms()).get(..10).unwrap_or_default())?;
    if end == JobEnd::Complete {
        job.clean_up();
    }
    if !execution.json {
        stdio::print(&show::table(&results))?;
    }
    let exit = exit_of(job, end, &results);
    let shown = out.strip_prefix(process.environment.directory()).unwrap_or(out).display();
    let resume = format!("`fusee bench resume {shown}` continues");
    stdio::error(&match end {
        JobEnd::Complete => {
            format!("results in {shown}; `fusee bench report {shown}` makes a page of them\n")
        }
        JobEnd::Stopped => format!("stopped; {resume}\n"),
        JobEnd::TimedOut => format!("stopped at the time limit of the job; {resume}\n"),
        JobEnd::OutOfBudget => {
            format!("stopped: the budget of the job is spent; {resume}, with a larger --budget-usd\n")
        }
    });
    Ok(exit)
}

/// Trials at the same time if the user does not say: what the busiest server has room for. More would only wait in its
/// queue, while their time runs.
async fn usual_concurrency(launcher: &CommandLauncher, settings: &JobSettings) -> usize {
    let mut least = None;
    for variant in &settings.variants {
        let model = ModelFlags {
            model: variant.model.clone(),
            base_url: settings.base_url.clone(),
            api: settings.api.as_deref().and_then(config::word),
        };
        let slots = launcher.slots(&model, variant.agent.as_deref()).await;
        let slots = slots.and_then(|slots| usize::try_from(slots).ok()).unwrap_or(USUAL_CONCURRENCY);
        least = Some(least.map_or(slots, |least: usize| least.min(slots)));
    }
    least.unwrap_or(USUAL_CONCURRENCY).max(1)
}

fn exit_of(job: &Job, end: JobEnd, results: &[TrialResult]) -> ExitStatus {
    match end {
        JobEnd::Stopped => ExitStatus::Cancelled,
        JobEnd::Complete if job.problems.is_empty() && results.iter().all(TrialResult::is_graded) => {
            ExitStatus::Completed
        }
        _ => ExitStatus::Failed,
    }
}

/// Reports cases that cannot be used or run.
pub(super) fn tell_problems(job: &Job) {
    for problem in &job.problems {
        stdio::error(&format!("error: {problem}\n"));
    }
    for (case, reason) in &job.skipped {
        stdio::error(&format!("skipped {case}: {reason}\n"));
    }
}

/// Completes at the first SIGINT or SIGTERM.
async fn stop_signal() {
    let (Ok(mut interrupt), Ok(mut terminate)) =
        (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}

fn now_ms() -> i64 {
    use fusee::engine::journal::Clock as _;
    system::SystemClock.now_ms()
}

/// A short id that begins the ids of a job's runs: the random end of a run id.
fn job_id() -> Result<String, CliError> {
    let id = system::new_run_id().map_err(CliError::failed)?;
    let random: String = id.as_str().chars().filter(char::is_ascii_alphanumeric).collect();
    Ok(format!("bench-{}", &random[random.len().saturating_sub(8)..]))
}
