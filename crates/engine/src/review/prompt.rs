//! The reviewer's prompt: guidance, project digest, changes, reference documents, planning, tools, and
//! finally the task.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;

use super::review_context::ReviewContext;
use super::{CodeReview, findings_schema};
use crate::agent::SectionedPrompt;
use crate::prompt::{EnvironmentSnapshot, Prompt, PromptSection, TaskSection, section_text};

/// Task type of a review.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CodeReviewTask {
    /// The user's request in natural language.
    pub request: String,
    /// Additional context or background for the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub background: Option<String>,
    /// Instructions injected after sections are expanded via progressive disclosure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expansion_instructions: Option<String>,
    /// Specific files to focus the review on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files: Option<Vec<String>>,
    /// Review focus such as 'security' or 'performance'.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub focus: Option<String>,
}

/// Returns the prompt of a review, bound to its task, and notices for the user.
pub(crate) fn sectioned_prompt(
    review: &CodeReview,
    request: &str,
    background: Option<&str>,
    material: &ReviewContext,
    environment: &EnvironmentSnapshot,
    opened: BTreeSet<String>,
) -> Result<(SectionedPrompt, Vec<String>), String> {
    let task = CodeReviewTask {
        request: request.to_owned(),
        background: background.map(str::to_owned),
        expansion_instructions: None,
        files: (!review.paths.is_empty()).then(|| review.paths.clone()),
        focus: review.focus.clone(),
    };
    let problem_text = |problems: Vec<crate::prompt::PromptProblem>| {
        problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    let mut notices = environment.notices.clone();
    let prompt =
        prompt(material, &mut |key| section_text(key, environment, &mut notices)).map_err(problem_text)?;
    let sectioned_prompt =
        SectionedPrompt::new(&prompt, &task, opened).map_err(|problem| problem.to_string())?;
    Ok((sectioned_prompt, notices))
}

fn prompt(
    material: &ReviewContext,
    text: &mut dyn FnMut(&str) -> String,
) -> Result<Prompt<CodeReviewTask>, Vec<crate::prompt::PromptProblem>> {
    let schema = findings_schema().to_string();
    let guidance = format!("{}\n\n{schema}", text("guidance"));
    let mut builder = Prompt::builder()
        .section(PromptSection::literal("guidance", "Review Guidance", guidance))
        .section(PromptSection::literal("workspace-digest", "Workspace Digest", material.digest.clone()));
    if let Some(diff) = &material.diff {
        let mut body = if diff.trim().is_empty() {
            "Nothing differs.".to_owned()
        } else {
            format!("```diff\n{diff}\n```")
        };
        if let Some(untracked) = &material.untracked {
            body.push_str(&format!("\n\nNew files that git does not track yet:\n\n```\n{untracked}\n```"));
        }
        builder = builder.section(PromptSection::literal("changes", "Changes", body));
    }
    if !material.references.is_empty() {
        let parent = PromptSection::literal("reference", "Reference Documents", text("reference"));
        let reference = material.references.iter().fold(parent, |parent, it| parent.child(it.section()));
        builder = builder.section(reference);
    }
    builder
        .section(PromptSection::literal("planning", "Planning", text("planning")).tool("plan_tasks"))
        .section(PromptSection::literal("workspace", "Workspace", text("workspace")))
        .section(TaskSection::new("review-task", "Review Task"))
        .build()
}
