//! Going back to an earlier turn of a run, and forking one. The engine's `rewind` does both.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use fusee::engine::restore::RestoreReport;
use fusee::engine::rewind::{self, Rewind, RewindError, RewindParts};
use fusee::journal::{Journal, RunId};
use fusee::launch::{LaunchRequest, LaunchWork, ResumeRequest};
use fusee::system;
use fusee::tools::worktree::Worktree;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::actions::LeftFile;
use super::extract::{Input, Params};
use super::runs::RunQuery;
use super::start::StartedRun;
use crate::problem::Problem;
use crate::site::{FoundRun, Site};

/// A turn to go back to.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RewindRequest {
    /// Number of completed turns; 0 is the state before the run.
    turn: u32,
    /// Whether to restore the files [default: true].
    #[serde(default)]
    files: Option<bool>,
    /// Whether to rewind the conversation [default: true].
    #[serde(default)]
    conversation: Option<bool>,
    /// Whether only the plan is wanted [default: false].
    #[serde(default)]
    dry_run: Option<bool>,
}

/// What a rewind did, or would do.
#[derive(Clone, Serialize, JsonSchema)]
pub(super) struct RewindView {
    /// Id of the new run; absent if only the plan was wanted.
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<String>,
    /// Files that are restored, removed or recreated.
    files: Vec<String>,
    /// Files whose current content is set aside beside the journal.
    aside: Vec<String>,
    /// Files that cannot be restored, and why.
    left: Vec<LeftFile>,
    /// Commands that ran since, whose further effects are not taken back.
    commands: Vec<String>,
}

/// A fork of a run.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ForkRequest {
    /// Number of completed turns to take over [default: 0, or all of them with a message].
    #[serde(default)]
    turn: Option<u32>,
    /// Message to continue with.
    #[serde(default)]
    message: Option<String>,
    /// Whether the fork works in a copy of the project [default: false].
    #[serde(default)]
    worktree: Option<bool>,
    /// Model of a fork with a message, as for `--model`.
    #[serde(default)]
    model: Option<String>,
}

pub(super) async fn rewind(
    State(site): State<Site>,
    Path(run): Path<String>,
    Params(query): Params<RunQuery>,
    Input(wanted): Input<RewindRequest>,
) -> Result<Json<RewindView>, Problem> {
    let parts = RewindParts {
        files: wanted.files.unwrap_or(true),
        conversation: wanted.conversation.unwrap_or(true),
    };
    if !parts.files && !parts.conversation {
        return Err(unprocessable("`files` and `conversation` cannot both be false"));
    }
    let (journal, plan) = site
        .read(move |site| {
            let found = site.find(&run, query.project.as_deref())?;
            let journal = own_journal(site, &found)?;
            let plan = Rewind::plan(&journal, found.id(), wanted.turn, parts)?;
            Ok((journal, plan))
        })
        .await?;
    let mut view = RewindView {
        run: None,
        files: plan.changes.iter().map(|(path, _)| path.clone()).collect(),
        aside: plan.aside.clone(),
        left: plan.left.iter().map(|(path, reason)| LeftFile::new(path, reason)).collect(),
        commands: plan.commands.clone(),
    };
    if !wanted.dry_run.unwrap_or(false) {
        let id = system::new_run_id().map_err(Problem::failed)?;
        let RestoreReport { aside, .. } = plan.apply(&journal, &id).await?;
        view.run = Some(id.to_string());
        view.aside = aside;
    }
    Ok(Json(view))
}

pub(super) async fn fork(
    State(site): State<Site>,
    Path(run): Path<String>,
    Params(query): Params<RunQuery>,
    headers: HeaderMap,
    Input(wanted): Input<ForkRequest>,
) -> Result<(StatusCode, Json<StartedRun>), Problem> {
    if wanted.model.is_some() && wanted.message.is_none() {
        return Err(unprocessable("`model` can be set only together with `message`"));
    }
    let key = format!("fork {run}");
    let found = site.read(move |site| site.find(&run, query.project.as_deref())).await?;
    let run = Box::pin(site.keys.once(&key, &headers, start_fork(&site, found, wanted))).await?;
    Ok((StatusCode::CREATED, Json(StartedRun { run })))
}

async fn start_fork(site: &Site, found: FoundRun, wanted: ForkRequest) -> Result<String, Problem> {
    let id = system::new_run_id().map_err(Problem::failed)?;
    let (forked, new, request) = (found.clone(), id.clone(), wanted.clone());
    let prepared = site.read(move |site| prepare(site, &forked, &new, &request)).await?;
    let PreparedFork { journal, planned, worktree } = prepared;
    let copy = worktree.map(|worktree| worktree.workspace);
    let spec = planned.fork_spec(planned.spec().clone(), copy.as_deref());
    let workspace = spec.workspace.clone();
    planned.begin_fork(&journal, &id, spec).await?;
    if let Some(message) = wanted.message {
        let request = LaunchRequest {
            work: LaunchWork::Request(message),
            directory: Some(workspace),
            project: Some(found.project.clone()),
            continues: Some(id),
            model: wanted.model,
            ..LaunchRequest::default()
        };
        let control = site.launcher.start(request).await?.control();
        let id = control.id().to_string();
        site.live.add(found.journal.path(), control);
        return Ok(id);
    }
    let control = site.launcher.resume(&found.project, &id, ResumeRequest::default()).await?.control();
    site.live.add(found.journal.path(), control);
    Ok(id.to_string())
}

/// A fork that is ready to begin.
struct PreparedFork {
    journal: Journal,
    planned: Rewind,
    worktree: Option<Worktree>,
}

fn prepare(site: &Site, found: &FoundRun, id: &RunId, wanted: &ForkRequest) -> Result<PreparedFork, Problem> {
    let journal = own_journal(site, found)?;
    let turn = match (wanted.turn, &wanted.message) {
        (Some(turn), _) => turn,
        (None, None) => 0,
        (None, Some(_)) => rewind::turn_count(&journal, found.id())?,
    };
    let planned = Rewind::plan_fork(&journal, found.id(), turn, None)?;
    if !wanted.worktree.unwrap_or(false) {
        return Ok(PreparedFork { journal, planned, worktree: None });
    }
    let root = site.launcher.worktrees(&found.project)?.join(id.as_str());
    let original = planned.spec().workspace.clone();
    let worktree = Worktree::create(&original, &root)
        .map_err(|error| Problem::failed(format!("cannot copy the project: {error}")))?;
    let filled = Rewind::plan_fork(&journal, found.id(), turn, Some(&worktree.workspace))
        .and_then(|planned| planned.restore_copy(&journal, id, &worktree.workspace).map(|()| planned));
    match filled {
        Ok(planned) => Ok(PreparedFork { journal, planned, worktree: Some(worktree) }),
        Err(error) => {
            Worktree::remove(&original, &root);
            Err(error.into())
        }
    }
}

/// The journal of a run, if it is the user's own: only that may say what is written to their files.
fn own_journal(site: &Site, found: &FoundRun) -> Result<Journal, Problem> {
    Ok(site.launcher.open_journal(&found.project)?)
}

fn unprocessable(message: &str) -> Problem {
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, message)
}

impl From<RewindError> for Problem {
    fn from(error: RewindError) -> Self {
        match error {
            RewindError::Journal(error) => error.into(),
            RewindError::Start(error) => error.into(),
            RewindError::NoSuchTurn { .. } => unprocessable(&error.to_string()),
            RewindError::InProgress { .. } => Self::conflict(error.to_string()).help("stop it first"),
            RewindError::NoFork { .. } | RewindError::Files(_) => Self::conflict(error.to_string()),
            RewindError::Aborted(_) => Self::failed(error.to_string()),
        }
    }
}
