//! A prompt in a file, TOML or JSON. Unknown fields are errors; what `build.rs` checks is checked here too.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::build::{Problem, Prompt};
use super::delegation::DelegationPrompt;
use super::planning::PlanningStrategy;
use super::section::{Section, Shown, Visibility};
use super::task::AnyTask;

/// A prompt read from a file.
pub struct PromptFile;

/// A file that is no prompt.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FileProblem {
    /// It cannot be read as TOML or JSON, or has fields a prompt does not have.
    #[error("{0}")]
    Syntax(String),
    /// It can, and is wrong in these ways.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Content(Vec<Problem>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    sections: Vec<FileSection>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileSection {
    kind: Option<Kind>,
    strategy: Option<PlanningStrategy>,
    prompt: Option<Vec<FileSection>>,
    key: Option<String>,
    title: Option<String>,
    body: Option<String>,
    summary: Option<String>,
    #[serde(default)]
    visibility: Shown,
    #[serde(default)]
    params: BTreeMap<String, Value>,
    enabled: Option<bool>,
    #[serde(default)]
    sections: Vec<FileSection>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Text,
    Task,
    Planning,
    Delegation,
}

impl PromptFile {
    /// Reads the text of a prompt file. JSON is told by its first character.
    pub fn parse(text: &str) -> Result<Prompt<AnyTask>, FileProblem> {
        let file: File = if text.trim_start().starts_with('{') {
            serde_json::from_str(text).map_err(|error| FileProblem::Syntax(error.to_string()))?
        } else {
            toml::from_str(text).map_err(|error| FileProblem::Syntax(error.to_string()))?
        };
        let (mut builder, mut problems) = (Prompt::builder(), Vec::new());
        for section in file.sections {
            builder = builder.section(section.into_section(&mut problems));
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
    fn into_section(self, problems: &mut Vec<Problem>) -> Section {
        let kind = self.kind.unwrap_or(Kind::Text);
        let (own_key, own_title) = match kind {
            Kind::Text => ("", ""),
            Kind::Task => ("task", "Task"),
            Kind::Planning => ("planning", "Planning"),
            Kind::Delegation => ("delegation", "Delegation"),
        };
        let key = self.key.unwrap_or_else(|| own_key.to_owned());
        let mut problem = |code, message: &str| {
            problems.push(Problem { code, at: Some(key.clone()), message: message.to_owned() });
        };
        match kind {
            Kind::Task if self.body.is_some() => {
                problem("task_with_body", "a task section has no body of its own");
            }
            Kind::Planning if self.body.is_some() => {
                problem(
                    "planning_with_body",
                    "a planning section has the text of its strategy, and no body of its own",
                );
            }
            _ => {}
        }
        if self.strategy.is_some() && kind != Kind::Planning {
            problem("stray_strategy", "only a section of kind \"planning\" has a strategy");
        }
        if self.prompt.is_some() && kind != Kind::Delegation {
            problem("stray_prompt", "only a section of kind \"delegation\" has a prompt of other tasks");
        }
        let title = self.title.unwrap_or_else(|| own_title.to_owned());
        let mut section = match kind {
            Kind::Task => Section::task().named(key, title),
            Kind::Planning => self.strategy.unwrap_or_default().section().named(key, title),
            Kind::Delegation => {
                let own = self.prompt.unwrap_or_default();
                let own = own.into_iter().map(|section| section.into_section(problems)).collect();
                let section = Section::delegation(DelegationPrompt::new(own)).named(key, title);
                match self.body {
                    Some(body) => section.saying(body),
                    None => section,
                }
            }
            Kind::Text => Section::text(key, title, self.body.unwrap_or_default()),
        };
        section = match (self.summary, self.visibility) {
            (Some(summary), shown) => section.with_summary(summary, Visibility::Fixed(shown)),
            (None, Shown::Summary) => section.with_summary("", Visibility::Fixed(Shown::Summary)),
            (None, Shown::Full) => section,
        };
        if self.enabled == Some(false) {
            section = section.enabled(std::sync::Arc::new(|_| false));
        }
        for (name, value) in self.params {
            section = section.param(name, value);
        }
        for child in self.sections {
            section = section.child(child.into_section(problems));
        }
        section
    }
}
