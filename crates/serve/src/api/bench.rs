//! Benchmark jobs of the project.

use std::collections::{BTreeMap, BTreeSet};

use axum::Json;
use axum::extract::{Path, State};
use schemars::JsonSchema;
use serde::Serialize;

use crate::bench_job::{self, BenchJob, Trial};
use crate::problem::Problem;
use crate::site::Site;

/// Causes of trials that say nothing about a model.
const NOT_GRADED: &[&str] = &["sandbox", "verifier", "cancelled"];

/// A benchmark job.
#[derive(Serialize, JsonSchema)]
pub(super) struct JobView {
    /// Name: the path of its folder below the project, with `~` for `/`.
    job: String,
    /// When results were last added, in milliseconds since the Unix epoch.
    changed_ms: i64,
    /// Names of the models that the job compares.
    models: BTreeSet<String>,
    /// Names of the flows that the job compares.
    flows: BTreeSet<String>,
    /// Number of trials so far.
    trials: usize,
    /// Trials that count.
    graded: usize,
    /// Trials that passed.
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
    tokens: f64,
    /// Failed trials by cause.
    causes: BTreeMap<String, usize>,
}

/// A benchmark job with its trials.
#[derive(Serialize, JsonSchema)]
pub(super) struct JobDetail {
    #[serde(flatten)]
    job: JobView,
    /// The trials in the order in which they ended.
    results: Vec<Trial>,
}

pub(super) async fn list(State(site): State<Site>) -> Result<Json<Vec<JobView>>, Problem> {
    site.read(|site| {
        let jobs = bench_job::find(site.launcher.directory());
        Ok(Json(jobs.iter().map(|job| view(job, &job.trials())).collect()))
    })
    .await
}

pub(super) async fn show(
    State(site): State<Site>,
    Path(job): Path<String>,
) -> Result<Json<JobDetail>, Problem> {
    site.read(move |site| {
        // The name is looked up, never used as a path.
        let jobs = bench_job::find(site.launcher.directory());
        let found = jobs.iter().find(|found| label(found) == job);
        let found = found.ok_or_else(|| Problem::not_found("there is no such job"))?;
        let results = found.trials();
        Ok(Json(JobDetail { job: view(found, &results), results }))
    })
    .await
}

fn label(job: &BenchJob) -> String {
    job.name.replace('/', "~")
}

fn view(job: &BenchJob, trials: &[Trial]) -> JobView {
    let is_graded = |trial: &&Trial| {
        trial.cause.as_deref().is_none_or(|cause| !NOT_GRADED.iter().any(|not| cause.starts_with(not)))
    };
    let graded = trials.iter().filter(is_graded).count();
    let passed = trials.iter().filter(|trial| trial.passed).count();
    let (pass_rate, low, high) = bench_job::pass_rate(passed, graded);
    let costs: Vec<f64> = trials.iter().filter_map(|trial| trial.cost_usd).collect();
    let mut causes = BTreeMap::new();
    for trial in trials.iter().filter(|trial| !trial.passed) {
        *causes.entry(trial.cause.clone().unwrap_or_else(|| "wrong answer".to_owned())).or_default() += 1;
    }
    JobView {
        job: label(job),
        changed_ms: job.changed_ms,
        models: trials.iter().map(|trial| trial.model.clone()).collect(),
        flows: trials.iter().filter_map(|trial| trial.flow.clone()).collect(),
        trials: trials.len(),
        graded,
        passed,
        pass_rate,
        low,
        high,
        cost_usd: (!costs.is_empty()).then(|| costs.iter().sum()),
        tokens: trials.iter().filter_map(|trial| trial.tokens).sum(),
        causes,
    }
}
