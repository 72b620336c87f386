//! Completion of the word before the cursor: a command at the start, a path after `@`, and after `/task` a
//! name and then its inputs.

use std::path::Path;

use super::commands::TABLE;

#[cfg(test)]
mod tests;

/// Maximum number of candidates.
const SHOWN: usize = 8;

/// Maximum number of directory entries that are examined.
const LOOKED_AT: usize = 5_000;

/// Candidates for the word before the cursor.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Completion {
    /// Number of bytes before the cursor that a candidate replaces.
    pub(crate) replaces: usize,
    pub(crate) candidates: Vec<String>,
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
        return Completion { replaces: word.len(), candidates: for_task(&given, word, offers) };
    }
    if before.starts_with('/') && word.len() == before.len() {
        let names =
            TABLE.iter().map(|entry| entry.name).filter(|name| name.starts_with(word) && *name != word);
        let candidates = names.take(SHOWN).map(|name| format!("{name} ")).collect();
        return Completion { replaces: word.len(), candidates };
    }
    match word.strip_prefix('@') {
        Some(path) => Completion { replaces: path.len(), candidates: paths(path, workspace) },
        None => Completion::default(),
    }
}

/// Names first, then those inputs of the named task that are not given yet.
fn for_task(given: &[&str], word: &str, offers: &[TaskCandidate]) -> Vec<String> {
    let Some((name, inputs)) = given.split_first() else {
        let names = offers.iter().map(|offer| offer.name.as_str());
        return names
            .filter(|name| name.starts_with(word))
            .take(SHOWN)
            .map(|name| format!("{name} "))
            .collect();
    };
    let named = offers.iter().filter(|offer| offer.name == *name);
    let keys = named.flat_map(|offer| &offer.inputs).map(|key| format!("{key}="));
    let wanted =
        keys.filter(|key| key.starts_with(word) && !inputs.iter().any(|input| input.starts_with(key)));
    wanted.take(SHOWN).collect()
}

fn paths(typed: &str, workspace: &Path) -> Vec<String> {
    let (folder, beginning) = typed.rsplit_once('/').map_or(("", typed), |(folder, name)| (folder, name));
    // Only paths that the model could read as well.
    if folder.starts_with('/') || folder.split('/').any(|part| part == "..") {
        return Vec::new();
    }
    let Ok(entries) = std::fs::read_dir(workspace.join(folder)) else { return Vec::new() };
    let mut found: Vec<String> = entries
        .take(LOOKED_AT)
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
    found.truncate(SHOWN);
    found
}
