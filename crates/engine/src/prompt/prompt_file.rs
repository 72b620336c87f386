//! Prompt files in TOML or JSON. Unknown fields are errors, and all checks of `builder.rs` apply.

mod check;

use std::collections::BTreeMap;
use std::ops::Range;

use serde::Deserialize;
use serde_json::Value;

use super::builder::{Prompt, PromptProblem};
use super::default::SKILLS;
use super::delegation::DelegationPrompt;
use super::environment::EnvironmentSnapshot;
use super::planning_strategy::PlanningStrategy;
use super::section::{PromptSection, SectionDisplay, Visibility};
use super::task_fields::AnyTask;
use super::task_section::TaskSection;

/// Parser for prompt files.
pub struct PromptFile;

/// Error in a prompt file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FileProblem {
    /// The text is not valid TOML or JSON, or has unknown fields.
    #[error("{0}")]
    Syntax(String),
    /// The file is well-formed but has these problems.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Content(Vec<PromptProblem>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PromptFileText {
    sections: Vec<FileSection>,
}

impl PromptFileText {
    fn read(text: &str) -> Result<Self, FileProblem> {
        if text.trim_start().starts_with('{') {
            serde_json::from_str(text).map_err(|error| FileProblem::Syntax(error.to_string()))
        } else {
            toml::from_str(text).map_err(|error| FileProblem::Syntax(error.to_string()))
        }
    }

    /// Like `read`, but returns the error position separately.
    fn read_placed(text: &str) -> Result<Self, (String, Option<Range<usize>>)> {
        if text.trim_start().starts_with('{') {
            serde_json::from_str(text).map_err(|error| {
                let before = text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len);
                let start = before.sum::<usize>() + error.column().saturating_sub(1);
                (error.to_string(), Some(start..start + 1))
            })
        } else {
            toml::from_str(text).map_err(|error| (error.message().trim().replace('\n', "; "), error.span()))
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileSection {
    kind: Option<SectionKind>,
    strategy: Option<PlanningStrategy>,
    prompt: Option<Vec<FileSection>>,
    key: Option<String>,
    title: Option<String>,
    body: Option<String>,
    summary: Option<String>,
    #[serde(default)]
    visibility: SectionDisplay,
    #[serde(default)]
    params: BTreeMap<String, Value>,
    enabled: Option<bool>,
    /// Tools offered while the section is open.
    #[serde(default)]
    tools: Vec<String>,
    #[serde(default)]
    sections: Vec<FileSection>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum SectionKind {
    Text,
    Task,
    Planning,
    Delegation,
    Workspace,
    #[serde(rename = "workspace-digest", alias = "workspace_digest")]
    WorkspaceDigest,
    Agents,
    Skills,
}

impl SectionKind {
    /// Whether the section's text is built in, so that a body is not allowed.
    fn has_own_text(self) -> bool {
        !matches!(self, Self::Text | Self::Delegation | Self::Task | Self::Planning)
    }
}

impl PromptFile {
    /// Parses a prompt file without a project; sections that show project data are absent. JSON is recognised
    /// by its first character.
    pub fn parse(text: &str) -> Result<Prompt<AnyTask>, FileProblem> {
        Self::parsed(text, None)
    }

    /// Parses a prompt file for a project.
    pub fn parse_for(text: &str, environment: &EnvironmentSnapshot) -> Result<Prompt<AnyTask>, FileProblem> {
        Self::parsed(text, Some(environment))
    }

    /// Whether the prompt shows the project digest. `false` if the file cannot be read.
    pub fn wants_digest(text: &str) -> bool {
        let file = PromptFileText::read(text);
        file.is_ok_and(|file| file.sections.iter().any(FileSection::wants_digest))
    }

    fn parsed(text: &str, environment: Option<&EnvironmentSnapshot>) -> Result<Prompt<AnyTask>, FileProblem> {
        let (mut builder, mut problems) = (Prompt::builder(), Vec::new());
        for section in PromptFileText::read(text)?.sections {
            builder = builder.section(section.into_section(environment, &mut problems));
        }
        match (builder.build(), problems.is_empty()) {
            (Ok(prompt), true) => Ok(prompt),
            (Ok(_), false) => Err(FileProblem::Content(problems)),
            (Err(more), _) => {
                problems.extend(more);
                Err(FileProblem::Content(problems))
            }
        }
    }
}

impl FileSection {
    fn wants_digest(&self) -> bool {
        self.kind == Some(SectionKind::WorkspaceDigest) || self.sections.iter().any(Self::wants_digest)
    }

    fn into_section(
        self,
        environment: Option<&EnvironmentSnapshot>,
        problems: &mut Vec<PromptProblem>,
    ) -> PromptSection {
        let kind = self.kind.unwrap_or(SectionKind::Text);
        let (own_key, own_title) = match kind {
            SectionKind::Text => ("", ""),
            SectionKind::Task => ("task", "Task"),
            SectionKind::Planning => ("planning", "Planning"),
            SectionKind::Delegation => ("delegation", "Delegation"),
            SectionKind::Workspace => ("workspace", "Workspace"),
            SectionKind::WorkspaceDigest => ("workspace-digest", "Workspace Digest"),
            SectionKind::Agents => ("agents", "The Project's Instructions (AGENTS.md)"),
            SectionKind::Skills => ("skills", "Skills"),
        };
        let key = self.key.unwrap_or_else(|| own_key.to_owned());
        let mut problem = |code, message: &str| {
            problems.push(PromptProblem { code, at: Some(key.clone()), message: message.to_owned() });
        };
        match kind {
            SectionKind::Task if self.body.is_some() => {
                problem("task_with_body", "a task section cannot have a body");
            }
            SectionKind::Planning if self.body.is_some() => {
                problem(
                    "planning_with_body",
                    "a planning section takes its text from its strategy and cannot have a body",
                );
            }
            _ if kind.has_own_text() && self.body.is_some() => {
                problem(
                    "section_with_body",
                    "a section of this kind has built-in text and cannot have a body",
                );
            }
            _ => {}
        }
        if self.strategy.is_some() && kind != SectionKind::Planning {
            problem("stray_strategy", "`strategy` is only allowed in a section of kind \"planning\"");
        }
        if self.prompt.is_some() && kind != SectionKind::Delegation {
            problem("stray_prompt", "`prompt` is only allowed in a section of kind \"delegation\"");
        }
        let title = self.title.unwrap_or_else(|| own_title.to_owned());
        let mut section = match kind {
            SectionKind::Task => TaskSection::new(key, title).into(),
            SectionKind::Planning => self.strategy.unwrap_or_default().section().named(key, title),
            SectionKind::Delegation => {
                let own = self.prompt.unwrap_or_default();
                let own =
                    own.into_iter().map(|section| section.into_section(environment, problems)).collect();
                let section = PromptSection::delegation(DelegationPrompt::new(own)).named(key, title);
                match self.body {
                    Some(body) => section.with_body(body),
                    None => section,
                }
            }
            SectionKind::Workspace => PromptSection::workspace().named(key, title),
            SectionKind::WorkspaceDigest => {
                let digest = environment.and_then(|environment| environment.digest.as_deref());
                present(digest.map(PromptSection::workspace_digest)).named(key, title)
            }
            SectionKind::Agents => {
                let instructions = environment.and_then(|environment| environment.instructions.as_deref());
                present(instructions.map(PromptSection::instructions)).named(key, title)
            }
            SectionKind::Skills => {
                let skills = environment.map(|environment| environment.skills.as_slice()).unwrap_or_default();
                present((!skills.is_empty()).then(|| PromptSection::skills(SKILLS, skills))).named(key, title)
            }
            SectionKind::Text => PromptSection::text(key, title, self.body.unwrap_or_default()),
        };
        section = match (self.summary, self.visibility) {
            (Some(summary), shown) => section.with_summary(summary, Visibility::Fixed(shown)),
            (None, SectionDisplay::Summary) => {
                section.with_summary("", Visibility::Fixed(SectionDisplay::Summary))
            }
            (None, SectionDisplay::Full) => section,
        };
        if self.enabled == Some(false) {
            section = section.enabled(std::sync::Arc::new(|_| false));
        }
        section = self.tools.into_iter().fold(section, PromptSection::tool);
        for (name, value) in self.params {
            section = section.param(name, value);
        }
        for child in self.sections {
            section = section.child(child.into_section(environment, problems));
        }
        section
    }
}

/// Returns the section, or a hidden one in its place, so that the other sections keep their numbers.
fn present(section: Option<PromptSection>) -> PromptSection {
    section.unwrap_or_else(|| PromptSection::literal("", "", "").enabled(std::sync::Arc::new(|_| false)))
}
