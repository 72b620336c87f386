//! What decides which files a walk finds: the directories it looked into and the ignore files that held there. As long
//! as none of them is another, a walk would find the same, and that is seen without walking.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::{ContentHash, plain};

/// Files that say in their directory what is left out of it.
const RULES: [&str; 2] = [".gitignore", ".ignore"];

/// Larger rules are not looked at: nothing is known to be the same then.
const MOST_BYTES: u64 = 1 << 20;

/// More directories than this are not remembered.
const MOST_DIRECTORIES: usize = 8_192;

/// The directories of a walk and the files with rules for it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ground {
    /// From the root; the root itself is the first, and empty.
    directories: Vec<PathBuf>,
    /// From the root, there or not.
    rules: Vec<PathBuf>,
    /// Whether it is larger than what is remembered, or cannot be found again.
    #[serde(default)]
    overflown: bool,
}

/// What a ground was at some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The same as long as nothing there is another.
    pub hash: ContentHash,
    /// When something there changed last, in nanoseconds of the file system's clock.
    pub newest_ns: i128,
}

impl Ground {
    /// With the rules that come from above the root.
    pub(super) fn around(root: &Path) -> Self {
        let above = root.ancestors().skip(1);
        let rules = above.flat_map(|folder| {
            let named = RULES.map(|name| folder.join(name));
            named.into_iter().chain(super::excludes(folder))
        });
        // What a relative path means depends on where one stands.
        Self { rules: rules.collect(), directories: Vec::new(), overflown: root.is_relative() }
    }

    /// Takes note of a directory that is looked into.
    pub(super) fn enter(&mut self, root: &Path, directory: &Path) {
        if self.directories.len() == MOST_DIRECTORIES {
            self.overflown = true;
            return;
        }
        let folder = root.join(directory);
        // One that is made later changes the directory it is made in.
        let named = RULES.map(|name| directory.join(name)).into_iter();
        self.rules.extend(named.filter(|rule| root.join(rule).symlink_metadata().is_ok()));
        if folder.join(".git").symlink_metadata().is_ok() {
            self.rules.extend(super::excludes(&folder));
        }
        self.directories.push(directory.to_owned());
    }

    /// What it is now; `None` if a directory is gone, or if there is too much of it.
    pub fn stamp(&self, root: &Path) -> Option<Stamp> {
        // Without the root itself, whose number and times nobody can know before, it could be a forgery.
        if self.overflown || self.directories.first().is_none_or(|first| !first.as_os_str().is_empty()) {
            return None;
        }
        let (mut told, mut newest_ns) = (Vec::new(), 0);
        let mut note = |found: &std::fs::Metadata, told: &mut Vec<u8>| {
            let changed = [(found.mtime(), found.mtime_nsec()), (found.ctime(), found.ctime_nsec())]
                .map(|(seconds, nanoseconds)| i128::from(seconds) * 1_000_000_000 + i128::from(nanoseconds));
            for number in [i128::from(found.dev()), i128::from(found.ino()), changed[0], changed[1]] {
                told.extend(number.to_le_bytes());
            }
            newest_ns = newest_ns.max(changed[0]).max(changed[1]);
        };
        for directory in &self.directories {
            let found = root.join(directory).symlink_metadata().ok().filter(std::fs::Metadata::is_dir)?;
            note(&found, &mut told);
        }
        for rule in &self.rules {
            let path = root.join(rule);
            let Ok(found) = path.metadata() else {
                told.push(0);
                continue;
            };
            note(&found, &mut told);
            told.extend(content(&path, &found)?);
        }
        Some(Stamp { hash: ContentHash::of(&told), newest_ns })
    }
}

/// What a file with rules says, by its hash.
fn content(path: &Path, found: &std::fs::Metadata) -> Option<[u8; 32]> {
    if !found.is_file() {
        return Some([0; 32]);
    }
    plain::read(path, MOST_BYTES).ok().map(|bytes| *ContentHash::of(&bytes).as_bytes())
}
