//! Open questions, and their answers. A question is answered once: the first answer counts, wherever it comes from.

use std::time::Duration;

use axum::Json;
use axum::extract::{Path, State};
use fusee::approval::{
    ApprovalAnswer, ApprovalExtent, ApprovalQuestion, ApprovalScope, OutsideAnswer, signal_name,
};
use fusee::journal::{Branch, Event, RunStatus};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::extract::{Input, Params};
use super::runs::{RunQuery, questions};
use crate::problem::Problem;
use crate::question::{OpenQuestion, QuestionKind, QuestionView};
use crate::site::{FoundRun, Site};

/// How long to wait until the run takes an answer, before `waiting` is returned. Another process polls three times a
/// second.
const PICKUP_TIMEOUT: Duration = Duration::from_secs(3);

/// Interval at which the journal is checked for that.
const INTERVAL: Duration = Duration::from_millis(50);

/// Reason of a refusal without one.
const REFUSED: &str = "the user declined";

/// A decision about a call.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Approval {
    /// Id of the question.
    id: String,
    /// Whether the call may run.
    decision: Decision,
    /// How long an approval lasts [default: once].
    #[serde(default)]
    scope: Option<Scope>,
    /// Whether a lasting approval covers only what is shown, or everything like it [default: false].
    #[serde(default)]
    wider: bool,
    /// Reason of a refusal, for the model.
    #[serde(default)]
    reason: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Decision {
    Allow,
    Deny,
}

/// How long an approval lasts.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Scope {
    /// For this call.
    Once,
    /// Until the run ends.
    Session,
    /// In every run of this project.
    Always,
}

/// The answer to a question.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TextAnswer {
    /// Id of the question [default: the oldest one that waits for a text].
    #[serde(default)]
    id: Option<String>,
    /// Text of the answer.
    text: String,
}

/// State of a question after an answer.
#[derive(Serialize, JsonSchema)]
pub(super) struct Answered {
    /// Id of the question.
    id: String,
    /// `taken`, or `waiting` if the run has not taken it yet.
    state: AnswerState,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum AnswerState {
    /// The run continues with it.
    Taken,
    /// It is stored and will be used when the run looks for it, or is resumed.
    Waiting,
}

pub(super) async fn list(State(site): State<Site>) -> Result<Json<Vec<QuestionView>>, Problem> {
    site.read(|site| {
        let mut waiting = Vec::new();
        for project in site.projects() {
            let Ok(Some(journal)) = site.journal(&project) else { continue };
            for row in journal.runs()?.into_iter().filter(|row| row.status == RunStatus::Open) {
                let run = FoundRun { project: project.clone(), journal: journal.clone(), row };
                let outline = site.outline(&run)?;
                let outline = outline.lock();
                if !outline.questions.is_empty() {
                    waiting.extend(questions(&run, &outline, run.is_active()));
                }
            }
        }
        Ok(Json(waiting))
    })
    .await
}

pub(super) async fn approve(
    State(site): State<Site>,
    Path(run): Path<String>,
    Params(query): Params<RunQuery>,
    Input(approval): Input<Approval>,
) -> Result<Json<Answered>, Problem> {
    let approved = approval.decision == Decision::Allow;
    let answer = ApprovalAnswer {
        approved,
        reason: (!approved).then(|| approval.reason.unwrap_or_else(|| REFUSED.to_owned())),
        lasts: match approval.scope {
            None | Some(Scope::Once) => ApprovalScope::Once,
            Some(Scope::Session) => ApprovalScope::Session,
            Some(Scope::Always) => ApprovalScope::Always,
        },
        extent: if approval.wider { ApprovalExtent::Wider } else { ApprovalExtent::Shown },
    };
    let saved = answer.approved && answer.lasts == ApprovalScope::Always;
    let extent = answer.extent;
    let answer = OutsideAnswer::Approval(answer);
    let (answered, found, question) = give(&site, run, query, Some(approval.id), answer, approved).await?;
    if saved {
        let question = ApprovalQuestion {
            call_id: question.id,
            name: question.tool,
            arguments: question.arguments,
            reason: question.reason,
        };
        site.read(move |site| Ok(site.launcher.save_rules(&found.project, question.lasting(extent))?))
            .await?;
    }
    Ok(answered)
}

pub(super) async fn answer(
    State(site): State<Site>,
    Path(run): Path<String>,
    Params(query): Params<RunQuery>,
    Input(answer): Input<TextAnswer>,
) -> Result<Json<Answered>, Problem> {
    let (answered, ..) = give(&site, run, query, answer.id, OutsideAnswer::Text(answer.text), true).await?;
    Ok(answered)
}

/// Delivers an answer and waits until the run has taken it.
async fn give(
    site: &Site,
    run: String,
    query: RunQuery,
    id: Option<String>,
    answer: OutsideAnswer,
    approved: bool,
) -> Result<(Json<Answered>, FoundRun, OpenQuestion), Problem> {
    let is_approval = matches!(answer, OutsideAnswer::Approval(_));
    let (found, question) = site
        .read(move |site| {
            let found = site.find(&run, query.project.as_deref())?;
            let outline = site.outline(&found)?;
            let question = pick(&outline.lock().questions, id.as_deref(), is_approval)?;
            Ok((found, question))
        })
        .await?;
    if !site.claim_answer(&found, &question.id) {
        return Err(Problem::conflict("this question has been answered"));
    }
    if let Err(problem) = deliver(site, &found, &question, &answer).await {
        site.release_answer(&found, &question.id);
        return Err(problem);
    }
    let outcome = tokio::time::timeout(PICKUP_TIMEOUT, resolution(site, &found, &question)).await;
    let state = match outcome {
        Ok(Ok(taken)) if taken == approved => AnswerState::Taken,
        Ok(Ok(_)) => return Err(Problem::conflict("this question was answered elsewhere first")),
        Ok(Err(problem)) => return Err(problem),
        Err(_) => AnswerState::Waiting,
    };
    Ok((Json(Answered { id: question.id.clone(), state }), found, question))
}

fn pick(open: &[OpenQuestion], id: Option<&str>, approval: bool) -> Result<OpenQuestion, Problem> {
    let fits = |question: &&OpenQuestion| (question.kind() == QuestionKind::Approval) == approval;
    let found = match id {
        Some(id) => open.iter().find(|question| question.id == id),
        None => open.iter().find(fits),
    };
    let Some(question) = found else {
        return Err(Problem::conflict("no such question is open: it may have been answered"));
    };
    match fits(&question) {
        true => Ok(question.clone()),
        false if approval => Err(Problem::conflict("this question waits for a text")),
        false => Err(Problem::conflict("this question waits for an approval")),
    }
}

async fn deliver(
    site: &Site,
    run: &FoundRun,
    question: &OpenQuestion,
    answer: &OutsideAnswer,
) -> Result<(), Problem> {
    if let Some(handle) = site.live.get(run.journal.path(), run.id()) {
        return match handle.answer(Some(&question.id), answer) {
            true => Ok(()),
            false => Err(Problem::conflict("this question has been answered")),
        };
    }
    let project = run.project.clone();
    let journal = site.read(move |site| Ok(site.launcher.open_journal(&project)?)).await?;
    let value = serde_json::to_value(answer).unwrap_or_default();
    let task: &Branch = &question.task;
    match journal.offer_signal(run.id(), &signal_name(task, &question.id), &value).await? {
        Some(_) => Ok(()),
        None => Err(Problem::conflict("this question has been answered")),
    }
}

/// Waits for the end of a question; returns whether it was approved.
async fn resolution(site: &Site, run: &FoundRun, question: &OpenQuestion) -> Result<bool, Problem> {
    let mut after = question.seq;
    loop {
        let found = run.clone();
        let events = site.read(move |_| Ok(found.journal.events(found.id(), after, u64::MAX, 100)?)).await?;
        for record in &events {
            after = record.seq;
            if let Event::ApprovalResolved { call_id, approved, .. } = &record.event
                && *call_id == question.id
            {
                return Ok(*approved);
            }
        }
        if events.is_empty() {
            tokio::time::sleep(INTERVAL).await;
        }
    }
}
