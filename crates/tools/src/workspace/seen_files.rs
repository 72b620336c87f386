//! Bounded record of the file versions a run has seen. When it is full, the least recently seen half is
//! dropped, which costs a model one more read before it edits such a file.

use std::collections::HashMap;

use crate::workspace::content::ContentHash;

/// Maximum number of files, more than a run works on; a few hundred bytes each.
const MAX_FILES: usize = 4096;

#[derive(Debug, Default)]
pub(super) struct SeenFiles {
    files: HashMap<String, (ContentHash, u64)>,
    counter: u64,
}

impl SeenFiles {
    pub(super) fn insert(&mut self, path: &str, hash: ContentHash) {
        self.counter += 1;
        self.files.insert(path.to_owned(), (hash, self.counter));
        if self.files.len() > MAX_FILES {
            let mut stamps: Vec<u64> = self.files.values().map(|(_, stamp)| *stamp).collect();
            let (_, &mut middle, _) = stamps.select_nth_unstable(MAX_FILES / 2);
            self.files.retain(|_, (_, stamp)| *stamp > middle);
        }
    }

    pub(super) fn remove(&mut self, path: &str) {
        self.files.remove(path);
    }

    pub(super) fn find(&self, path: &str) -> Option<ContentHash> {
        self.files.get(path).map(|(hash, _)| *hash)
    }
}
