//! Handing a part of a task over. There are no tasks inside tasks: a part is a subtask with a prompt of its own, which
//! ends in a recap of what was done so far and the task itself. `task_system` runs it.

use super::build::{Problem, Prompt};
use super::section::Section;
use super::task::AnyTask;

/// What the model that may hand parts over is told.
pub(super) const TEXT: &str = include_str!("delegation.md");

/// What the one that a part is handed to is told of its place.
const PLACE: &str =
    "This task is a part of another one, which waits for your answer and sees nothing else of your work.";

/// The tool that hands a part over.
pub(super) const SPAWNING: &str = "spawn_subtask";

/// Characters that a recap shows of a request, and of a plan.
const MOST_CHARACTERS: usize = 2000;

/// Files that a recap names of each sort.
const MOST_FILES: usize = 40;

/// The prompt of the tasks that a prompt hands over.
#[derive(Clone, Debug, Default)]
pub struct DelegationPrompt {
    sections: Vec<Section>,
}

/// What the task that hands a part over has done so far, as the runtime saw it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recap {
    /// What it was asked for.
    pub request: String,
    /// Its plan in words; empty without one.
    pub plan: String,
    /// The files it read.
    pub files_read: Vec<String>,
    /// The files it changed.
    pub files_changed: Vec<String>,
}

impl Recap {
    /// In words, for the model that goes on from here. It does not grow with the work.
    pub fn text(&self) -> String {
        let request = shortened(self.request.trim());
        let mut text = format!("{PLACE}\n\n**The whole task:** {request}");
        for (what, files) in [("read", &self.files_read), ("changed", &self.files_changed)] {
            if let Some((named, rest)) = named(files) {
                text.push_str(&format!("\n\n**Files {what} so far:** {named}{rest}"));
            }
        }
        let plan = self.plan.trim();
        if !plan.is_empty() {
            text.push_str(&format!("\n\n**The plan:**\n{}", shortened(plan)));
        }
        text
    }
}

fn named(files: &[String]) -> Option<(String, String)> {
    let rest = files.len().saturating_sub(MOST_FILES);
    let rest = if rest == 0 { String::new() } else { format!(" and {rest} more") };
    let named = files.iter().take(MOST_FILES).map(|file| format!("`{file}`")).collect::<Vec<_>>().join(", ");
    (!files.is_empty()).then_some((named, rest))
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(MOST_CHARACTERS) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

impl DelegationPrompt {
    /// With these sections before the recap and the task; with none, what every task is told comes first.
    pub fn new(sections: Vec<Section>) -> Self {
        Self { sections }
    }

    /// Its own sections.
    pub(super) fn sections(&self) -> &[Section] {
        &self.sections
    }

    /// The prompt of one task that is handed over: its sections or else the `usual` ones, a recap, the task.
    pub fn prompt(&self, recap: &Recap, usual: Vec<Section>) -> Result<Prompt<AnyTask>, Vec<Problem>> {
        let sections = if self.sections.is_empty() { usual } else { self.sections.clone() };
        let recap = Section::literal("recap", "Recap", recap.text());
        sections
            .into_iter()
            .chain([recap, Section::task()])
            .fold(Prompt::builder(), |builder, section| builder.section(section))
            .build()
    }

    /// What is wrong with it, whatever is handed over.
    pub(super) fn problems(&self, at: &str) -> Vec<Problem> {
        let mut problems = match self.prompt(&Recap::default(), Vec::new()) {
            Ok(_) => Vec::new(),
            Err(problems) => problems,
        };
        if self.sections.iter().any(Section::delegates) {
            let message = "a task that was handed over hands nothing over itself".to_owned();
            problems.push(Problem { code: "nested_delegation", at: None, message });
        }
        for problem in &mut problems {
            let inside = problem.at.take().map(|inside| format!("/{inside}")).unwrap_or_default();
            problem.at = Some(format!("{at}{inside}"));
        }
        problems
    }
}
