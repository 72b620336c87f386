//! The reviewer's prompt: guidance, project digest, changes, reference documents, planning, tools, and
//! finally the task.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;

use super::material::Material;
use super::{CodeReview, findings_schema};
use crate::agent::Disclosure;
use crate::prompt::{Environment, Prompt, Section, worded};

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

const GUIDANCE: &str = include_str!("guidance.md");

const PLANNING: &str = include_str!("planning.md");

const WORKSPACE: &str = "You can look at every file of the project: list, find, search and read. You cannot change \
                         anything, and no commands run.";

const REFERENCE: &str =
    "Documents that the project is to be held to. Read those that matter for what you review.";

/// Sections whose text a project can override, with the built-in text. The schema of findings is always
/// appended to the guidance.
pub(crate) const OVERRIDABLE: [(&str, &str); 4] =
    [("guidance", GUIDANCE), ("planning", PLANNING), ("workspace", WORKSPACE), ("reference", REFERENCE)];

/// Returns the prompt of a review, bound to its task, and notices for the user.
pub(crate) fn disclosure(
    review: &CodeReview,
    request: &str,
    background: Option<&str>,
    material: &Material,
    environment: &Environment,
    opened: BTreeSet<String>,
) -> Result<(Disclosure, Vec<String>), String> {
    let task = CodeReviewTask {
        request: request.to_owned(),
        background: background.map(str::to_owned),
        expansion_instructions: None,
        files: (!review.paths.is_empty()).then(|| review.paths.clone()),
        focus: review.focus.clone(),
    };
    let told = |problems: Vec<crate::prompt::Problem>| {
        problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    let mut notices = environment.notices.clone();
    let prompt = prompt(material, &mut |key| worded(key, environment, &mut notices)).map_err(told)?;
    let disclosure = Disclosure::new(&prompt, &task, opened).map_err(|problem| problem.to_string())?;
    Ok((disclosure, notices))
}

fn prompt(
    material: &Material,
    text: &mut dyn FnMut(&str) -> String,
) -> Result<Prompt<CodeReviewTask>, Vec<crate::prompt::Problem>> {
    let schema = findings_schema().to_string();
    let guidance = format!("{}\n\n{schema}", text("guidance"));
    let mut builder = Prompt::builder()
        .section(Section::literal("guidance", "Review Guidance", guidance))
        .section(Section::literal("workspace-digest", "Workspace Digest", material.digest.clone()));
    if let Some(diff) = &material.diff {
        let body = if diff.trim().is_empty() {
            "Nothing differs.".to_owned()
        } else {
            format!("```diff\n{diff}\n```")
        };
        builder = builder.section(Section::literal("changes", "Changes", body));
    }
    if !material.references.is_empty() {
        let parent = Section::literal("reference", "Reference Documents", text("reference"));
        let reference = material.references.iter().fold(parent, |parent, it| parent.child(it.section()));
        builder = builder.section(reference);
    }
    builder
        .section(Section::literal("planning", "Planning", text("planning")).tool("plan_tasks"))
        .section(Section::literal("workspace", "Workspace", text("workspace")))
        .section(Section::task().named("review-task", "Review Task"))
        .build()
}
