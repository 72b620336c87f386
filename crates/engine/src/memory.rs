//! What is known of a work tree's files without reading them again: paths, languages, sizes, symbols, first words.
//!
//! [`Memory`] keeps an index, brings it up to date by what changed, and ranks files by words. It holds no content:
//! whoever wants that reads it through the handler's tools.

mod base;
mod coding;
mod commit;
mod delta;
mod entry;
#[cfg(feature = "grammars")]
mod grammar;
mod index;
mod merge;
mod rank;
mod ranking;
mod step;
mod symbols;
mod tokens;
mod walk;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

pub use entry::Entry;
use index::{Index, Trouble};
pub(crate) use ranking::{ARGUMENT as RANKING, Asking, unordered};
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
            answer(index, query)
        })
    }

    /// The files that fit, of what is known already.
    pub fn query(&self, query: &Query) -> Result<Answer, String> {
        self.with(|index| answer(index, query))
    }

    /// Everything that is known, in order of path.
    pub fn global_index(&self) -> Result<Vec<Entry>, String> {
        self.with(|index| Ok(index.entries()?))
    }

    /// What is known of one file.
    pub fn entry(&self, path: &str) -> Result<Option<Entry>, String> {
        self.with(|index| Ok(index.entry(path)?))
    }

    fn with<T>(&self, work: impl Fn(&mut Index) -> Result<T, Trouble>) -> Result<T, String> {
        let mut index = self.index.lock().unwrap_or_else(PoisonError::into_inner);
        let known = index.get_or_insert_with(|| self.file.as_deref().map(Index::open).unwrap_or_default());
        let mut done = work(known);
        if matches!(done, Err(Trouble::Damaged)) {
            // It can always be made again.
            *known = Index::default();
            done = work(known);
        }
        done.map_err(|trouble| match trouble {
            Trouble::Damaged => "the index of files cannot be read".to_owned(),
            Trouble::Failed(problem) => problem,
        })
    }

    fn refresh(&self, index: &mut Index) -> Result<Updated, Trouble> {
        index.refresh(&self.root, self.file.as_deref())
    }
}

fn answer(index: &mut Index, query: &Query) -> Result<Answer, Trouble> {
    let matches = rank::rank(index, &query.words, query.limit)?;
    Ok(Answer { summary: summary(&matches, Some(index.len())), matches })
}

/// Files in one line, with how many there are in all where that is known.
fn summary(matches: &[Found], of: Option<usize>) -> String {
    if matches.is_empty() {
        return "no file fits".to_owned();
    }
    let paths: Vec<&str> = matches.iter().map(|found| found.path.as_str()).collect();
    let of = of.map(|all| format!(" of {all}")).unwrap_or_default();
    format!("{}{of} files fit: {}", matches.len(), paths.join(", "))
}
