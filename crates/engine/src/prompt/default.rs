//! The prompt of a plain run: texts of the product and of the project, as sections. The request is not among them: it
//! is the first message.

use std::collections::BTreeSet;

use super::build::{Problem, Prompt};
use super::environment::Environment;
use super::overrides;
use super::planning::PlanningStrategy;
use super::section::Section;
use super::task::AnyTask;

/// How to work.
const DEFAULT: &str = include_str!("default.md");

/// The same where there are no tools: the files are in the request, and the answer holds them.
const DIRECT: &str = include_str!("direct.md");

/// What is added in review mode.
const REVIEW: &str = include_str!("review.md");

/// What skills are.
pub(super) const SKILLS: &str =
    "Instructions for certain kinds of work. Read the one that is about your task before you begin.";

/// The sections whose text a project may override, with the product's own text.
const OVERRIDABLE: [(&str, &str); 4] =
    [("work", DEFAULT), ("direct", DIRECT), ("review", REVIEW), ("skills", SKILLS)];

/// The same of all prompts that the product has.
fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
    OVERRIDABLE.into_iter().chain(crate::review::OVERRIDABLE)
}

/// What kind of prompt it is to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PromptKind {
    /// Whether nothing is to be changed.
    pub review: bool,
    /// How to plan, where that was said.
    pub planning: Option<PlanningStrategy>,
    /// Whether the model answers once, with the files, and has no tools.
    pub direct: bool,
}

/// The prompt of a plain run, and what a person should know of it.
pub struct DefaultPrompt {
    /// Its sections. They hold no placeholders.
    pub prompt: Prompt<AnyTask>,
    /// The project's files that were not used as they are, and why.
    pub notices: Vec<String>,
}

impl DefaultPrompt {
    /// For this environment.
    pub fn new(environment: &Environment, kind: PromptKind) -> Result<Self, Vec<Problem>> {
        let (sections, notices) = sections(environment, kind);
        let builder =
            sections.into_iter().fold(Prompt::builder(), |builder, section| builder.section(section));
        Ok(Self { prompt: builder.build()?, notices })
    }
}

/// Its sections, and what a person should know of them.
fn sections(environment: &Environment, kind: PromptKind) -> (Vec<Section>, Vec<String>) {
    let mut notices = environment.notices.clone();
    let mut text = |key: &str| overrides::worded(key, environment, &mut notices);
    if kind.direct {
        let mut sections = vec![Section::literal("direct", "How to Work", text("direct"))];
        sections.extend(environment.instructions.as_deref().map(Section::instructions));
        return (sections, notices);
    }
    let mut sections = vec![Section::literal("work", "How to Work", text("work"))];
    if kind.review {
        sections.push(Section::literal("review", "Review", text("review")));
    }
    sections.extend(kind.planning.map(PlanningStrategy::section));
    sections.push(Section::literal("environment", "Environment", environment.text()));
    sections.extend(environment.instructions.as_deref().map(Section::instructions));
    if !environment.skills.is_empty() {
        sections.push(Section::skills(text("skills"), &environment.skills));
    }
    (sections, notices)
}

/// The sections of a task that another one hands over, where nothing else is said: those of every task.
pub(crate) fn usual_sections(environment: &Environment) -> Vec<Section> {
    sections(environment, PromptKind::default()).0
}

/// The product's own text of a section that can be overridden.
pub(crate) fn original(key: &str) -> Option<&'static str> {
    all().find(|(known, _)| *known == key).map(|(_, text)| text.trim())
}

/// The keys of the sections that can be overridden.
pub fn overridable() -> impl Iterator<Item = &'static str> {
    all().map(|(key, _)| key)
}

/// The default prompt as mere text, without skills: for tasks that open no sections.
pub fn default_system(environment: &Environment, kind: PromptKind) -> String {
    let environment = Environment { skills: Vec::new(), ..environment.clone() };
    let prompt = DefaultPrompt::new(&environment, kind).map(|default| default.prompt);
    let bound = prompt.as_ref().ok().and_then(|prompt| prompt.bind(&AnyTask::default()).ok());
    let rendered = bound.and_then(|bound| bound.render(&BTreeSet::new()).ok());
    // Its keys and titles are ours and it has no placeholders, so it always renders.
    rendered.map_or_else(|| DEFAULT.trim().to_owned(), |rendered| rendered.text)
}

/// The first message: the request, and its background if there is one.
pub fn request_text(request: &str, background: Option<&str>) -> String {
    match background.map(str::trim).filter(|text| !text.is_empty()) {
        Some(background) => format!("{request}\n\n**Background:** {background}"),
        None => request.to_owned(),
    }
}
