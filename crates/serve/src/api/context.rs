//! What the model of a run receives: the system prompt by section, the tools, and what fills the context window. Also the
//! program or template that a run executes.

use axum::Json;
use axum::extract::{Path, State};
use fusee::engine::run::{self, RunKind};
use fusee::journal::StepKind;
use fusee::model::tokens::Estimator;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::extract::Params;
use super::runs::RunQuery;
use crate::problem::Problem;
use crate::site::{FoundRun, Site};

/// What a model receives.
#[derive(Serialize, JsonSchema)]
pub(super) struct ContextView {
    /// The system prompt by section.
    sections: Vec<SectionView>,
    /// Names of the tools.
    tools: Vec<String>,
    /// What fills the context window, in the order the model reads it.
    shares: Vec<ShareView>,
    /// Why the shares are not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

/// A section of a prompt.
#[derive(Serialize, JsonSchema)]
pub(super) struct SectionView {
    /// Heading; empty for the text before the first one.
    pub(super) title: String,
    /// Text with the heading.
    pub(super) text: String,
    /// Estimated number of tokens.
    pub(super) tokens: u64,
}

/// A kind of content.
#[derive(Serialize, JsonSchema)]
pub(super) struct ShareView {
    /// What fills the context, such as messages or tool results.
    kind: String,
    /// Number of items.
    items: usize,
    /// Estimated number of tokens.
    tokens: u64,
}

/// What a run executes.
#[derive(Serialize, JsonSchema)]
pub(super) struct ProgramView {
    /// Whether it is a plain request, a template or a workflow.
    kind: ProgramKind,
    /// Name of the file or template.
    name: String,
    /// Source text.
    text: String,
    /// Values that the run was started with, by parameter.
    inputs: Map<String, Value>,
}

/// Kind of work.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ProgramKind {
    Request,
    Template,
    Workflow,
}

/// The system prompt and the tools of a run's newest request.
#[derive(Default)]
pub(super) struct NewestPrompt {
    pub(super) system: String,
    pub(super) tools: Vec<String>,
}

/// Reads the newest request of a run that has a system prompt.
pub(super) fn newest_prompt(run: &FoundRun) -> Result<NewestPrompt, Problem> {
    let steps = run.journal.steps(run.id())?;
    let requests = steps.iter().filter(|step| step.kind == StepKind::Model);
    let newest = requests.filter(|step| step.args.get("system").is_some()).max_by_key(|step| step.at_ms);
    let Some(step) = newest else { return Ok(NewestPrompt::default()) };
    let tools = step.args.get("tools").and_then(Value::as_array).into_iter().flatten();
    Ok(NewestPrompt {
        system: step.args.get("system").and_then(Value::as_str).unwrap_or_default().to_owned(),
        tools: tools.filter_map(Value::as_str).map(str::to_owned).collect(),
    })
}

pub(super) async fn show(
    State(site): State<Site>,
    Path(run): Path<String>,
    Params(query): Params<RunQuery>,
) -> Result<Json<ContextView>, Problem> {
    site.read(move |site| {
        let found = site.find(&run, query.project.as_deref())?;
        let prompt = newest_prompt(&found)?;
        let (shares, problem) = match run::context_window(&found.journal, found.id()) {
            Ok(shares) => (shares, None),
            Err(problem) => (Vec::new(), Some(problem)),
        };
        let share = |share: run::ContextShare| ShareView {
            kind: share.kind,
            items: share.items,
            tokens: share.tokens,
        };
        Ok(Json(ContextView {
            sections: sections(&prompt.system),
            tools: prompt.tools,
            shares: shares.into_iter().map(share).collect(),
            problem,
        }))
    })
    .await
}

/// Splits a prompt at its headings.
fn sections(prompt: &str) -> Vec<SectionView> {
    let estimator = Estimator::default();
    let mut sections: Vec<(String, String)> = Vec::new();
    let mut in_code = false;
    for line in prompt.lines() {
        in_code ^= line.trim_start().starts_with("```");
        let heading =
            (line.starts_with('#') && !in_code).then(|| line.trim_start_matches('#').trim().to_owned());
        match (heading, sections.last_mut()) {
            (None, Some((_, text))) => {
                text.push('\n');
                text.push_str(line);
            }
            (heading, _) => sections.push((heading.unwrap_or_default(), line.to_owned())),
        }
    }
    let view =
        |(title, text): (String, String)| SectionView { title, tokens: estimator.count(text.len()), text };
    sections.into_iter().map(view).collect()
}

pub(super) async fn program(
    State(site): State<Site>,
    Path(run): Path<String>,
    Params(query): Params<RunQuery>,
) -> Result<Json<ProgramView>, Problem> {
    site.read(move |site| {
        let found = site.find(&run, query.project.as_deref())?;
        let settings = run::settings_of(&found.journal, found.id())?;
        Ok(Json(match settings.work {
            RunKind::Request => ProgramView {
                kind: ProgramKind::Request,
                name: String::new(),
                text: settings.request,
                inputs: Map::new(),
            },
            RunKind::Workflow(work) => ProgramView {
                kind: ProgramKind::Workflow,
                name: work.name,
                text: work.text,
                inputs: work.inputs,
            },
            RunKind::Template(work) => ProgramView {
                kind: ProgramKind::Template,
                name: work.name,
                text: work.text,
                inputs: work.inputs,
            },
        }))
    })
    .await
}
