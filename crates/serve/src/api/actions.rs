//! Changing a run: a message, stopping a turn, cancelling, resuming, undoing.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use fusee::engine::run::{self, ControlSignal, SignalOutcome};
use fusee::journal::RunStatus;
use fusee::launch::{LaunchRequest, LaunchWork, ResumeRequest};
use fusee::tools::Workspace;
use fusee::undo::UndoPlan;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::extract::{Input, Params};
use super::runs::RunQuery;
use super::start::{StartedRun, begin};
use crate::problem::Problem;
use crate::site::{FoundRun, Site};

/// A message to a run.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewMessage {
    /// Text of the message.
    text: String,
}

/// Body of `POST /api/runs/ID/undo`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct UndoQuery {
    /// Whether only the plan is wanted [default: false].
    #[serde(default)]
    dry_run: Option<bool>,
    /// Directory of the project, if several have a run of this id.
    #[serde(default)]
    project: Option<String>,
}

/// What was undone, or would be.
#[derive(Serialize, JsonSchema)]
pub(super) struct UndoView {
    /// Whether it was done.
    done: bool,
    /// Files that are restored, removed or recreated.
    files: Vec<String>,
    /// Files that are left as they are, and why.
    left: Vec<LeftFile>,
    /// Commands whose further effects are not undone.
    commands: Vec<String>,
}

/// A file that is not restored.
#[derive(Clone, Serialize, JsonSchema)]
pub(super) struct LeftFile {
    /// Path of the file.
    path: String,
    /// Why it is left.
    reason: String,
}

impl LeftFile {
    pub(super) fn new(path: &str, reason: &str) -> Self {
        Self { path: path.to_owned(), reason: reason.to_owned() }
    }
}

pub(super) async fn message(
    State(site): State<Site>,
    Path(run): Path<String>,
    Params(query): Params<RunQuery>,
    headers: HeaderMap,
    Input(message): Input<NewMessage>,
) -> Result<(StatusCode, Json<StartedRun>), Problem> {
    if message.text.trim().is_empty() {
        return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "the message is empty"));
    }
    let key = format!("message {run}");
    let found = site.read(move |site| site.find(&run, query.project.as_deref())).await?;
    let work = async {
        match site.live.get(found.journal.path(), found.id()) {
            Some(handle) => {
                let said = handle.say(message.text).await;
                said.map(|()| found.id().to_string()).map_err(|error| Problem::conflict(error.to_string()))
            }
            None => continue_run(&site, &found, message.text).await,
        }
    };
    let run = Box::pin(site.keys.once(&key, &headers, work)).await?;
    Ok((StatusCode::CREATED, Json(StartedRun { run })))
}

/// Sends a message to a run of another process, or continues the conversation of an ended one with a new one.
async fn continue_run(site: &Site, earlier: &FoundRun, text: String) -> Result<String, Problem> {
    if earlier.row.status == RunStatus::Open && earlier.is_active() {
        signal(site, earlier, ControlSignal::Message(text)).await?;
        return Ok(earlier.id().to_string());
    }
    let found = earlier.clone();
    let settings = site.read(move |_| Ok(run::settings_of(&found.journal, found.id())?)).await?;
    // A rewind is open, and can be continued as well as resumed.
    if earlier.row.status == RunStatus::Open && settings.origin.is_none() {
        return Err(Problem::conflict("this run is interrupted").help("resume it first"));
    }
    let request = LaunchRequest {
        work: LaunchWork::Request(text),
        directory: Some(settings.workspace),
        continues: Some(earlier.id().clone()),
        ..LaunchRequest::default()
    };
    begin(site, request).await
}

pub(super) async fn stop(
    State(site): State<Site>,
    Path(run): Path<String>,
    Params(query): Params<RunQuery>,
) -> Result<Json<StartedRun>, Problem> {
    let found = site.read(move |site| site.find(&run, query.project.as_deref())).await?;
    match site.live.get(found.journal.path(), found.id()) {
        Some(handle) if handle.turn_stop().stop() => {}
        Some(_) => return Err(Problem::conflict("no turn is running")),
        None => signal(&site, &found, ControlSignal::StopTurn).await?,
    }
    Ok(Json(StartedRun { run: found.id().to_string() }))
}

pub(super) async fn cancel(
    State(site): State<Site>,
    Path(run): Path<String>,
    Params(query): Params<RunQuery>,
) -> Result<Json<StartedRun>, Problem> {
    let found = site.read(move |site| site.find(&run, query.project.as_deref())).await?;
    match site.live.get(found.journal.path(), found.id()) {
        Some(handle) => handle.cancel(),
        None => signal(&site, &found, ControlSignal::Cancel).await?,
    }
    Ok(Json(StartedRun { run: found.id().to_string() }))
}

/// Sends a request to the process that executes a run.
async fn signal(site: &Site, run: &FoundRun, signal: ControlSignal) -> Result<(), Problem> {
    if run.row.status != RunStatus::Open {
        return Err(Problem::conflict("this run has ended"));
    }
    let project = run.project.clone();
    let journal = site.read(move |site| Ok(site.launcher.open_journal(&project)?)).await?;
    match signal.send(&journal, run.id()).await? {
        SignalOutcome::Taken => Ok(()),
        SignalOutcome::Busy => Err(Problem::conflict("an earlier request is still pending")),
        SignalOutcome::NotRunning => Err(Problem::conflict("this run is not active")),
    }
}

pub(super) async fn resume(
    State(site): State<Site>,
    Path(run): Path<String>,
    Params(query): Params<RunQuery>,
    headers: HeaderMap,
) -> Result<Json<StartedRun>, Problem> {
    let key = format!("resume {run}");
    let found = site.read(move |site| site.find(&run, query.project.as_deref())).await?;
    let work = async {
        if found.row.status != RunStatus::Open {
            return Err(Problem::conflict("this run has ended"));
        }
        if found.is_active() {
            return Err(Problem::conflict("this run is active"));
        }
        let run = site.launcher.resume(&found.project, found.id(), ResumeRequest::default()).await?.control();
        let id = run.id().to_string();
        site.live.add(found.journal.path(), run);
        Ok(id)
    };
    let run = Box::pin(site.keys.once(&key, &headers, work)).await?;
    Ok(Json(StartedRun { run }))
}

pub(super) async fn undo(
    State(site): State<Site>,
    Path(run): Path<String>,
    Params(query): Params<UndoQuery>,
) -> Result<Json<UndoView>, Problem> {
    site.read(move |site| {
        let found = site.find(&run, query.project.as_deref())?;
        if found.is_active() {
            return Err(Problem::conflict("the run is in progress").help("stop it first, then undo"));
        }
        // Only the user's own journals may say what is written to their files.
        site.launcher.open_journal(&found.project)?;
        let settings = run::settings_of(&found.journal, found.id())?;
        let workspace =
            Workspace::open(&settings.workspace).map_err(|error| Problem::conflict(error.to_string()))?;
        let plan = UndoPlan::plan(&found.journal, found.id(), &workspace)?;
        let done = !query.dry_run.unwrap_or(false) && !plan.is_empty();
        if done {
            let copies = found.journal.path().with_file_name("undone").join(found.id().as_str());
            plan.apply(&workspace, found.id(), &copies)
                .map_err(|problem| Problem::conflict(format!("nothing was undone: {problem}")))?;
        }
        Ok(Json(UndoView {
            done,
            files: plan.files.iter().map(|file| file.path.clone()).collect(),
            left: plan.left.into_iter().map(|(path, reason)| LeftFile { path, reason }).collect(),
            commands: plan.commands,
        }))
    })
    .await
}
