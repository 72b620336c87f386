//! File index of a work tree: paths, languages, sizes, symbols and summaries.
//!
//! [`Memory`] keeps the index, updates it incrementally, and ranks files against a query. It holds no file
//! content; callers read that through the handler's tools.

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

/// A search in the file index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Query {
    /// Search words. A file whose full path occurs among them is always found.
    pub words: String,
    /// Maximum number of files to return.
    pub limit: usize,
}

/// Search result.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// The matched files in one line.
    pub summary: String,
    /// Matched files, best first.
    pub matches: Vec<Found>,
}

/// A matched file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Found {
    /// Path relative to the work tree.
    pub path: String,
    /// Relevance: above 0, at most 1.
    pub score: f64,
    /// Which words matched where, or why the file was chosen.
    pub reason: String,
}

/// Statistics of an index update.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Updated {
    /// Number of files in the index.
    pub files: usize,
    /// Number of files read because they are new or changed.
    pub read: usize,
    /// Number of files removed from the index.
    pub removed: usize,
    /// Whether files were left out because of [`MOST_FILES`].
    pub cut: bool,
}

/// File index of one work tree.
pub struct Memory {
    root: PathBuf,
    /// Where the index is stored; without a file it lives only as long as this value.
    file: Option<PathBuf>,
    index: Mutex<Option<Index>>,
}

impl Memory {
    /// Creates the index of a work tree, stored in `file` if one is given.
    pub fn new(root: &Path, file: Option<PathBuf>) -> Self {
        Self { root: root.to_owned(), file, index: Mutex::new(None) }
    }

    /// Brings the index up to date with the work tree.
    pub fn update(&self) -> Result<Updated, String> {
        self.with(|index| self.refresh(index))
    }

    /// Updates the index, then searches it.
    pub fn relevant(&self, query: &Query) -> Result<Answer, String> {
        self.with(|index| {
            self.refresh(index)?;
            answer(index, query)
        })
    }

    /// Searches the index without updating it.
    pub fn query(&self, query: &Query) -> Result<Answer, String> {
        self.with(|index| answer(index, query))
    }

    /// Returns all entries, sorted by path.
    pub fn global_index(&self) -> Result<Vec<Entry>, String> {
        self.with(|index| Ok(index.entries()?))
    }

    /// Returns the entry of one file.
    pub fn entry(&self, path: &str) -> Result<Option<Entry>, String> {
        self.with(|index| Ok(index.entry(path)?))
    }

    fn with<T>(&self, work: impl Fn(&mut Index) -> Result<T, Trouble>) -> Result<T, String> {
        let mut index = self.index.lock().unwrap_or_else(PoisonError::into_inner);
        let known = index.get_or_insert_with(|| self.file.as_deref().map(Index::open).unwrap_or_default());
        let mut done = work(known);
        if matches!(done, Err(Trouble::Damaged)) {
            // The index can always be rebuilt from the work tree.
            *known = Index::default();
            done = work(known);
        }
        done.map_err(|trouble| match trouble {
            Trouble::Damaged => "cannot read the file index".to_owned(),
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

/// Describes the matched files in one line, with the total number of files if it is known.
fn summary(matches: &[Found], of: Option<usize>) -> String {
    if matches.is_empty() {
        return "no file fits".to_owned();
    }
    let paths: Vec<&str> = matches.iter().map(|found| found.path.as_str()).collect();
    let of = of.map(|all| format!(" of {all}")).unwrap_or_default();
    format!("{}{of} files fit: {}", matches.len(), paths.join(", "))
}
