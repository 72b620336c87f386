//! What the runtime saw a task do. Reports are made from these facts, never from what a model says.

use std::collections::{BTreeMap, BTreeSet};

use fusee_journal::Branch;
use fusee_journal::event::{Change, TaskReport, TaskStatus};
use fusee_tools::{FileChange, ToolOutput};

/// How much of an error a report shows.
const ERROR_CHARACTERS: usize = 500;

/// Facts about one task so far.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    files_read: BTreeSet<String>,
    /// For each changed file what it held before this task, and what now.
    files_changed: BTreeMap<String, FileChange>,
    calls: BTreeMap<String, u32>,
    errors: BTreeMap<String, u32>,
    feedback: BTreeMap<String, u32>,
}

impl Facts {
    /// A call that ran.
    pub(crate) fn called(&mut self, name: &str, output: &ToolOutput) {
        *self.calls.entry(name.to_owned()).or_default() += 1;
        if !output.ok {
            *self.errors.entry(name.to_owned()).or_default() += 1;
        }
        self.files_read.extend(output.seen.iter().map(|seen| seen.path.clone()));
        for change in &output.changed {
            self.files_changed
                .entry(change.path.clone())
                .and_modify(|known| known.after = change.after)
                .or_insert_with(|| change.clone());
        }
    }

    /// Calls so far, all tools.
    pub(crate) fn calls_total(&self) -> u32 {
        self.calls.values().sum()
    }

    /// A hint or a refusal given to the model.
    pub(crate) fn fed_back(&mut self, sort: &str) {
        *self.feedback.entry(sort.to_owned()).or_default() += 1;
    }

    /// Files that differ from before the task, with what became of each.
    pub(crate) fn changed(&self) -> impl Iterator<Item = (&str, Change)> {
        self.files_changed
            .values()
            .filter_map(|change| change_of(change).map(|sort| (change.path.as_str(), sort)))
    }

    /// The report on these facts.
    pub(crate) fn report(&self, task: &Branch, description: &str, end: End<'_>) -> TaskReport {
        TaskReport {
            task_id: task.to_string(),
            description: description.to_owned(),
            status: end.status,
            attempts: 1,
            replan_max: 0,
            files_changed: self.changed().map(|(path, _)| path.to_owned()).collect(),
            files_read: self.files_read.iter().cloned().collect(),
            plan_steps: end.plan_steps,
            tool_calls_total: self.calls_total(),
            tool_errors_total: self.errors.values().sum(),
            tool_call_counts: self.calls.clone(),
            tool_error_counts: self.errors.clone(),
            analysis_retries: end.asked_again,
            feedback_counts: self.feedback.clone(),
            error: end.error.map(|error| error.chars().take(ERROR_CHARACTERS).collect()),
        }
    }
}

/// How the task ended, as far as the report tells.
pub(crate) struct End<'a> {
    pub(crate) status: TaskStatus,
    pub(crate) plan_steps: u32,
    pub(crate) asked_again: u32,
    pub(crate) error: Option<&'a str>,
}

/// What became of a file; `None` if it is again what it was.
pub(crate) fn change_of(change: &FileChange) -> Option<Change> {
    match (change.before, change.after) {
        (None, Some(_)) => Some(Change::Created),
        (Some(_), None) => Some(Change::Deleted),
        (Some(before), Some(after)) if before != after => Some(Change::Modified),
        _ => None,
    }
}
