//! File index of a work tree: paths, languages, sizes, symbols and summaries.
//!
//! [`MemorySystem`] keeps the index, updates it incrementally, and ranks files against a query. It handles metadata
//! only: it opens no file of the work tree. The beginnings of new and changed files come from the handler's
//! [`FileReader`], and callers read content through the handler's tools.

mod bm25;
mod entry;
mod git_head;
mod index;
pub(crate) mod journaled_query;
mod scan;
mod symbols;
mod tokenizer;

#[cfg(feature = "grammars")]
mod treesitter;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

pub use entry::FileEntry;
use index::{FileIndex, IndexError};
pub use scan::MAX_FILES;

/// The first syntax error of a file, as a line, if there is a grammar that can tell.
#[must_use]
pub(crate) fn syntax_error(path: &str, text: &str) -> Option<String> {
    #[cfg(feature = "grammars")]
    let line = treesitter::first_error(text, entry::language(path), path);
    #[cfg(not(feature = "grammars"))]
    let line = (path, text, None::<usize>).2;
    line.map(|line| format!("line {line} does not parse"))
}

/// Names of what a file defines.
#[must_use]
pub(crate) fn definitions(path: &str, text: &str) -> Vec<String> {
    symbols::find(text, entry::language(path))
}

#[cfg(test)]
mod tests;

/// A search in the file index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryQuery {
    /// Search words. A file whose full path occurs among them is always found.
    pub words: String,
    /// Maximum number of files to return.
    pub limit: usize,
}

/// Search result.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MemoryAnswer {
    /// The matched files in one line.
    pub summary: String,
    /// Matched files, best first.
    pub matches: Vec<FileMatch>,
}

/// One file found by a search of the index.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FileMatch {
    /// Path relative to the work tree.
    pub path: String,
    /// Relevance: above 0, at most 1.
    pub score: f64,
    /// Which words matched where, or why the file was chosen.
    pub reason: String,
}

/// Statistics of an index update.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct IndexUpdate {
    /// Number of files in the index.
    pub files: usize,
    /// Number of files read because they are new or changed.
    pub read: usize,
    /// Number of files removed from the index.
    pub removed: usize,
    /// Whether files were left out because of [`MAX_FILES`].
    pub cut: bool,
}

/// Reads files for the index, on behalf of the handler.
pub trait FileReader: Send + Sync {
    /// At most the first `most` bytes of a regular file; `None` if it is not one, or cannot be read.
    fn head(&self, path: &Path, most: u64) -> Option<Vec<u8>>;
}

/// File index of one work tree.
pub struct MemorySystem {
    root: PathBuf,
    reader: Arc<dyn FileReader>,
    /// Where the index is stored; without a file it lives only as long as this value.
    file: Option<PathBuf>,
    index: Mutex<Option<FileIndex>>,
}

impl MemorySystem {
    /// Creates the index of a work tree, stored in `file` if one is given. `reader` gets paths relative to `root`.
    pub fn new(root: &Path, file: Option<PathBuf>, reader: Arc<dyn FileReader>) -> Self {
        Self { root: root.to_owned(), reader, file, index: Mutex::new(None) }
    }

    /// Brings the index up to date with the work tree.
    pub fn update(&self) -> Result<IndexUpdate, String> {
        self.with(|index| index.refresh(&self.root, &*self.reader))
    }

    /// Updates the index, then searches it: the specs' `getRelevantContextFor`.
    pub fn relevant_context_for(&self, query: &MemoryQuery) -> Result<MemoryAnswer, String> {
        self.with(|index| {
            index.refresh(&self.root, &*self.reader)?;
            answer(index, query)
        })
    }

    /// Searches the index without updating it.
    pub fn query(&self, query: &MemoryQuery) -> Result<MemoryAnswer, String> {
        self.with(|index| answer(index, query))
    }

    /// Returns all entries, sorted by path: the specs' `getGlobalIndex`.
    pub fn global_index(&self) -> Result<Vec<FileEntry>, String> {
        self.with(|index| index.entries())
    }

    /// Returns the entry of one file.
    pub fn entry(&self, path: &str) -> Result<Option<FileEntry>, String> {
        self.with(|index| Ok(index.entry(path)?))
    }

    fn with<T>(&self, work: impl Fn(&mut FileIndex) -> Result<T, IndexError>) -> Result<T, String> {
        let mut index = self.index.lock();
        let mut done = self.attempt(&mut index, &work);
        if matches!(done, Err(IndexError::Damaged)) {
            // The index can always be rebuilt from the work tree.
            *index = None;
            let emptied = self.file.as_deref().map_or(Ok(()), index::empty);
            done = emptied.and_then(|()| self.attempt(&mut index, &work));
        }
        done.map_err(|trouble| match trouble {
            IndexError::Damaged => "cannot read the file index".to_owned(),
            IndexError::Failed(problem) => problem,
        })
    }

    fn attempt<T>(
        &self,
        index: &mut Option<FileIndex>,
        work: impl Fn(&mut FileIndex) -> Result<T, IndexError>,
    ) -> Result<T, IndexError> {
        match index {
            Some(index) => work(index),
            None => work(index.insert(FileIndex::open(self.file.as_deref())?)),
        }
    }
}

fn answer(index: &FileIndex, query: &MemoryQuery) -> Result<MemoryAnswer, IndexError> {
    let matches = bm25::rank(index, &query.words, query.limit)?;
    Ok(MemoryAnswer { summary: summary(&matches, Some(index.totals()?.files)), matches })
}

/// Describes the matched files in one line, with the total number of files if it is known.
pub(crate) fn summary(matches: &[FileMatch], of: Option<usize>) -> String {
    if matches.is_empty() {
        return "no file fits".to_owned();
    }
    let paths: Vec<&str> = matches.iter().map(|found| found.path.as_str()).collect();
    let of = of.map(|all| format!(" of {all}")).unwrap_or_default();
    format!("{}{of} files fit: {}", matches.len(), paths.join(", "))
}
