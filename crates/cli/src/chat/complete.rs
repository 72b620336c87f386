//! Completion of the word before the cursor: a command at the start, a path after `@`, and after `/task` a
//! name and then its inputs.

use std::path::Path;

use super::commands::TABLE;
use crate::project::markdown_commands;

#[cfg(test)]
mod tests;

/// Number of candidates that are visible at once.
pub(crate) const VISIBLE: usize = 8;

/// Maximum number of candidates.
const MAX_CANDIDATES: usize = 200;

/// Maximum number of directory entries that are examined.
const MAX_DIR_ENTRIES: usize = 5_000;

/// Candidates for the word before the cursor.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Completion {
    /// Number of bytes before the cursor that a candidate replaces.
    pub(crate) replaces: usize,
    pub(crate) candidates: Vec<String>,
    /// The candidate that was selected with the arrow keys.
    pub(crate) selected: Option<usize>,
}

impl Completion {
    fn new(replaces: usize, candidates: Vec<String>) -> Self {
        Self { replaces, candidates, selected: None }
    }

    /// The selected candidate, or the first one.
    pub(crate) fn current(&self) -> Option<&String> {
        self.candidates.get(self.selected.unwrap_or_default())
    }

    /// Selects the next or the previous candidate; returns whether there are any.
    pub(crate) fn step(&mut self, forward: bool) -> bool {
        let count = self.candidates.len();
        if count == 0 {
            return false;
        }
        self.selected = Some(match (self.selected, forward) {
            (None, true) => 0,
            (None, false) => count - 1,
            (Some(at), true) => (at + 1) % count,
            (Some(at), false) => (at + count - 1) % count,
        });
        true
    }

    /// The visible candidates: those around the selected one.
    pub(crate) fn window(&self) -> std::ops::Range<usize> {
        let at = self.selected.unwrap_or_default();
        let first = at.saturating_sub(VISIBLE - 1);
        first..self.candidates.len().min(first + VISIBLE)
    }
}

/// A template or workflow that `/task` can run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TaskCandidate {
    pub(crate) name: String,
    pub(crate) inputs: Vec<String>,
}

/// Finds the candidates for the text before the cursor.
pub(crate) fn candidates(before: &str, workspace: &Path, offers: &[TaskCandidate]) -> Completion {
    let word = before.rsplit(char::is_whitespace).next().unwrap_or_default();
    if let Some(line) = before.strip_prefix("/task ") {
        let given: Vec<&str> = line[..line.len() - word.len()].split_whitespace().collect();
        return Completion::new(word.len(), for_task(&given, word, offers));
    }
    if before.starts_with('/') && word.len() == before.len() {
        let own = markdown_commands::list(workspace).into_iter().map(|command| format!("/{}", command.name));
        let mut names: Vec<String> = TABLE.iter().map(|entry| entry.name.to_owned()).collect();
        names.extend(own.filter(|name| !TABLE.iter().any(|entry| entry.name == name)));
        let fitting = names.iter().filter(|name| name.starts_with(word) && *name != word);
        return Completion::new(
            word.len(),
            fitting.take(MAX_CANDIDATES).map(|name| format!("{name} ")).collect(),
        );
    }
    match word.strip_prefix('@') {
        Some(path) => Completion::new(path.len(), paths(path, workspace)),
        None => Completion::default(),
    }
}

/// Names first, then those inputs of the named task that are not given yet.
fn for_task(given: &[&str], word: &str, offers: &[TaskCandidate]) -> Vec<String> {
    let Some((name, inputs)) = given.split_first() else {
        let names = offers.iter().map(|offer| offer.name.as_str());
        return names
            .filter(|name| name.starts_with(word))
            .take(MAX_CANDIDATES)
            .map(|name| format!("{name} "))
            .collect();
    };
    let named = offers.iter().filter(|offer| offer.name == *name);
    let keys = named.flat_map(|offer| &offer.inputs).map(|key| format!("{key}="));
    let wanted =
        keys.filter(|key| key.starts_with(word) && !inputs.iter().any(|input| input.starts_with(key)));
    wanted.take(MAX_CANDIDATES).collect()
}

fn paths(typed: &str, workspace: &Path) -> Vec<String> {
    let (folder, beginning) = typed.rsplit_once('/').map_or(("", typed), |(folder, name)| (folder, name));
    // Only paths that the model could read as well.
    if folder.starts_with('/') || folder.split('/').any(|part| part == "..") {
        return Vec::new();
    }
    let Ok(entries) = std::fs::read_dir(workspace.join(folder)) else { return Vec::new() };
    let mut found: Vec<String> = entries
        .take(MAX_DIR_ENTRIES)
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let hidden = name.starts_with('.') && !beginning.starts_with('.');
            let fits = name.starts_with(beginning) && !hidden && !name.contains(char::is_whitespace);
            let end = if entry.file_type().ok()?.is_dir() { "/" } else { " " };
            let folder = if folder.is_empty() { String::new() } else { format!("{folder}/") };
            fits.then(|| format!("{folder}{name}{end}"))
        })
        .collect();
    found.sort_unstable();
    found.truncate(MAX_CANDIDATES);
    found
}
