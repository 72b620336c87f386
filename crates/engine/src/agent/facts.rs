//! What the runtime saw a task do. Reports are made from these facts, never from what a model says.

use std::collections::{BTreeMap, BTreeSet};

use fusee_journal::Branch;
use fusee_journal::event::{Change, ReadCache, TaskReport, TaskStatus, Verification};
use fusee_tools::{ContentHash, FileChange, ToolOutput};

/// How much of an error a report shows.
const ERROR_CHARACTERS: usize = 500;

/// Facts about one task so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    files_read: BTreeSet<String>,
    /// For each changed file what it held before this task, and what now.
    files_changed: BTreeMap<String, FileChange>,
    calls: BTreeMap<String, u32>,
    errors: BTreeMap<String, u32>,
    feedback: BTreeMap<String, u32>,
    /// Replies that had to be asked for again.
    pub(crate) asked_again: u32,
    /// Whether commands ran: then files may have changed that no tool told of.
    pub(crate) commands: bool,
    /// Whether a file was written that held just that already: a change was meant.
    pub(crate) idle_write: bool,
    verification: Option<Verification>,
    /// Plans made.
    plans: u32,
    /// Files read by the model's calls, and of them those that it had read before and that had not changed.
    reads: u32,
    rereads: u32,
    /// What the files held when they were last read, unless they were changed since.
    contents: BTreeMap<String, ContentHash>,
}

impl Facts {
    /// None yet, of a task in whose earlier parts these files were read.
    pub(crate) fn knowing(contents: BTreeMap<String, ContentHash>) -> Self {
        Self { contents, ..Self::default() }
    }

    /// What the files held that were read.
    pub(crate) fn contents(&self) -> &BTreeMap<String, ContentHash> {
        &self.contents
    }

    /// A call that ran.
    pub(crate) fn called(&mut self, name: &str, output: &ToolOutput) {
        *self.calls.entry(name.to_owned()).or_default() += 1;
        let writes = matches!(name, "write_file" | "edit_file" | "apply_patch");
        self.idle_write |= writes && output.ok && output.changed.is_empty();
        if !output.ok {
            *self.errors.entry(name.to_owned()).or_default() += 1;
        }
        self.files_read.extend(output.seen.iter().map(|seen| seen.path.clone()));
        self.note_changes(output.changed.iter());
        // What a change shows of a file is not asked for.
        for seen in output.seen.iter().filter(|_| output.changed.is_empty()) {
            let before = self.contents.insert(seen.path.clone(), seen.hash);
            self.reads += 1;
            self.rereads += u32::from(before == Some(seen.hash));
        }
    }

    /// Files really read, in order of path.
    pub(crate) fn files_read(&self) -> impl Iterator<Item = &String> {
        self.files_read.iter()
    }

    /// Changes that the runtime made for the model.
    pub(crate) fn changed_by_runtime(&mut self, output: &ToolOutput) {
        self.note_changes(output.changed.iter());
    }

    /// Whether this file was really read.
    pub(crate) fn has_read(&self, path: &str) -> bool {
        self.files_read.contains(path)
    }

    /// Takes note of a file that the runtime itself read for the model.
    pub(crate) fn read(&mut self, path: &str) {
        self.files_read.insert(path.to_owned());
    }

    /// A number that changes when the content of a changed file does.
    pub(crate) fn state(&self) -> u64 {
        use std::hash::{Hash, Hasher};
        let mut hasher = std::collections::hash_map::DefaultHasher::new();
        for change in self.files_changed.values() {
            (&change.path, change.after).hash(&mut hasher);
        }
        hasher.finish()
    }

    /// Whether any file differs from before.
    pub(crate) fn has_changes(&self) -> bool {
        self.changed().next().is_some()
    }

    /// Calls that did what they were asked for, besides those that steer the task.
    pub(crate) fn successful_calls(&self) -> u32 {
        let works = |name: &str| !matches!(name, "flow_stage_done" | "finish");
        let count = |counts: &BTreeMap<String, u32>| -> u32 {
            counts.iter().filter(|(name, _)| works(name)).map(|(_, count)| count).sum()
        };
        count(&self.calls).saturating_sub(count(&self.errors))
    }

    /// Takes over what a part of the task did.
    pub(crate) fn absorb(&mut self, part: &Self) {
        self.files_read.extend(part.files_read.iter().cloned());
        self.note_changes(part.files_changed.values());
        for (mine, theirs) in [
            (&mut self.calls, &part.calls),
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

    /// Takes over what a task that this one began did to files: its calls stay its own.
    pub(crate) fn absorb_files(&mut self, begun: &Self) {
        self.files_read.extend(begun.files_read.iter().cloned());
        self.note_changes(begun.files_changed.values());
        self.commands |= begun.commands;
    }

    /// All changes that were told, also those that came to nothing.
    pub(crate) fn all_changes(&self) -> Vec<FileChange> {
        self.files_changed.values().cloned().collect()
    }

    /// Takes the files' own word for what differs: what was found at the end, and of all that was told the rest.
    pub(crate) fn settle(&mut self, found: &[FileChange], differ: &BTreeSet<String>) {
        self.note_changes(found.iter());
        self.files_changed.retain(|path, _| differ.contains(path));
        for change in self.files_changed.values_mut() {
            // It differs, whatever the two names of its content are.
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

    /// What the command that verifies said.
    pub(crate) fn verified(&mut self, command: &str, passed: bool) {
        let runs = self.verification.as_ref().map_or(0, |last| last.runs) + 1;
        self.verification = Some(Verification { command: command.to_owned(), passed, runs });
    }

    /// A plan was made, the first or another.
    pub(crate) fn plan_made(&mut self) {
        self.plans += 1;
    }

    /// Plans made so far.
    pub(crate) fn plans(&self) -> u32 {
        self.plans
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
            attempts: end.attempts,
            replan_max: end.replan_max,
            files_changed: self.changed().map(|(path, _)| path.to_owned()).collect(),
            files_read: self.files_read.iter().cloned().collect(),
            plan_steps: end.plan_steps,
            tool_calls_total: self.calls_total(),
            tool_errors_total: self.errors.values().sum(),
            tool_call_counts: self.calls.clone(),
            tool_error_counts: self.errors.clone(),
            analysis_retries: self.asked_again,
            feedback_counts: self.feedback.clone(),
            error: end.error.map(|error| error.chars().take(ERROR_CHARACTERS).collect()),
            verify: self.verification.clone(),
            read_cache: (self.reads > 0).then(|| ReadCache::of(self.reads, self.rereads)),
        }
    }
}

/// How the task ended, as far as the report tells.
#[derive(Clone, Copy, Debug)]
pub(crate) struct End<'a> {
    pub(crate) status: TaskStatus,
    pub(crate) plan_steps: u32,
    pub(crate) attempts: u32,
    pub(crate) replan_max: u32,
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
