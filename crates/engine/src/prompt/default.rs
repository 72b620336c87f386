//! The default prompt of a plain run: built-in and project texts as sections. The request is not part of it;
//! it is sent as the first message.

use std::collections::BTreeSet;

use super::builder::{Prompt, PromptProblem};
use super::environment::EnvironmentSnapshot;
use super::overrides;
use super::planning_strategy::PlanningStrategy;
use super::section::PromptSection;
use super::task_fields::AnyTask;

/// General working instructions.
const DEFAULT: &str = include_str!("default.md");

/// Instructions for runs without tools: the files are in the request, and the answer contains them.
const DIRECT: &str = include_str!("direct.md");

/// Additional instructions in review mode.
const REVIEW: &str = include_str!("review.md");

/// Introduction to the skills section.
pub(super) const SKILLS: &str =
    "Instructions for certain kinds of work. Read the one that is about your task before you begin.";

/// Sections whose text a project can override, with the built-in text.
const OVERRIDABLE: [(&str, &str); 4] =
    [("work", DEFAULT), ("direct", DIRECT), ("review", REVIEW), ("skills", SKILLS)];

/// Returns the overridable sections of all built-in prompts.
fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
    OVERRIDABLE.into_iter().chain(super::review_sections::OVERRIDABLE)
}

/// Selects the variant of the default prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PromptKind {
    /// Review mode: the model must not change anything.
    pub review: bool,
    /// Planning strategy to include, if one was chosen.
    pub planning: Option<PlanningStrategy>,
    /// Direct mode: the model has no tools and answers once, with the files.
    pub direct: bool,
}

/// The default prompt, with notices for the user.
pub struct DefaultPrompt {
    /// The prompt. It has no placeholders.
    pub prompt: Prompt<AnyTask>,
    /// Project files that were ignored or used only in part, with the reason.
    pub notices: Vec<String>,
}

impl DefaultPrompt {
    /// Builds the prompt for an environment.
    pub fn new(environment: &EnvironmentSnapshot, kind: PromptKind) -> Result<Self, Vec<PromptProblem>> {
        let (sections, notices) = sections(environment, kind);
        let builder =
            sections.into_iter().fold(Prompt::builder(), |builder, section| builder.section(section));
        Ok(Self { prompt: builder.build()?, notices })
    }
}

/// Returns the sections, and notices for the user.
fn sections(environment: &EnvironmentSnapshot, kind: PromptKind) -> (Vec<PromptSection>, Vec<String>) {
    let mut notices = environment.notices.clone();
    let mut text = |key: &str| overrides::section_text(key, environment, &mut notices);
    if kind.direct {
        let mut sections = vec![PromptSection::literal("direct", "How to Work", text("direct"))];
        sections.extend(environment.instructions.as_deref().map(PromptSection::instructions));
        return (sections, notices);
    }
    let mut sections = vec![PromptSection::literal("work", "How to Work", text("work"))];
    if kind.review {
        sections.push(PromptSection::literal("review", "Review", text("review")));
    }
    sections.extend(kind.planning.map(PlanningStrategy::section));
    sections.push(PromptSection::literal("environment", "Environment", environment.text()));
    sections.extend(environment.instructions.as_deref().map(PromptSection::instructions));
    if !environment.skills.is_empty() {
        sections.push(PromptSection::skills(text("skills"), &environment.skills));
    }
    (sections, notices)
}

/// Returns the sections of a delegated task that has no prompt of its own: those of every task.
pub(crate) fn default_sections(environment: &EnvironmentSnapshot) -> Vec<PromptSection> {
    sections(environment, PromptKind::default()).0
}

/// Returns the built-in text of an overridable section.
pub(crate) fn original(key: &str) -> Option<&'static str> {
    all().find(|(known, _)| *known == key).map(|(_, text)| text.trim())
}

/// Returns the keys of the overridable sections.
pub fn overridable() -> impl Iterator<Item = &'static str> {
    all().map(|(key, _)| key)
}

/// Renders the default prompt without skills, for tasks that cannot open sections.
pub fn default_system(environment: &EnvironmentSnapshot, kind: PromptKind) -> String {
    let environment = EnvironmentSnapshot { skills: Vec::new(), ..environment.clone() };
    let prompt = DefaultPrompt::new(&environment, kind).map(|default| default.prompt);
    let bound = prompt.as_ref().ok().and_then(|prompt| prompt.bind(&AnyTask::default()).ok());
    let rendered = bound.and_then(|bound| bound.render(&BTreeSet::new()).ok());
    // All keys and titles are built in and there are no placeholders, so this always renders.
    rendered.map_or_else(|| DEFAULT.trim().to_owned(), |rendered| rendered.text)
}

/// Returns the text of the first message: the request, followed by the background if there is any.
pub fn request_text(request: &str, background: Option<&str>) -> String {
    match background.map(str::trim).filter(|text| !text.is_empty()) {
        Some(background) => format!("{request}\n\n**Background:** {background}"),
        None => request.to_owned(),
    }
}
