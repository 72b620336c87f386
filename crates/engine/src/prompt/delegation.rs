//! Delegation of a part of a task. A part is a subtask with its own prompt, which ends in a recap of the work
//! so far and the task itself. `task_system` runs it.

use super::builder::{Prompt, PromptProblem};
use super::section::PromptSection;
use super::task_fields::AnyTask;
use super::task_section::TaskSection;

/// Text of the delegation section, for the model that delegates.
pub(super) const TEXT: &str = include_str!("delegation.md");

/// Introduction of the recap, for the model that receives the part.
const PLACE: &str =
    "This task is a part of another one, which waits for your answer and sees nothing else of your work.";

/// Name of the tool that delegates a part.
pub(super) const SPAWNING: &str = "spawn_subtask";

/// Maximum length of the request and of the plan in a recap, in characters.
const MAX_CHARACTERS: usize = 2000;

/// Maximum number of files of each kind named in a recap.
const MAX_FILES: usize = 40;

/// Prompt of the tasks that a prompt delegates.
#[derive(Clone, Debug, Default)]
pub struct DelegationPrompt {
    sections: Vec<PromptSection>,
}

/// Progress of the delegating task, as recorded by the runtime.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recap {
    /// Request of the delegating task.
    pub request: String,
    /// Its plan as text; empty if there is none.
    pub plan: String,
    /// Files it has read.
    pub files_read: Vec<String>,
    /// Files it has changed.
    pub files_changed: Vec<String>,
}

impl Recap {
    /// Renders the recap for the model. Its length is bounded.
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
    let rest = files.len().saturating_sub(MAX_FILES);
    let rest = if rest == 0 { String::new() } else { format!(" and {rest} more") };
    let named = files.iter().take(MAX_FILES).map(|file| format!("`{file}`")).collect::<Vec<_>>().join(", ");
    (!files.is_empty()).then_some((named, rest))
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(MAX_CHARACTERS) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

impl DelegationPrompt {
    /// Creates a prompt with these sections before the recap and the task; if empty, the default sections are
    /// used.
    pub fn new(sections: Vec<PromptSection>) -> Self {
        Self { sections }
    }

    /// Returns its own sections, without recap and task.
    pub(super) fn sections(&self) -> &[PromptSection] {
        &self.sections
    }

    /// Builds the prompt of one delegated task: its own sections or else the `defaults` ones, then the recap and
    /// the task.
    pub fn prompt(
        &self,
        recap: &Recap,
        usual: Vec<PromptSection>,
    ) -> Result<Prompt<AnyTask>, Vec<PromptProblem>> {
        let sections = if self.sections.is_empty() { usual } else { self.sections.clone() };
        let recap = PromptSection::literal("recap", "Recap", recap.text());
        sections
            .into_iter()
            .chain([recap, TaskSection::default().into()])
            .fold(Prompt::builder(), |builder, section| builder.section(section))
            .build()
    }

    /// Returns the problems that do not depend on the delegated task.
    pub(super) fn problems(&self, at: &str) -> Vec<PromptProblem> {
        let mut problems = match self.prompt(&Recap::default(), Vec::new()) {
            Ok(_) => Vec::new(),
            Err(problems) => problems,
        };
        if self.sections.iter().any(PromptSection::delegates) {
            let message = "a delegated task cannot delegate further".to_owned();
            problems.push(PromptProblem { code: "nested_delegation", at: None, message });
        }
        for problem in &mut problems {
            let inside = problem.at.take().map(|inside| format!("/{inside}")).unwrap_or_default();
            problem.at = Some(format!("{at}{inside}"));
        }
        problems
    }
}
