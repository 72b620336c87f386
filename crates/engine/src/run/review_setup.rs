//! Sets up a run of the code reviewer: collects its context as a step, and configures its task.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use fusee_journal::{Branch, DurableRun, RunAborted, StepKind, StepRequest};
use fusee_tools::{Access, Toolbox, Workspace};
use tokio_util::sync::CancellationToken;

use super::RunSpec;
use crate::agent::AgentTask;
use crate::prompt::EnvironmentSnapshot;
use crate::review::{self, CodeReview, Findings, FindingsCheck, ReviewContext, ReviewSources};

/// Collects the context of a code review; `None` if the run is not one.
pub(super) async fn review_context(
    engine: &dyn DurableRun,
    branch: &Branch,
    settings: &RunSpec,
    environment: &EnvironmentSnapshot,
    workspace: &Arc<Workspace>,
    toolbox: &Toolbox,
    digests: PathBuf,
) -> Result<Option<ReviewContext>, RunAborted> {
    let Some(review) = &settings.code_review else { return Ok(None) };
    let place = ReviewSources {
        directory: settings.workspace.clone(),
        digests,
        branch: environment.branch.clone(),
        workspace: Arc::clone(workspace),
        shell: toolbox.find("shell").cloned(),
        cancel: CancellationToken::new(),
    };
    let request = StepRequest::new(branch, StepKind::Environment, "review");
    let gather = async move { ReviewContext::gather(review, &place).await };
    Ok(Some(engine.step(request, gather).await?.value))
}

/// Returns the tools that change nothing.
pub(super) fn read_only_tools(toolbox: &Toolbox) -> Toolbox {
    let mut looking = Toolbox::new();
    for tool in toolbox.iter().filter(|tool| tool.definition().category != Access::Write) {
        // Names are unique in the source toolbox.
        let _ = looking.insert(Arc::clone(tool));
    }
    looking
}

/// Adds the reviewer's prompt and the check of its findings to the task.
pub(super) fn configure_prompt(
    task: AgentTask,
    settings: &RunSpec,
    review: &CodeReview,
    review_context: ReviewContext,
    environment: &EnvironmentSnapshot,
    opened: BTreeSet<String>,
) -> Result<AgentTask, String> {
    if let Some(problem) = review_context.problem {
        return Ok(task.with_failure(problem));
    }
    // A question about the project can be answered without a change; a review of nothing needs no model.
    if review_context.is_unchanged() && settings.request == review.request() {
        let base = review.base.as_deref().unwrap_or_default();
        let summary = format!("Nothing changed since `{base}`: there is nothing to review.");
        return Ok(task.with_answer(review.format.write(&Findings { summary, ..Findings::default() })));
    }
    let background = settings.background.as_deref();
    let (sectioned_prompt, notices) = review::sectioned_prompt(
        review,
        &settings.request,
        background,
        &review_context,
        environment,
        opened,
    )?;
    Ok(task
        .with_warnings(notices)
        .with_prompt(sectioned_prompt)
        .with_answer_check(Arc::new(FindingsCheck::new(review)?)))
}
