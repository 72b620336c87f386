//! Listing and showing runs.

use axum::Json;
use axum::extract::{Path, State};
use fusee::journal::{Event, RunStatus};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::extract::Params;
use crate::outline::{Outline, RunEnd, RunStart, Timeline, Totals};
use crate::problem::Problem;
use crate::question::QuestionView;
use crate::site::{FoundRun, Site, SiteState};

/// Maximum number of runs in a list.
const MOST: usize = 1_000;

/// Number of runs that are listed unless a number is given.
const DEFAULT_LIMIT: usize = 100;

/// Which runs to list.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListQuery {
    /// Maximum number of runs, up to 1000 [default: 100].
    #[serde(default)]
    limit: Option<usize>,
    /// Directory of the project [default: all].
    #[serde(default)]
    project: Option<String>,
}

/// Which project a run is in.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RunQuery {
    /// Directory of the project, if several have a run of this id.
    #[serde(default)]
    pub(super) project: Option<String>,
}

/// Groups of the inbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum RunState {
    /// It waits for an answer.
    NeedsYou,
    /// A process works on it.
    Running,
    /// Not ended, and no process works on it: it can be resumed.
    Interrupted,
    /// Ended with an answer.
    Completed,
    /// Ended without an answer.
    Failed,
    /// Cancelled by the user.
    Cancelled,
}

/// A run in a list.
#[derive(Serialize, JsonSchema)]
pub(super) struct RunSummary {
    /// Id of the run.
    run: String,
    /// Directory of its project.
    project: String,
    /// Shortened request.
    title: String,
    /// Group in which the inbox lists the run.
    state: RunState,
    /// Start in milliseconds since the Unix epoch.
    started_ms: i64,
    /// End in milliseconds since the Unix epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_ms: Option<i64>,
    /// Number of open questions.
    questions: usize,
    /// Model as named by the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    /// Model replies.
    turns: u32,
    /// Tokens of all requests and replies.
    tokens: u64,
    /// Cost in US dollars, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    cost_usd: Option<f64>,
    /// Error of a failed run.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// A run in full.
#[derive(Serialize, JsonSchema)]
pub(super) struct RunDetail {
    #[serde(flatten)]
    summary: RunSummary,
    /// How it began.
    #[serde(skip_serializing_if = "Option::is_none")]
    start: Option<RunStart>,
    /// Status and exit code; absent while the run is open.
    #[serde(skip_serializing_if = "Option::is_none")]
    end: Option<RunEnd>,
    /// Counts so far.
    totals: Totals,
    /// Questions that wait for an answer.
    open_questions: Vec<QuestionView>,
    /// Whether this server works on the run, so that it can be stopped and cancelled here.
    here: bool,
    /// Whether a process works on the run.
    working: bool,
    /// Number of the newest event.
    seq: u64,
}

pub(super) async fn list(
    State(site): State<Site>,
    Params(query): Params<ListQuery>,
) -> Result<Json<Vec<RunSummary>>, Problem> {
    site.read(move |site| {
        let limit = query.limit.unwrap_or(DEFAULT_LIMIT).min(MOST);
        let mut found = Vec::new();
        for project in site.projects() {
            if query.project.as_ref().is_some_and(|only| project != std::path::Path::new(only)) {
                continue;
            }
            // A journal of another project that cannot be read must not hide the rest.
            let Ok(Some(journal)) = site.journal(&project) else { continue };
            let rows = journal.runs()?.into_iter().take(limit);
            found.extend(rows.map(|row| FoundRun {
                project: project.clone(),
                journal: journal.clone(),
                row,
            }));
        }
        found.sort_by_key(|run| std::cmp::Reverse(run.row.started_ms));
        found.truncate(limit);
        found.iter().map(|run| summary(site, run)).collect::<Result<_, _>>().map(Json)
    })
    .await
}

pub(super) async fn show(
    State(site): State<Site>,
    Path(run): Path<String>,
    Params(query): Params<RunQuery>,
) -> Result<Json<RunDetail>, Problem> {
    site.read(move |site| {
        let run = site.find(&run, query.project.as_deref())?;
        let working = run.is_active();
        let outline = site.outline(&run)?;
        let outline = outline.lock();
        Ok(Json(RunDetail {
            summary: of_outline(&run, &outline, working),
            start: outline.start.clone(),
            end: outline.end.clone(),
            totals: outline.totals.clone(),
            open_questions: questions(&run, &outline, working),
            here: site.live.get(run.journal.path(), run.id()).is_some(),
            working,
            seq: outline.seen,
        }))
    })
    .await
}

pub(super) async fn timeline(
    State(site): State<Site>,
    Path(run): Path<String>,
    Params(query): Params<RunQuery>,
) -> Result<Json<Timeline>, Problem> {
    site.read(move |site| {
        let run = site.find(&run, query.project.as_deref())?;
        let outline = site.outline(&run)?;
        let now = run.is_active().then(|| run.journal.now_ms());
        let timeline = outline.lock().timeline(now);
        Ok(Json(timeline))
    })
    .await
}

/// Questions of a run that wait for an answer.
pub(super) fn questions(run: &FoundRun, outline: &Outline, working: bool) -> Vec<QuestionView> {
    if run.row.status != RunStatus::Open {
        return Vec::new();
    }
    let project = run.project.display().to_string();
    let sandbox = outline.start.as_ref().map_or("", |start| start.sandbox.as_str());
    let view = |question: &crate::question::OpenQuestion| {
        question.view(run.id(), &project, &run.row.title, sandbox, working)
    };
    outline.questions.iter().map(view).collect()
}

fn summary(site: &SiteState, run: &FoundRun) -> Result<RunSummary, Problem> {
    if run.row.status == RunStatus::Open {
        let outline = site.outline(run)?;
        let outline = outline.lock();
        return Ok(of_outline(run, &outline, run.is_active()));
    }
    // An ended run says in its first and last event what a list shows.
    let mut outline = Outline::default();
    let index = run.journal.event_index(run.id(), u64::MAX)?;
    let first = run.journal.events(run.id(), 0, u64::MAX, 1)?;
    let last = run.journal.events(run.id(), index.last.saturating_sub(1), u64::MAX, 1)?;
    first.iter().chain(&last).for_each(|event| outline.add(event));
    if let Some(Event::TaskComplete(complete)) = last.last().map(|record| &record.event) {
        outline.totals.turns = complete.total_turns;
    }
    Ok(of_outline(run, &outline, false))
}

fn of_outline(run: &FoundRun, outline: &Outline, working: bool) -> RunSummary {
    let state = match run.row.status {
        RunStatus::Completed => RunState::Completed,
        RunStatus::Failed => RunState::Failed,
        RunStatus::Cancelled => RunState::Cancelled,
        RunStatus::Open if !outline.questions.is_empty() => RunState::NeedsYou,
        RunStatus::Open if working => RunState::Running,
        RunStatus::Open => RunState::Interrupted,
    };
    let totals = &outline.totals;
    RunSummary {
        run: run.id().to_string(),
        project: run.project.display().to_string(),
        title: run.row.title.clone(),
        state,
        started_ms: run.row.started_ms,
        ended_ms: run.row.ended_ms,
        questions: if run.row.status == RunStatus::Open { outline.questions.len() } else { 0 },
        model: outline.start.as_ref().map(|start| start.model.clone()),
        turns: totals.turns,
        tokens: totals.tokens,
        cost_usd: totals.cost_usd,
        error: outline.end.as_ref().and_then(|end| end.error.clone()),
    }
}
