//! Benchmark jobs of the project, and the comparison of two of them.

use std::collections::{BTreeMap, BTreeSet};

use axum::Json;
use axum::extract::{Path, State};
use fusee_bench::comparison;
use fusee_bench::results::TrialResult;
use fusee_bench::statistics::wilson;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::extract::Params;
use crate::bench_job::{self, BenchJob};
use crate::problem::Problem;
use crate::site::{Site, SiteState};

/// The difference that comparisons plan for, in points, as in `fusee bench compare`.
const POINTS: f64 = 5.0;

/// A benchmark job, or one variant of a job with several.
#[derive(Serialize, JsonSchema)]
pub(super) struct JobView {
    /// Name: the path of its folder below the project, with `~` for `/`, and `@N` for the Nth of several variants.
    job: String,
    /// When results were last added, in milliseconds since the Unix epoch.
    changed_ms: i64,
    /// Whether a process works on it now.
    running: bool,
    /// Number of trials when it is complete, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    planned: Option<usize>,
    /// Names of its models.
    models: BTreeSet<String>,
    /// Names of its flows.
    flows: BTreeSet<String>,
    /// Number of trials so far.
    trials: usize,
    /// Trials that count.
    graded: usize,
    /// Graded trials that passed.
    passed: usize,
    /// Share of the graded trials that passed.
    pass_rate: f64,
    /// Lower end of its 95 % interval.
    low: f64,
    /// Upper end of its 95 % interval.
    high: f64,
    /// Sum of costs in US dollars, if any is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    cost_usd: Option<f64>,
    /// Sum of tokens.
    tokens: u64,
    /// Failed trials by cause.
    causes: BTreeMap<String, usize>,
    /// Failed tool calls by tool.
    tool_errors: BTreeMap<String, u32>,
}

/// A benchmark job with its trials.
#[derive(Serialize, JsonSchema)]
pub(super) struct JobDetail {
    #[serde(flatten)]
    job: JobView,
    /// The trials in the order in which they ended.
    results: Vec<TrialView>,
    /// Graded trials by language, if the cases have several.
    languages: Vec<LanguageView>,
    /// Cases of which some attempts passed and others did not.
    flaky: BTreeSet<String>,
}

/// One trial.
#[derive(Serialize, JsonSchema)]
pub(super) struct TrialView {
    /// Name of the case.
    case: String,
    /// Number of the attempt, from 1.
    attempt: u32,
    /// Tries used.
    tries: u32,
    /// Whether the tests accepted the final state.
    passed: bool,
    /// Whether the result counts.
    graded: bool,
    /// Failure class.
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<String>,
    /// What failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    /// Model name as given to `bench run`.
    model: String,
    /// Flow that was used.
    flow: String,
    /// Language of the case.
    #[serde(skip_serializing_if = "Option::is_none")]
    language: Option<String>,
    /// Model replies.
    turns: u32,
    /// Input and output tokens.
    tokens: u64,
    /// Cost in US dollars, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    cost_usd: Option<f64>,
    /// Working time in seconds.
    seconds: f64,
    /// Id of the last run; empty if none was started.
    run: String,
}

/// Results of the cases in one language.
#[derive(Serialize, JsonSchema)]
struct LanguageView {
    /// Name of the language.
    language: String,
    /// Trials that count.
    graded: usize,
    /// Graded trials that passed.
    passed: usize,
    /// Lower end of the 95 % interval of the pass rate.
    low: f64,
    /// Upper end.
    high: f64,
}

/// Which jobs to compare.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct JobsQuery {
    /// Name of the first job.
    a: String,
    /// Name of the second job.
    b: String,
}

pub(super) async fn list(State(site): State<Site>) -> Result<Json<Vec<JobView>>, Problem> {
    site.read(|site| {
        let jobs = bench_job::read_all(site.launcher.directory());
        Ok(Json(jobs.iter().map(JobView::new).collect()))
    })
    .await
}

pub(super) async fn show(
    State(site): State<Site>,
    Path(job): Path<String>,
) -> Result<Json<JobDetail>, Problem> {
    site.read(move |site| Ok(Json(JobDetail::new(&named(site, &job)?)))).await
}

pub(super) async fn compare(
    State(site): State<Site>,
    Params(JobsQuery { a, b }): Params<JobsQuery>,
) -> Result<Json<comparison::Comparison>, Problem> {
    site.read(move |site| {
        let (a, b) = (named(site, &a)?, named(site, &b)?);
        Ok(Json(comparison::compare(&a.trials, &b.trials, POINTS)))
    })
    .await
}

/// A job by its name, which is looked up and never used as a path.
fn named(site: &SiteState, job: &str) -> Result<BenchJob, Problem> {
    let mut jobs = bench_job::read_all(site.launcher.directory()).into_iter();
    jobs.find(|found| found.name == job).ok_or_else(|| Problem::not_found("there is no such job"))
}

impl JobView {
    fn new(job: &BenchJob) -> Self {
        let trials = &job.trials;
        let (graded, passed, low, high) = pass_rate(trials.iter());
        let costs: Vec<f64> = trials.iter().filter_map(|trial| trial.cost_usd).collect();
        let (mut causes, mut tool_errors) = (BTreeMap::new(), BTreeMap::new());
        for trial in trials {
            if !trial.passed {
                let cause = trial.cause.map_or("wrong answer", |cause| cause.as_str());
                *causes.entry(cause.to_owned()).or_default() += 1;
            }
            for (tool, count) in &trial.tool_errors {
                *tool_errors.entry(tool.clone()).or_default() += count;
            }
        }
        Self {
            job: job.name.clone(),
            changed_ms: job.changed_ms,
            running: job.running,
            planned: job.planned,
            models: trials.iter().map(|trial| trial.model.clone()).collect(),
            flows: trials.iter().map(|trial| trial.flow.clone()).collect(),
            trials: trials.len(),
            graded,
            passed,
            pass_rate: passed as f64 / graded.max(1) as f64,
            low,
            high,
            cost_usd: (!costs.is_empty()).then(|| costs.iter().sum()),
            tokens: trials.iter().map(|trial| trial.tokens).sum(),
            causes,
            tool_errors,
        }
    }
}

impl JobDetail {
    fn new(job: &BenchJob) -> Self {
        let mut languages: BTreeMap<&str, Vec<&TrialResult>> = BTreeMap::new();
        let mut cases: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        for trial in job.trials.iter().filter(|trial| trial.is_graded()) {
            if let Some(language) = &trial.language {
                languages.entry(language).or_default().push(trial);
            }
            let (attempts, passed) = cases.entry(&trial.case).or_default();
            *attempts += 1;
            *passed += usize::from(trial.passed);
        }
        if languages.len() < 2 {
            languages.clear();
        }
        let language = |(language, trials): (&str, Vec<&TrialResult>)| {
            let (graded, passed, low, high) = pass_rate(trials.into_iter());
            LanguageView { language: language.to_owned(), graded, passed, low, high }
        };
        let is_flaky = |(attempts, passed): &(usize, usize)| *passed > 0 && passed < attempts;
        Self {
            job: JobView::new(job),
            results: job.trials.iter().map(TrialView::new).collect(),
            languages: languages.into_iter().map(language).collect(),
            flaky: cases
                .iter()
                .filter(|(_, case)| is_flaky(case))
                .map(|(name, _)| (*name).to_owned())
                .collect(),
        }
    }
}

impl TrialView {
    fn new(trial: &TrialResult) -> Self {
        let trial = trial.clone();
        Self {
            graded: trial.is_graded(),
            case: trial.case,
            attempt: trial.attempt,
            tries: trial.tries,
            passed: trial.passed,
            cause: trial.cause.map(|cause| cause.as_str().to_owned()),
            message: trial.message,
            model: trial.model,
            flow: trial.flow,
            language: trial.language,
            turns: trial.turns,
            tokens: trial.tokens,
            cost_usd: trial.cost_usd,
            seconds: trial.seconds,
            run: trial.run,
        }
    }
}

/// Graded trials, those of them that passed, and the 95 % interval of the pass rate.
fn pass_rate<'t>(trials: impl Iterator<Item = &'t TrialResult>) -> (usize, usize, f64, f64) {
    let graded: Vec<bool> = trials.filter(|trial| trial.is_graded()).map(|trial| trial.passed).collect();
    let passed = graded.iter().filter(|passed| **passed).count();
    let interval = wilson(passed as u64, graded.len() as u64, 0.95);
    (graded.len(), passed, interval.low, interval.high)
}
