//! One trial: lays out the case, lets the model work, scores, and lets it try again with the output of the tests.
//!
//! A trial is resumed from what it left behind: its runs are in the journal under ids that follow from the trial, and
//! its working copy says to which of them it belongs. A run that exists is resumed or read again, never started twice.
//! What the budget of the job has left is not a limit of a run: `job` stops all trials when it is spent.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use fusee::engine::approval::NonInteractive;
use fusee::engine::journal::{Journal, RunId};
use fusee::engine::run::{self, FailureClass, RunOutcome};
use fusee::launch::{
    LaunchError, LaunchErrorKind, LaunchLimits, LaunchRequest, LaunchWork, Launcher, ResumeRequest,
};

use crate::case::Case;
use crate::lock::{JobSettings, Variant};
use crate::results::TrialResult;
use crate::score::{Grade, Score, Scorer};
use crate::trial_cost::TrialCosts;
use crate::usage::RunUsage;
use crate::working_copy::WorkingCopy;

/// How often a run that failed through no fault of the model is repeated.
const RETRIES: u32 = 2;

/// Pause before the first repetition; doubles with each.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// Where models and their commands see the working copy, in every trial.
const SHOWN_AT: &str = "/workspace";

/// One attempt of a variant at a case.
pub(crate) struct Trial {
    /// Beginning of the ids of its runs.
    pub(crate) id: String,
    pub(crate) case: Arc<Case>,
    pub(crate) variant: Variant,
    pub(crate) variant_number: usize,
    pub(crate) attempt: u32,
    pub(crate) copy: WorkingCopy,
    pub(crate) folder: PathBuf,
}

/// What trials share.
pub(crate) struct TrialContext {
    pub(crate) launcher: Arc<dyn Launcher>,
    pub(crate) scorer: Scorer,
    pub(crate) settings: JobSettings,
    /// Runs that an earlier process started.
    pub(crate) known: HashSet<String>,
    /// Of those, the ones that were killed before they had settings; they cannot be resumed.
    pub(crate) unstarted: HashSet<String>,
    /// Where the trials note the runs that they start.
    pub(crate) costs: TrialCosts,
}

/// What the model did in one try.
struct Work {
    run: RunId,
    class: Option<FailureClass>,
    message: Option<String>,
}

/// A finished trial with the journal it is in.
pub(crate) struct FinishedTrial {
    pub(crate) result: TrialResult,
    pub(crate) journal: Option<Journal>,
    pub(crate) feedback: String,
}

/// Why a trial has no result.
#[derive(Debug)]
pub(crate) enum TrialError {
    /// The job cannot continue: wrong settings, or no journal.
    Fatal(LaunchError),
}

impl Trial {
    /// Runs the trial to its result.
    pub(crate) async fn run(&self, context: &TrialContext) -> Result<FinishedTrial, TrialError> {
        if let Some((file, problem)) = self.case.unreadable_file() {
            // The suite was changed while the job runs; the other trials are not concerned.
            let problem = format!("{}: {problem}", file.source.display());
            let score = Score::Failed(FailureClass::VerifierBroken, problem);
            return Ok(self.finish(context, 0, &[], None, score));
        }
        let (mut runs, mut generation) = (Vec::new(), self.prepare(context)?);
        let mut request = self.case.request();
        let (mut number, mut continues) = (1, None);
        loop {
            let work = self.work(context, number, &mut generation, &request, continues).await?;
            runs.push(work.run.clone());
            if let Some(next) = self.started_request(context, number + 1, generation) {
                // The next try has changed the working copy since: this one was scored before it started.
                request = next;
                continues = Some(work.run);
                number += 1;
                continue;
            }
            let graded = work.class.is_none_or(FailureClass::is_graded);
            let score = match graded {
                true => context.scorer.score(&self.case, &self.copy).await,
                false => {
                    let class = work.class.unwrap_or(FailureClass::Sandbox);
                    Score::Failed(class, work.message.clone().unwrap_or_default())
                }
            };
            let again = match &score {
                // A run that ended for its limits or was refused has nothing left to try with.
                Score::Graded(grade) => {
                    !grade.passed && work.class.is_none() && number < context.settings.tries
                }
                Score::Failed(..) => false,
            };
            match score {
                Score::Graded(Grade { feedback, .. }) if again => {
                    request = self.case.retry_request(&feedback)
                }
                score => return Ok(self.finish(context, number, &runs, Some(work), score)),
            }
            continues = Some(work.run);
            number += 1;
        }
    }

    /// The request of a try that an earlier process has started; `None` if it has not.
    fn started_request(&self, context: &TrialContext, number: u32, generation: u32) -> Option<String> {
        let id = self.run_id(number, generation);
        if !context.known.contains(&id) || context.unstarted.contains(&id) {
            return None;
        }
        let launcher = &context.launcher;
        let journal = launcher.journal(launcher.directory()).ok().flatten()?;
        Some(run::settings_of(&journal, &id.parse().ok()?).ok()?.request)
    }

    /// Makes sure that there is a working copy, and returns the generation of runs that belongs to it.
    fn prepare(&self, context: &TrialContext) -> Result<u32, TrialError> {
        if let Some(generation) = self.copy.generation() {
            return Ok(generation);
        }
        let used = |generation: &u32| context.known.contains(&self.run_id(1, *generation));
        let generation = (0..).find(|generation| !used(generation)).unwrap_or_default();
        self.write_files(generation)?;
        Ok(generation)
    }

    fn write_files(&self, generation: u32) -> Result<(), TrialError> {
        self.copy.write_files(&self.case, generation).map_err(|error| {
            TrialError::Fatal(LaunchError {
                kind: LaunchErrorKind::Failed,
                message: format!("cannot lay out case `{}`: {error}", self.case.name),
                help: None,
            })
        })
    }

    fn run_id(&self, number: u32, generation: u32) -> String {
        match generation {
            0 => format!("{}.t{number}", self.id),
            generation => format!("{}.t{number}.r{generation}", self.id),
        }
    }

    /// Lets the model work until it ends, repeating runs that failed through no fault of its own.
    async fn work(
        &self,
        context: &TrialContext,
        number: u32,
        generation: &mut u32,
        request: &str,
        continues: Option<RunId>,
    ) -> Result<Work, TrialError> {
        let (mut failures, mut pause) = (0, RETRY_PAUSE);
        loop {
            let id = self.run_id(number, *generation);
            if context.unstarted.contains(&id) {
                *generation += 1;
                if number == 1 {
                    self.write_files(*generation)?;
                }
                continue;
            }
            let work = self.run_once(context, &id, number, request, continues.clone()).await?;
            let retried = work.class.is_some_and(FailureClass::is_retried);
            if !retried || failures == RETRIES {
                return Ok(work);
            }
            failures += 1;
            tokio::time::sleep(pause).await;
            pause *= 2;
            *generation += 1;
            if number == 1 {
                self.write_files(*generation)?;
            }
        }
    }

    /// Starts or resumes one run and waits for its end.
    async fn run_once(
        &self,
        context: &TrialContext,
        id: &str,
        number: u32,
        request: &str,
        continues: Option<RunId>,
    ) -> Result<Work, TrialError> {
        let fault = |message: String| LaunchError { kind: LaunchErrorKind::Failed, message, help: None };
        let run: RunId = id.parse().map_err(|error| TrialError::Fatal(fault(error)))?;
        let launcher = &context.launcher;
        context.costs.add_run(&self.id, run.clone());
        let started = if context.known.contains(id) {
            let with = ResumeRequest { approver: Some(Arc::new(NonInteractive)), ..ResumeRequest::default() };
            launcher.resume(launcher.directory(), &run, with).await
        } else {
            launcher.start(self.launch_request(context, run.clone(), number, request, continues)).await
        };
        let outcome = match started {
            Ok(handle) => handle.outcome().await,
            // Wrong settings concern every trial.
            Err(error) if error.kind == LaunchErrorKind::Usage => return Err(TrialError::Fatal(error)),
            Err(error) => {
                let class = match error.kind {
                    LaunchErrorKind::Unreachable => FailureClass::Provider,
                    _ => FailureClass::Sandbox,
                };
                return Ok(Work { run, class: Some(class), message: Some(error.to_string()) });
            }
        };
        let message = match &outcome {
            RunOutcome::Ended(ended) => ended.error.as_ref().map(|error| error.message.clone()),
            RunOutcome::Stopped(aborted) => Some(aborted.to_string()),
            RunOutcome::Lost(cause) => Some(cause.clone()),
        };
        Ok(Work { run, class: FailureClass::from_judged_outcome(&outcome), message })
    }

    fn launch_request(
        &self,
        context: &TrialContext,
        run: RunId,
        number: u32,
        request: &str,
        continues: Option<RunId>,
    ) -> LaunchRequest {
        let JobSettings { limits, base_url, api, verify, .. } = &context.settings;
        let tests = self.case.tests.iter().map(|test| test.to_string_lossy().into_owned());
        LaunchRequest {
            work: LaunchWork::Request(request.to_owned()),
            directory: Some(self.copy.project()),
            project: Some(context.launcher.directory().to_owned()),
            shown_at: Some(self.case.mounted_at.clone().unwrap_or_else(|| PathBuf::from(SHOWN_AT))),
            run: Some(run),
            model: self.variant.model.clone(),
            base_url: base_url.clone(),
            api: api.clone(),
            agent: self.variant.agent.clone(),
            flow: self.variant.flow.clone(),
            verify: verify.then(|| self.case.test.command.clone()),
            limits: LaunchLimits { timeout_s: limits.timeout_s.or(self.case.agent_timeout_s), ..*limits },
            continues,
            benchmark_try: Some(number),
            protected_files: tests.collect(),
            approver: Some(Arc::new(NonInteractive)),
            ..LaunchRequest::default()
        }
    }

    fn finish(
        &self,
        context: &TrialContext,
        tries: u32,
        runs: &[RunId],
        work: Option<Work>,
        score: Score,
    ) -> FinishedTrial {
        let launcher = &context.launcher;
        let journal = launcher.journal(launcher.directory()).ok().flatten();
        let mut usage = RunUsage::default();
        let mut settings = None;
        if let Some(journal) = &journal {
            for run in runs {
                usage.add(journal, run);
            }
            settings = runs.last().and_then(|run| run::settings_of(journal, run).ok());
        }
        let (run, class, message) = match work {
            Some(Work { run, class, message }) => (run.to_string(), class, message),
            None => (String::new(), None, None),
        };
        let (grade, cause, message) = match score {
            Score::Graded(grade) => (Some(grade), class, message),
            Score::Failed(FailureClass::VerifierBroken, message) => {
                // The suite is to be repaired, so the message says where.
                let message = format!("{}: {message}", self.case.origin.display());
                (None, Some(FailureClass::VerifierBroken), Some(message))
            }
            Score::Failed(class, message) => (None, Some(class), Some(message)),
        };
        let flow = self.variant.flow.clone();
        let flow = flow.or_else(|| settings.as_ref().map(|it| it.flow.mode.name().to_owned()));
        let model = self.variant.model.clone().or_else(|| settings.map(|it| it.model));
        let result = TrialResult {
            case: self.case.name.clone(),
            attempt: self.attempt,
            tries,
            passed: grade.as_ref().is_some_and(|grade| grade.passed),
            reward: grade.as_ref().map_or(0.0, |grade| grade.reward),
            cause,
            model: model.unwrap_or_default(),
            flow: flow.unwrap_or_default(),
            turns: usage.turns,
            tokens: usage.tokens,
            cost_usd: usage.cost_usd,
            seconds: usage.seconds(),
            run,
            message,
            agent: self.variant.agent.as_ref().map(|agent| agent.display().to_string()),
            language: self.case.language.clone(),
            runs: runs.iter().map(ToString::to_string).collect(),
            output_tokens: usage.output_tokens,
            tool_calls: usage.tool_calls,
            tool_errors: usage.tool_errors,
            malformed_calls: usage.malformed_calls,
            user_asks: usage.user_asks,
            lazy_comments: 0,
            syntax_errors: 0,
            indentation_errors: 0,
            test_timeout: grade.as_ref().is_some_and(|grade| grade.timed_out),
            variant: self.variant_number,
        };
        FinishedTrial { result, journal, feedback: grade.map(|grade| grade.feedback).unwrap_or_default() }
    }
}
