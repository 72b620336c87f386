//! Starting a run: a request, a template or a workflow.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use fusee::approval::ApprovalMode;
use fusee::launch::{LaunchLimits, LaunchRequest, LaunchWork, NamedTask, NamedTaskKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::extract::Input;
use crate::problem::Problem;
use crate::site::Site;

/// A run to start: exactly one of `request`, `template` and `workflow`.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewRun {
    /// A request in plain words.
    #[serde(default)]
    request: Option<String>,
    /// Name of a template.
    #[serde(default)]
    template: Option<String>,
    /// Name of a workflow, or a program as text, which begins with `(`.
    #[serde(default)]
    workflow: Option<String>,
    /// Inputs of the template or workflow.
    #[serde(default)]
    inputs: Map<String, Value>,
    /// Model, as for `--model`.
    #[serde(default)]
    model: Option<String>,
    /// Flow, as for `--flow`.
    #[serde(default)]
    flow: Option<String>,
    /// Command that verifies the work.
    #[serde(default)]
    verify: Option<String>,
    /// When to ask for approval.
    #[serde(default)]
    approve: Option<Approve>,
    /// Overrides of the configured limits.
    #[serde(default)]
    limits: LaunchLimits,
    /// Directory of the project to work in: one of those that `/api/session` lists [default: the first].
    #[serde(default)]
    project: Option<String>,
}

/// When to ask for approval.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Approve {
    /// Only for commands that nothing confines.
    Auto,
    /// For every call that may change something.
    Ask,
    /// Never; what would need approval is refused.
    Never,
}

/// The run that was started or changed.
#[derive(Clone, Serialize, JsonSchema)]
pub(super) struct StartedRun {
    /// Id of the run.
    pub(super) run: String,
}

pub(super) async fn start(
    State(site): State<Site>,
    headers: HeaderMap,
    Input(new): Input<NewRun>,
) -> Result<(StatusCode, Json<StartedRun>), Problem> {
    let started = site.keys.once("start", &headers, launch(&site, new));
    let run = Box::pin(started).await?;
    Ok((StatusCode::CREATED, Json(StartedRun { run })))
}

async fn launch(site: &Site, new: NewRun) -> Result<String, Problem> {
    begin(site, request(site, new).await?).await
}

/// The run that a body describes, with inputs that fit their declarations.
pub(super) async fn request(site: &Site, new: NewRun) -> Result<LaunchRequest, Problem> {
    let project = new.project.clone();
    let directory = site.read(move |site| site.project(project.as_deref())).await?;
    let work = match (new.request, new.template, new.workflow) {
        (Some(request), None, None) if new.inputs.is_empty() => LaunchWork::Request(request),
        (None, None, Some(text)) if text.trim_start().starts_with('(') && new.inputs.is_empty() => {
            LaunchWork::Workflow(text)
        }
        (None, Some(name), None) => {
            named(site, &directory, NamedTaskKind::Template, name, new.inputs).await?
        }
        (None, None, Some(name)) => {
            named(site, &directory, NamedTaskKind::Workflow, name, new.inputs).await?
        }
        _ => {
            return Err(Problem::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                "give exactly one of `request`, `template` and `workflow`; inputs belong to a template or workflow",
            ));
        }
    };
    Ok(LaunchRequest {
        work,
        directory: Some(directory),
        model: new.model,
        flow: new.flow,
        verify: new.verify,
        approve: new.approve.map(|approve| match approve {
            Approve::Auto => ApprovalMode::Auto,
            Approve::Ask => ApprovalMode::Ask,
            Approve::Never => ApprovalMode::Never,
        }),
        limits: new.limits,
        ..LaunchRequest::default()
    })
}

/// Starts a run and makes it known.
pub(super) async fn begin(site: &Site, request: LaunchRequest) -> Result<String, Problem> {
    let directory = request.directory.clone().unwrap_or_else(|| site.launcher.directory().to_owned());
    // The handle waits for the outcome, which nobody here does: the run works without it.
    let run = site.launcher.start(request).await?.control();
    let id = run.id().to_string();
    if let Some(journal) = site.read(move |site| site.journal(&directory)).await? {
        site.live.add(journal.path(), run);
    }
    Ok(id)
}

/// A template or workflow with its inputs, each checked against its declaration.
async fn named(
    site: &Site,
    directory: &std::path::Path,
    kind: NamedTaskKind,
    name: String,
    inputs: Map<String, Value>,
) -> Result<LaunchWork, Problem> {
    let directory = directory.to_owned();
    let tasks = site.read(move |site| Ok(site.launcher.tasks(&directory)?)).await?;
    // A workflow may be started as a template of its name and the other way round: the name is what counts.
    let task = tasks.iter().find(|task| task.name == name);
    let Some(task) = task else {
        let what = match kind {
            NamedTaskKind::Template => "template",
            NamedTaskKind::Workflow => "workflow",
        };
        let message = format!("there is no {what} `{}`", name.escape_default());
        return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, message));
    };
    let wrong = wrong_inputs(task, &inputs);
    match wrong.is_empty() {
        true => Ok(LaunchWork::Named { name, inputs }),
        false => Err(Problem::fields(wrong)),
    }
}

fn wrong_inputs(task: &NamedTask, inputs: &Map<String, Value>) -> BTreeMap<String, String> {
    let mut wrong = BTreeMap::new();
    for param in &task.inputs {
        let given = inputs.iter().find(|(name, _)| param.is_called(name)).map(|(_, value)| value);
        let problem = match given {
            None | Some(Value::Null) if param.required => Some("this input is required".to_owned()),
            None | Some(Value::Null) => None,
            Some(value) if param.kind.accepts(value) => None,
            Some(_) => Some(format!("this must be of type {}", param.kind.name())),
        };
        wrong.extend(problem.map(|problem| (param.name.clone(), problem)));
    }
    for name in inputs.keys().filter(|name| !task.inputs.iter().any(|param| param.is_called(name))) {
        wrong.insert(name.clone(), "there is no such input".to_owned());
    }
    wrong
}
