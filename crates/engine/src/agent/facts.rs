//! Facts the runtime observed about a task. Reports are built from these, never from claims of the model.

use std::collections::{BTreeMap, BTreeSet};

use fusee_journal::Branch;
use fusee_journal::event::{ChangeKind, ReadCache, TaskReport, TaskStatus, Verification};
use fusee_tools::{ContentHash, FileChange, ToolOutput};

use super::conventions::is_run_by_convention;

/// Maximum characters of an error in a report.
const ERROR_CHARACTERS: usize = 500;

/// Facts about one task so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    files_read: BTreeSet<String>,
    /// For each changed file, its content before the task and now.
    files_changed: BTreeMap<String, FileChange>,
    /// Requested calls, by the name the model used, including the refused ones.
    calls: BTreeMap<String, u32>,
    refused: BTreeMap<String, u32>,
    errors: BTreeMap<String, u32>,
    feedback: BTreeMap<String, u32>,
    /// Replies that had to be requested again.
    pub(crate) asked_again: u32,
    /// Whether commands ran; they may have changed files without reporting it.
    pub(crate) commands: bool,
    /// Whether a write left a file's content unchanged, although a change was intended.
    pub(crate) idle_write: bool,
    verification: Option<Verification>,
    /// Number of plans made.
    plans: u32,
    /// File reads by the model's calls; `rereads` counts those whose content the model had already read
    /// unchanged.
    reads: u32,
    rereads: u32,
    /// Content hash of each file at its last read, removed when the file changes.
    contents: BTreeMap<String, ContentHash>,
}

impl Facts {
    /// Empty facts of a task whose earlier stages have read these files.
    pub(crate) fn with_contents(contents: BTreeMap<String, ContentHash>) -> Self {
        Self { contents, ..Self::default() }
    }

    /// Content hashes of the files that were read.
    pub(crate) fn contents(&self) -> &BTreeMap<String, ContentHash> {
        &self.contents
    }

    /// Records a call that ran.
    pub(crate) fn record_call(&mut self, name: &str, output: &ToolOutput) {
        *self.calls.entry(name.to_owned()).or_default() += 1;
        let writes = matches!(name, "write_file" | "edit_file" | "apply_patch");
        self.idle_write |= writes && output.ok && output.changed.is_empty();
        if !output.ok {
            *self.errors.entry(name.to_owned()).or_default() += 1;
        }
        self.note_changes(output.changed.iter());
        // Text returned by a change does not count as a read.
        for seen in output.seen.iter().filter(|_| !writes && output.changed.is_empty()) {
            self.files_read.insert(seen.path.clone());
            let before = self.contents.insert(seen.path.clone(), seen.hash);
            self.reads += 1;
            self.rereads += u32::from(before == Some(seen.hash));
        }
    }

    /// Records a call that was refused: it counts as requested, but neither as run nor as an error.
    pub(crate) fn record_refusal(&mut self, name: &str) {
        *self.calls.entry(name.to_owned()).or_default() += 1;
        *self.refused.entry(name.to_owned()).or_default() += 1;
    }

    /// Files that were actually read, sorted by path.
    pub(crate) fn files_read(&self) -> impl Iterator<Item = &String> {
        self.files_read.iter()
    }

    /// Records changes that the runtime made for the model.
    pub(crate) fn record_changes(&mut self, output: &ToolOutput) {
        self.note_changes(output.changed.iter());
    }

    /// Whether the file was actually read.
    pub(crate) fn has_read(&self, path: &str) -> bool {
        self.files_read.contains(path)
    }

    /// Records a file that the runtime read for the model.
    pub(crate) fn record_read(&mut self, path: &str) {
        self.files_read.insert(path.to_owned());
    }

    /// Hash of the contents of all changed files.
    pub(crate) fn state(&self) -> u64 {
        use std::hash::{Hash, Hasher};
        let mut hasher = std::collections::hash_map::DefaultHasher::new();
        for change in self.files_changed.values() {
            (&change.path, change.after).hash(&mut hasher);
        }
        hasher.finish()
    }

    /// Whether any file differs from before the task.
    pub(crate) fn has_changes(&self) -> bool {
        self.changed().next().is_some()
    }

    /// Number of successful calls, not counting `flow_stage_done` and `finish`.
    pub(crate) fn successful_calls(&self) -> u32 {
        let works = |name: &str| !matches!(name, "flow_stage_done" | "finish");
        let count = |counts: &BTreeMap<String, u32>| -> u32 {
            counts.iter().filter(|(name, _)| works(name)).map(|(_, count)| count).sum()
        };
        count(&self.calls).saturating_sub(count(&self.refused) + count(&self.errors))
    }

    /// Adds the facts of a stage.
    pub(crate) fn absorb(&mut self, part: &Self) {
        self.files_read.extend(part.files_read.iter().cloned());
        self.note_changes(part.files_changed.values());
        for (mine, theirs) in [
            (&mut self.calls, &part.calls),
            (&mut self.refused, &part.refused),
            (&mut self.errors, &part.errors),
            (&mut self.feedback, &part.feedback),
        ] {
            for (name, count) in theirs {
                *mine.entry(name.clone()).or_default() += count;
            }
        }
        self.asked_again += part.asked_again;
        self.commands |= part.commands;
        self.plans += part.plans;
        (self.reads, self.rereads) = (self.reads + part.reads, self.rereads + part.rereads);
        self.contents.extend(part.contents.iter().map(|(path, hash)| (path.clone(), *hash)));
        self.verification = part.verification.clone().or(self.verification.take());
    }

    /// Adds the file facts of a subtask; its calls are not counted here.
    pub(crate) fn absorb_files(&mut self, subtask: &Self) {
        self.files_read.extend(subtask.files_read.iter().cloned());
        self.note_changes(subtask.files_changed.values());
        self.commands |= subtask.commands;
    }

    /// All reported changes, including those that were reverted.
    pub(crate) fn all_changes(&self) -> Vec<FileChange> {
        self.files_changed.values().cloned().collect()
    }

    /// Reconciles with the actual files: adds the changes found at the end and keeps only files that differ.
    pub(crate) fn reconcile(&mut self, found: &[FileChange], differ: &BTreeSet<String>) {
        self.note_changes(found.iter());
        self.files_changed.retain(|path, _| differ.contains(path));
        for change in self.files_changed.values_mut() {
            // The file differs even though the recorded hashes are equal.
            if change.before == change.after {
                change.after = None;
            }
        }
    }

    fn note_changes<'a>(&mut self, changes: impl Iterator<Item = &'a FileChange>) {
        for change in changes {
            self.contents.remove(&change.path);
            self.files_changed
                .entry(change.path.clone())
                .and_modify(|known| known.after = change.after)
                .or_insert_with(|| change.clone());
        }
    }

    /// Records a result of the verification command.
    pub(crate) fn record_verification(&mut self, command: &str, passed: bool) {
        let runs = self.verification.as_ref().map_or(0, |last| last.runs) + 1;
        self.verification = Some(Verification { command: command.to_owned(), passed, runs });
    }

    /// Whether the last verification passed.
    pub(crate) fn is_verified(&self) -> bool {
        self.verification.as_ref().is_some_and(|last| last.passed)
    }

    /// Counts a plan that the model created or replaced.
    pub(crate) fn record_plan(&mut self) {
        self.plans += 1;
    }

    /// Number of plans made so far.
    pub(crate) fn plans(&self) -> u32 {
        self.plans
    }

    /// Number of calls that ran so far, over all tools.
    pub(crate) fn calls_run(&self) -> u32 {
        self.calls.values().sum::<u32>().saturating_sub(self.refused.values().sum())
    }

    /// Records a hint or refusal given to the model.
    pub(crate) fn count_feedback(&mut self, kind: &str) {
        *self.feedback.entry(kind.to_owned()).or_default() += 1;
    }

    /// Files that differ from before the task, each with the kind of change.
    pub(crate) fn changed(&self) -> impl Iterator<Item = (&str, ChangeKind)> {
        self.files_changed
            .values()
            .filter_map(|change| change_of(change).map(|kind| (change.path.as_str(), kind)))
    }

    /// Changed files that tools will run.
    fn run_by_convention(&self) -> Vec<String> {
        let stays =
            |(path, kind): &(&str, ChangeKind)| *kind != ChangeKind::Deleted && is_run_by_convention(path);
        self.changed().filter(stays).map(|(path, _)| path.to_owned()).collect()
    }

    /// Builds the report.
    pub(crate) fn report(&self, task: &Branch, description: &str, end: ReportedEnd<'_>) -> TaskReport {
        TaskReport {
            task_id: task.to_string(),
            description: description.to_owned(),
            status: end.status,
            attempts: end.attempts,
            replan_max: end.replan_max,
            files_changed: self.changed().map(|(path, _)| path.to_owned()).collect(),
            files_run_by_convention: self.run_by_convention(),
            files_read: self.files_read.iter().cloned().collect(),
            plan_steps: end.plan_steps,
            tool_calls_total: self.calls.values().sum(),
            tool_errors_total: self.errors.values().sum(),
            tool_call_counts: self.calls.clone(),
            tool_error_counts: self.errors.clone(),
            analysis_retries: self.asked_again,
            feedback_counts: self.feedback.clone(),
            error: end.error.map(|error| error.chars().take(ERROR_CHARACTERS).collect()),
            verify: self.verification.clone(),
            verified: match &self.verification {
                Some(verification) => Some(verification.passed),
                None => self.changed().next().map(|_| false),
            },
            read_cache: (self.reads > 0).then(|| ReadCache::new(self.reads, self.rereads)),
        }
    }
}

/// How the task ended, as far as the report shows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReportedEnd<'a> {
    pub(crate) status: TaskStatus,
    pub(crate) plan_steps: u32,
    pub(crate) attempts: u32,
    pub(crate) replan_max: u32,
    pub(crate) error: Option<&'a str>,
}

/// The kind of change; `None` if the file has its original content again.
pub(crate) fn change_of(change: &FileChange) -> Option<ChangeKind> {
    match (change.before, change.after) {
        (None, Some(_)) => Some(ChangeKind::Created),
        (Some(_), None) => Some(ChangeKind::Deleted),
        (Some(before), Some(after)) if before != after => Some(ChangeKind::Modified),
        _ => None,
    }
}
