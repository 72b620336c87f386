//! What is known of a work tree's files without reading them again: paths, languages, sizes, symbols, first words.
//!
//! [`Memory`] keeps an index, brings it up to date by what changed, and ranks files by words. It holds no content:
//! whoever wants that reads it through the handler's tools.

mod entry;
mod rank;
mod step;
mod stored;
mod symbols;
mod tokens;
mod walk;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

pub use entry::Entry;
pub(crate) use step::asked;
pub use walk::MOST_FILES;

#[cfg(test)]
mod tests;

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Query {
    /// Words; a path that is among them is found for sure.
    pub words: String,
    /// At most so many files.
    pub limit: usize,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// The files in one line.
    pub summary: String,
    /// Best first.
    pub matches: Vec<Found>,
}

/// A file that fits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Found {
    /// Its path in the work tree.
    pub path: String,
    /// How well it fits: above 0, at most 1.
    pub score: f64,
    /// Why.
    pub reason: String,
}

/// What an update did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Updated {
    /// Files that are known now.
    pub files: usize,
    /// Of them, read anew because they are new or changed.
    pub read: usize,
    /// No longer there.
    pub removed: usize,
    /// Whether there are more files than are kept.
    pub cut: bool,
}

/// The index of one work tree.
pub struct Memory {
    root: PathBuf,
    /// Where the index is kept between processes; without one it lives as long as this value.
    file: Option<PathBuf>,
    index: Mutex<Option<Index>>,
}

/// Entries in order of path.
#[derive(Default)]
struct Index {
    entries: Vec<Entry>,
}

impl Memory {
    /// The memory of a work tree, kept in `file` if one is given.
    pub fn new(root: &Path, file: Option<PathBuf>) -> Self {
        Self { root: root.to_owned(), file, index: Mutex::new(None) }
    }

    /// Brings the index up to date with the work tree.
    pub fn update(&self) -> Result<Updated, String> {
        self.with(|index| self.refresh(index))
    }

    /// The files that fit, after an update.
    pub fn relevant(&self, query: &Query) -> Result<Answer, String> {
        self.with(|index| {
            self.refresh(index)?;
            Ok(answer(&index.entries, query))
        })
    }

    /// The files that fit, of what is known already.
    pub fn query(&self, query: &Query) -> Result<Answer, String> {
        self.with(|index| Ok(answer(&index.entries, query)))
    }

    /// Everything that is known, in order of path.
    pub fn global_index(&self) -> Result<Vec<Entry>, String> {
        self.with(|index| Ok(index.entries.clone()))
    }

    /// What is known of one file.
    pub fn entry(&self, path: &str) -> Result<Option<Entry>, String> {
        self.with(|index| {
            let found = index.entries.binary_search_by(|entry| entry.path.as_str().cmp(path));
            Ok(found.ok().map(|at| index.entries[at].clone()))
        })
    }

    fn with<T>(&self, work: impl FnOnce(&mut Index) -> Result<T, String>) -> Result<T, String> {
        let mut index = self.index.lock().unwrap_or_else(PoisonError::into_inner);
        // A file that is damaged or of another version is as good as none: everything is read anew.
        let known =
            index.get_or_insert_with(|| self.file.as_deref().and_then(stored::read).unwrap_or_default());
        work(known)
    }

    fn refresh(&self, index: &mut Index) -> Result<Updated, String> {
        let known: HashMap<&str, &Entry> =
            index.entries.iter().map(|entry| (entry.path.as_str(), entry)).collect();
        let walked = walk::walk(&self.root, &known)?;
        let kept = walked.entries.len() - walked.new_paths;
        let updated = Updated {
            files: walked.entries.len(),
            read: walked.read,
            removed: known.len() - kept,
            cut: walked.cut,
        };
        let changed = updated.read > 0 || updated.removed > 0 || walked.touched > 0;
        drop(known);
        index.entries = walked.entries;
        if let Some(file) = self.file.as_deref().filter(|_| changed) {
            stored::write(file, index)
                .map_err(|error| format!("cannot write {}: {error}", file.display()))?;
        }
        Ok(updated)
    }
}

fn answer(entries: &[Entry], query: &Query) -> Answer {
    let matches = rank::rank(entries, &query.words, query.limit);
    let summary = match matches.as_slice() {
        [] => "no file fits".to_owned(),
        found => {
            let paths: Vec<&str> = found.iter().map(|found| found.path.as_str()).collect();
            format!("{} of {} files fit: {}", found.len(), entries.len(), paths.join(", "))
        }
    };
    Answer { summary, matches }
}
