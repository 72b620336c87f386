//! A job: every variant tries every case, a number of times, in one process.
//!
//! The job's folder is its state. `lock.json` says what is measured; the `result.json` of a trial is written last, in
//! one piece, so a trial either has its result or is continued from the journal and its working copy. `results.jsonl`
//! grows as trials end and is put in order at the end.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::future::Future;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use fusee::engine::journal::RunStatus;
use fusee::engine::run::FailureClass;
use fusee::launch::Launcher;
use tokio::task::JoinSet;

use crate::atif;
use crate::case::Case;
use crate::lock::{JobSettings, Lock};
use crate::machine::HostMachine;
use crate::ownership;
use crate::patch;
use crate::results::{self, TrialResult, write_json, write_whole};
use crate::score::Scorer;
use crate::suite::{DEMO, Suite, SuiteProblem};
use crate::summary;
use crate::trial::{FinishedTrial, Trial, TrialContext, TrialError};
use crate::trial_cost::TrialCosts;
use crate::working_copy::WorkingCopy;

pub use crate::job_error::JobError;

/// Interval at which the time limit and the budget are checked.
const TICK: Duration = Duration::from_secs(1);

/// A job that is ready to run.
pub struct Job {
    folder: PathBuf,
    scratch: PathBuf,
    lock: Lock,
    cases: Vec<Arc<Case>>,
    /// Cases that cannot be used, and why.
    pub problems: Vec<SuiteProblem>,
    /// Cases that this machine cannot run, and why.
    pub skipped: Vec<(String, String)>,
}

/// How a job is run; none of it changes what is measured.
#[derive(Clone, Debug, Default)]
pub struct JobOptions {
    /// Trials at the same time.
    pub concurrent: usize,
    /// Budget in US dollars. The trials are stopped within about a second after it is spent, and can be resumed.
    pub budget_usd: Option<f64>,
    /// Time after which the job stops.
    pub timeout: Option<Duration>,
    /// Classes of failures whose trials are run again.
    pub redo: Vec<FailureClass>,
}

/// Progress of a job.
#[derive(Debug)]
pub enum JobEvent<'e> {
    /// This many trials have no result yet.
    Waiting {
        /// Their number.
        count: usize,
    },
    /// A second has passed.
    Tick,
    /// A trial starts or is resumed.
    Started {
        /// Its name: case, attempt and variant.
        name: &'e str,
    },
    /// A trial has its result.
    Finished {
        /// Case, attempt and variant.
        name: &'e str,
        /// Grade and cost, as written to `results.jsonl`.
        result: &'e TrialResult,
    },
}

/// Whether every trial was done, or what stopped the job before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobEnd {
    /// Every trial has a result.
    Complete,
    /// The user stopped it.
    Stopped,
    /// The time limit was reached.
    TimedOut,
    /// The budget is spent.
    OutOfBudget,
}

impl Job {
    /// Prepares a job in `folder`: a new one, or the existing one if it measures the same. `scratch` is where
    /// working copies are made.
    pub fn create(
        folder: &Path,
        scratch: &Path,
        settings: JobSettings,
        machine: &HostMachine,
        id: &str,
        created: &str,
    ) -> Result<Self, JobError> {
        if let Some(lock) = Lock::read(folder).map_err(JobError::Usage)? {
            if lock.settings != settings {
                return Err(JobError::Usage(format!(
                    "{} contains a job with different settings; choose another --out, or continue it with `fusee bench resume {}`",
                    folder.display(),
                    folder.display()
                )));
            }
            return Self::open(folder, scratch, machine);
        }
        let (mut job, cases) = Self::read(folder, scratch, &settings, machine)?;
        job.lock = Lock::new(id.to_owned(), created.to_owned(), settings, &cases);
        job.cases = cases.into_iter().map(Arc::new).collect();
        Ok(job)
    }

    /// Prepares the job in `folder` to be continued.
    pub fn open(folder: &Path, scratch: &Path, machine: &HostMachine) -> Result<Self, JobError> {
        let lock = Lock::read(folder).map_err(JobError::Usage)?.ok_or_else(|| {
            JobError::Usage(format!("{} is not a job folder: it has no lock.json", folder.display()))
        })?;
        let (mut job, cases) = Self::read(folder, scratch, &lock.settings, machine)?;
        if let Some(agent) = lock.changed_agent() {
            return Err(JobError::Usage(format!(
                "agent file {} has changed since the job started; restore it or start a new job",
                agent.display()
            )));
        }
        let now = Lock::new(lock.job.clone(), lock.created.clone(), lock.settings.clone(), &cases);
        let mut by_name: BTreeMap<String, Case> =
            cases.into_iter().map(|case| (case.name.clone(), case)).collect();
        for locked in &lock.cases {
            let changed = now.cases.iter().any(|case| case.name == locked.name && case.hash != locked.hash);
            match by_name.remove(&locked.name) {
                Some(_) if changed => {
                    return Err(JobError::Usage(format!(
                        "case `{}` has changed since the job started; restore it or start a new job",
                        locked.name
                    )));
                }
                Some(case) => job.cases.push(Arc::new(case)),
                None => job.problems.push(SuiteProblem {
                    case: locked.name.clone(),
                    file: lock.settings.suite.clone(),
                    line: None,
                    message: format!("case `{}` of the job is no longer in the suite", locked.name),
                }),
            }
        }
        job.lock = lock;
        Ok(job)
    }

    fn read(
        folder: &Path,
        scratch: &Path,
        settings: &JobSettings,
        machine: &HostMachine,
    ) -> Result<(Self, Vec<Case>), JobError> {
        let suite = read_suite(&settings.suite, scratch, settings)?;
        let mut skipped = Vec::new();
        let cases: Vec<Case> = settings
            .selection
            .apply(&suite)
            .into_iter()
            .filter(|case| match case.skip_reason(machine) {
                Some(reason) => {
                    skipped.push((case.name.clone(), reason));
                    false
                }
                None => true,
            })
            .collect();
        if cases.is_empty() && skipped.is_empty() {
            return Err(JobError::Suite(suite.problems));
        }
        let lock = Lock::new(String::new(), String::new(), settings.clone(), &[]);
        let job = Self {
            folder: folder.to_owned(),
            scratch: scratch.to_owned(),
            lock,
            cases: Vec::new(),
            problems: suite.problems,
            skipped,
        };
        Ok((job, cases))
    }

    /// What the job measures.
    pub fn lock(&self) -> &Lock {
        &self.lock
    }

    /// Names of all trials, in the order in which they start.
    pub fn trial_names(&self) -> Vec<String> {
        self.trials().iter().map(|trial| self.name(trial)).collect()
    }

    fn name(&self, trial: &Trial) -> String {
        let name = format!("{}.{}", trial.case.name, trial.attempt);
        match self.lock.settings.variants.len() {
            0 | 1 => name,
            _ => format!("{}/{name}", trial.variant.folder(trial.variant_number)),
        }
    }

    /// All trials. Attempts come last, so that an early stop has seen every case; variants alternate, so that they
    /// share what varies over time.
    fn trials(&self) -> Vec<Trial> {
        let settings = &self.lock.settings;
        let mut trials = Vec::new();
        for attempt in 1..=settings.attempts.max(1) {
            for case in &self.cases {
                for (number, variant) in settings.variants.iter().enumerate() {
                    trials.push(self.trial(case, variant, number, attempt));
                }
            }
        }
        trials
    }

    fn trial(&self, case: &Arc<Case>, variant: &crate::lock::Variant, number: usize, attempt: u32) -> Trial {
        let several = self.lock.settings.variants.len() > 1;
        let fits = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' };
        let short: String = case.name.chars().map(fits).take(24).collect();
        // Long names may begin alike.
        let mark = match case.name.len() > short.len() {
            true => format!("~{}", &blake3::hash(case.name.as_bytes()).to_hex()[..6]).replace('~', "-"),
            false => String::new(),
        };
        let id = format!("{}.{short}{mark}.{}.{attempt}", self.lock.job, number + 1);
        let name = format!("{}.{attempt}", case.name);
        let trials = self.folder.join("trials");
        Trial {
            copy: WorkingCopy::at(self.scratch.join(&self.lock.job).join(&id)),
            id,
            case: Arc::clone(case),
            variant: variant.clone(),
            variant_number: number,
            attempt,
            folder: if several { trials.join(variant.folder(number)).join(name) } else { trials.join(name) },
        }
    }

    /// Runs the trials that have no result yet. Returns how the job ended, and all results in order.
    pub async fn run(
        &self,
        launcher: Arc<dyn Launcher>,
        scorer: Scorer,
        options: &JobOptions,
        stop: impl Future<Output = ()>,
        mut progress: impl FnMut(JobEvent<'_>),
    ) -> Result<(JobEnd, Vec<TrialResult>), JobError> {
        fs::create_dir_all(&self.folder).map_err(|error| self.fault(&error))?;
        let _ownership = ownership::take(&self.folder)?;
        write_json(&self.folder.join("lock.json"), &self.lock).map_err(|error| self.fault(&error))?;
        let mut waiting = Vec::new();
        let mut done = Vec::new();
        for trial in self.trials() {
            match self.stored(&trial)? {
                Some(result) if !result.cause.is_some_and(|cause| options.redo.contains(&cause)) => {
                    done.push(result)
                }
                stored => {
                    if stored.is_some() {
                        // Its runs stay in the journal; the next ones get new ids.
                        fs::remove_file(trial.folder.join("result.json"))
                            .map_err(|error| self.fault(&error))?;
                        trial.copy.remove().map_err(|error| self.fault(&error))?;
                    }
                    waiting.push(trial);
                }
            }
        }
        self.write_results(&done)?;
        progress(JobEvent::Waiting { count: waiting.len() });
        let context = Arc::new(self.context(launcher, scorer)?);
        let mut spent: f64 = done.iter().filter_map(|result| result.cost_usd).sum();
        let is_spent = |spent: f64| options.budget_usd.is_some_and(|budget| spent >= budget);
        let mut waiting = waiting.into_iter();
        let mut running: JoinSet<(String, Result<TrialResult, TrialError>)> = JoinSet::new();
        let mut end = JobEnd::Complete;
        let mut stop = pin!(stop);
        let mut ticks = tokio::time::interval(TICK);
        let mut deadline = pin!(async {
            match options.timeout {
                Some(timeout) => tokio::time::sleep(timeout).await,
                None => std::future::pending().await,
            }
        });
        loop {
            if is_spent(spent) && running.len() + waiting.len() > 0 {
                end = JobEnd::OutOfBudget;
                break;
            }
            while running.len() < options.concurrent.max(1) {
                let Some(trial) = waiting.next() else { break };
                let name = self.name(&trial);
                progress(JobEvent::Started { name: &name });
                running.spawn(Box::pin(perform(trial, name, Arc::clone(&context))));
            }
            let ended = tokio::select! {
                ended = running.join_next() => ended,
                () = &mut stop => { end = JobEnd::Stopped; break }
                () = &mut deadline => { end = JobEnd::TimedOut; break }
                _ = ticks.tick() => {
                    progress(JobEvent::Tick);
                    if options.budget_usd.is_some() && is_spent(spent + context.costs.of_running()) {
                        end = JobEnd::OutOfBudget;
                        break;
                    }
                    continue;
                }
            };
            let Some(ended) = ended else { break };
            let (name, result) = ended.map_err(|error| JobError::Failed(error.to_string()))?;
            match result {
                Ok(result) => {
                    spent += result.cost_usd.unwrap_or_default();
                    self.append(&result)?;
                    progress(JobEvent::Finished { name: &name, result: &result });
                    done.push(result);
                }
                Err(TrialError::Fatal(error)) => return Err(JobError::Launch(error)),
            }
        }
        // Runs that are still open stay so in the journal, and the next `resume` continues them.
        running.abort_all();
        let done = self.in_order(done);
        self.write_results(&done)?;
        Ok((end, done))
    }

    /// Removes what a complete job leaves in the scratch folder.
    pub fn clean_up(&self) {
        // If it cannot be removed, it stays in a folder for temporary files.
        let _ = crate::working_copy::remove(&self.scratch.join(&self.lock.job));
    }

    /// Writes the summary and the predictions.
    pub fn write_summary(&self, results: &[TrialResult], date: &str) -> Result<(), JobError> {
        let dirname = self.folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let yaml = summary::to_yaml(&self.lock, &dirname, date, results);
        write_whole(&self.folder.join("summary.yaml"), yaml.as_bytes())
            .map_err(|error| self.fault(&error))?;
        let models: BTreeMap<(usize, &str), &str> = results
            .iter()
            .filter(|result| result.attempt == 1)
            .map(|result| ((result.variant, result.case.as_str()), result.model.as_str()))
            .collect();
        let first_attempts: Vec<Trial> =
            self.trials().into_iter().filter(|trial| trial.attempt == 1).collect();
        for (number, variant) in self.lock.settings.variants.iter().enumerate() {
            let mut predictions = BTreeMap::new();
            for trial in first_attempts.iter().filter(|trial| trial.variant_number == number) {
                let case = trial.case.name.as_str();
                let Some(model) = models.get(&(number, case)) else { continue };
                let patch = fs::read_to_string(trial.folder.join("patch.diff")).unwrap_or_default();
                predictions.insert(case, prediction(case, model, &patch));
            }
            let name = match self.lock.settings.variants.len() {
                1 => "preds.json".to_owned(),
                _ => format!("preds.{}.json", variant.folder(number)),
            };
            write_json(&self.folder.join(name), &predictions).map_err(|error| self.fault(&error))?;
        }
        Ok(())
    }

    fn context(&self, launcher: Arc<dyn Launcher>, scorer: Scorer) -> Result<TrialContext, JobError> {
        let (mut known, mut unstarted) = (HashSet::new(), HashSet::new());
        if let Some(journal) = launcher.journal(launcher.directory()).map_err(JobError::Launch)? {
            let fault = |error: fusee::journal::JournalError| JobError::Failed(error.to_string());
            for row in journal.runs().map_err(fault)? {
                if !row.id.as_str().starts_with(&format!("{}.", self.lock.job)) {
                    continue;
                }
                if row.status == RunStatus::Open && journal.is_unstarted(&row).map_err(fault)? {
                    unstarted.insert(row.id.to_string());
                }
                known.insert(row.id.to_string());
            }
        }
        let (costs, settings) = (TrialCosts::new(Arc::clone(&launcher)), self.lock.settings.clone());
        Ok(TrialContext { launcher, scorer, settings, known, unstarted, costs })
    }

    fn stored(&self, trial: &Trial) -> Result<Option<TrialResult>, JobError> {
        let path = trial.folder.join("result.json");
        match fs::read_to_string(&path) {
            Ok(text) => serde_json::from_str(&text)
                .map(Some)
                .map_err(|error| JobError::Failed(format!("{}: {error}", path.display()))),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(JobError::Failed(format!("{}: {error}", path.display()))),
        }
    }

    fn in_order(&self, done: Vec<TrialResult>) -> Vec<TrialResult> {
        let place = |result: &TrialResult| {
            let case = self.cases.iter().position(|case| case.name == result.case);
            (result.variant, case.unwrap_or(usize::MAX), result.attempt)
        };
        let mut done = done;
        done.sort_by_key(place);
        done
    }

    fn append(&self, result: &TrialResult) -> Result<(), JobError> {
        let path = self.folder.join("results.jsonl");
        let line = results::to_lines(std::slice::from_ref(result));
        let file = fs::File::options().append(true).create(true).open(path);
        file.and_then(|mut file| file.write_all(line.as_bytes())).map_err(|error| self.fault(&error))
    }

    fn write_results(&self, results: &[TrialResult]) -> Result<(), JobError> {
        write_whole(&self.folder.join("results.jsonl"), results::to_lines(results).as_bytes())
            .map_err(|error| self.fault(&error))
    }

    fn fault(&self, error: &std::io::Error) -> JobError {
        JobError::Failed(format!("{}: {error}", self.folder.display()))
    }
}

/// Runs a trial and writes its folder; `result.json` last.
async fn perform(
    trial: Trial,
    name: String,
    context: Arc<TrialContext>,
) -> (String, Result<TrialResult, TrialError>) {
    let finished = Box::pin(trial.run(&context)).await;
    context.costs.remove_trial(&trial.id);
    let finished = match finished {
        Ok(finished) => finished,
        Err(error) => return (name, Err(error)),
    };
    let written = tokio::task::spawn_blocking(move || {
        let result = write_trial(&trial, finished);
        // The result is stored; a copy that stays behind is removed with the job.
        let _ = trial.copy.remove();
        result
    });
    let fatal = |message: String| {
        TrialError::Fatal(fusee::launch::LaunchError {
            kind: fusee::launch::LaunchErrorKind::Failed,
            message,
            help: None,
        })
    };
    let result = match written.await {
        Ok(Ok(result)) => Ok(result),
        Ok(Err(error)) => Err(fatal(format!("cannot write the result of {name}: {error}"))),
        Err(lost) => Err(fatal(lost.to_string())),
    };
    (name, result)
}

fn write_trial(trial: &Trial, finished: FinishedTrial) -> std::io::Result<TrialResult> {
    let FinishedTrial { mut result, journal, feedback } = finished;
    let folder = &trial.folder;
    let worked = !result.runs.is_empty();
    if let Some(journal) = journal.filter(|_| worked) {
        let runs: Vec<_> = result.runs.iter().filter_map(|run| run.parse().ok()).collect();
        match atif::trajectory(&journal, &runs) {
            Ok(trajectory) => write_json(&folder.join("trajectory.json"), &trajectory)?,
            Err(error) => return Err(std::io::Error::other(error.to_string())),
        }
    }
    let patch = if worked { patch::between(&trial.case, &trial.copy.project()) } else { String::new() };
    result.lazy_comments = count_lazy_comments(&patch);
    result.syntax_errors = count(&feedback, "SyntaxError");
    result.indentation_errors = count(&feedback, "IndentationError");
    write_whole(&folder.join("patch.diff"), patch.as_bytes())?;
    write_whole(&folder.join("tests.txt"), feedback.as_bytes())?;
    write_json(&folder.join("result.json"), &result)?;
    Ok(result)
}

fn count(text: &str, word: &str) -> u32 {
    u32::try_from(text.matches(word).count()).unwrap_or(u32::MAX)
}

/// Added comments such as `# ... rest of the code`.
fn count_lazy_comments(patch: &str) -> u32 {
    let is_lazy = |line: &&str| {
        let line = line.trim_start_matches('+').trim_start();
        (line.starts_with('#') || line.starts_with("//")) && line.contains("...")
    };
    let added = patch.lines().filter(|line| line.starts_with('+') && !line.starts_with("+++"));
    u32::try_from(added.filter(is_lazy).count()).unwrap_or(u32::MAX)
}

/// An entry of `preds.json`, as SWE-bench reads it.
pub fn prediction(instance: &str, model: &str, patch: &str) -> serde_json::Value {
    serde_json::json!({"instance_id": instance, "model_name_or_path": model, "model_patch": patch})
}

/// Reads a suite: the bundled one, which is written to the scratch folder first, or a folder.
pub fn read_suite(path: &Path, scratch: &Path, settings: &JobSettings) -> Result<Suite, JobError> {
    let folder = match path == Path::new(DEMO) {
        true => Suite::write_demo(scratch)
            .map_err(|error| JobError::Failed(format!("{}: {error}", scratch.display())))?,
        false => path.to_owned(),
    };
    Suite::read(&folder, &settings.test_commands).map_err(|problem| JobError::Suite(vec![problem]))
}
