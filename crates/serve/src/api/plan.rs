//! What a run would do, and the prompt of a project: nothing is started and nothing is spent.

use axum::Json;
use axum::extract::State;
use fusee::approval::ApprovalMode;
use fusee::launch::{LaunchLimits, PromptPart};
use fusee::model::Usage;
use fusee::model::tokens::Estimator;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::context::SectionView;
use super::extract::{Input, Params};
use super::start::{self, NewRun};
use crate::problem::Problem;
use crate::site::Site;

/// What a run would do.
#[derive(Serialize, JsonSchema)]
pub(super) struct PlanView {
    /// Model; empty for a workflow that asks none.
    model: String,
    /// Context size of the model in tokens, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    context_tokens: Option<u64>,
    /// When it would ask for approval: `auto`, `ask` or `never`.
    approve: &'static str,
    /// Whether commands would be confined: `on` or `off`.
    sandbox: &'static str,
    /// Flow; absent for templates and workflows, which name their own.
    #[serde(skip_serializing_if = "Option::is_none")]
    flow: Option<String>,
    /// Command that would verify the work.
    #[serde(skip_serializing_if = "Option::is_none")]
    verify: Option<String>,
    /// Limits in force.
    limits: LaunchLimits,
    /// The first request to the model, by part; empty for a workflow.
    prompt: Vec<SectionView>,
    /// Estimated tokens of the first request, without the definitions of tools.
    prompt_tokens: u64,
    /// What the first request costs in US dollars, if prices are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_usd: Option<f64>,
    /// The calls of a workflow, and how many of them are certain.
    calls: String,
}

/// Which project's prompt to show.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PromptQuery {
    /// Directory of the project: one of those that `/api/session` lists [default: the first].
    #[serde(default)]
    project: Option<String>,
}

/// The system prompt of a request.
#[derive(Serialize, JsonSchema)]
pub(super) struct PromptView {
    /// Its sections, skills and project instructions included.
    sections: Vec<SectionView>,
}

pub(super) async fn plan(
    State(site): State<Site>,
    Input(new): Input<NewRun>,
) -> Result<Json<PlanView>, Problem> {
    let request = start::request(&site, new).await?;
    let plan = site.launcher.plan(request).await?;
    let prompt = sections(plan.prompt);
    let prompt_tokens = prompt.iter().map(|section| section.tokens).sum();
    let usage = Usage { input_tokens: prompt_tokens, ..Usage::default() };
    Ok(Json(PlanView {
        model: plan.model,
        context_tokens: plan.context_tokens,
        approve: match plan.approve {
            ApprovalMode::Auto => "auto",
            ApprovalMode::Ask => "ask",
            ApprovalMode::Never => "never",
        },
        sandbox: plan.sandbox,
        flow: plan.flow,
        verify: plan.verify,
        limits: plan.limits,
        prompt,
        prompt_tokens,
        prompt_usd: plan.price.map(|price| price.cost_usd(&usage)),
        calls: plan.calls,
    }))
}

pub(super) async fn prompt(
    State(site): State<Site>,
    Params(query): Params<PromptQuery>,
) -> Result<Json<PromptView>, Problem> {
    site.read(move |site| {
        let directory = site.project(query.project.as_deref())?;
        Ok(Json(PromptView { sections: sections(site.launcher.prompt(&directory)?) }))
    })
    .await
}

fn sections(parts: Vec<PromptPart>) -> Vec<SectionView> {
    let estimator = Estimator::default();
    let view = |PromptPart { title, text }| SectionView { title, tokens: estimator.count(text.len()), text };
    parts.into_iter().map(view).collect()
}
