//! Fingerprint of a walk: the directories it visited and the ignore files that applied. While none of them
//! changes, a new walk would find the same files, so it can be skipped.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::ContentHash;
use crate::workspace::bounded_read;

/// Names of ignore files.
const RULES: [&str; 2] = [".gitignore", ".ignore"];

/// Maximum size of an ignore file; with a larger one there is no stamp.
const MAX_BYTES: u64 = 1 << 20;

/// Maximum number of directories recorded.
const MAX_DIRECTORIES: usize = 8_192;

/// The directories of a walk and the ignore files that applied to it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WalkFingerprint {
    /// Relative to the root; the first is the root itself, as an empty path.
    directories: Vec<PathBuf>,
    /// Paths of ignore files, relative to the root, whether they exist or not.
    rules: Vec<PathBuf>,
    /// Whether the walk exceeded the limit, or its root is a relative path.
    #[serde(default)]
    overflown: bool,
}

/// State of a [`WalkFingerprint`] at one point in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FingerprintState {
    /// Changes whenever a directory or an ignore file changes.
    pub hash: ContentHash,
    /// Time of the latest change, in nanoseconds of the file system's clock.
    pub newest_ns: i128,
}

impl WalkFingerprint {
    /// Starts with the ignore files above the root.
    pub(super) fn starting_at(root: &Path) -> Self {
        let above = root.ancestors().skip(1);
        let rules = above.flat_map(|folder| {
            let named = RULES.map(|name| folder.join(name));
            named.into_iter().chain(super::excludes(folder))
        });
        // A relative path depends on the working directory.
        Self { rules: rules.collect(), directories: Vec::new(), overflown: root.is_relative() }
    }

    /// Records a directory that the walk visits.
    pub(super) fn enter(&mut self, root: &Path, directory: &Path) {
        if self.directories.len() == MAX_DIRECTORIES {
            self.overflown = true;
            return;
        }
        let folder = root.join(directory);
        // An ignore file created later changes the stamp of its directory.
        let named = RULES.map(|name| directory.join(name)).into_iter();
        self.rules.extend(named.filter(|rule| root.join(rule).symlink_metadata().is_ok()));
        if folder.join(".git").symlink_metadata().is_ok() {
            self.rules.extend(super::excludes(&folder));
        }
        self.directories.push(directory.to_owned());
    }

    /// Computes the current stamp; `None` if a directory is gone or the walk exceeded the limits.
    pub fn stamp(&self, root: &Path) -> Option<FingerprintState> {
        // The root's inode and times are unpredictable; a stored ground without the root could be forged.
        if self.overflown || self.directories.first().is_none_or(|first| !first.as_os_str().is_empty()) {
            return None;
        }
        let (mut bytes, mut newest_ns) = (Vec::new(), 0);
        let mut note = |found: &std::fs::Metadata, bytes: &mut Vec<u8>| {
            let changed = [(found.mtime(), found.mtime_nsec()), (found.ctime(), found.ctime_nsec())]
                .map(|(seconds, nanoseconds)| i128::from(seconds) * 1_000_000_000 + i128::from(nanoseconds));
            for number in [i128::from(found.dev()), i128::from(found.ino()), changed[0], changed[1]] {
                bytes.extend(number.to_le_bytes());
            }
            newest_ns = newest_ns.max(changed[0]).max(changed[1]);
        };
        for directory in &self.directories {
            let found = root.join(directory).symlink_metadata().ok().filter(std::fs::Metadata::is_dir)?;
            note(&found, &mut bytes);
        }
        for rule in &self.rules {
            let path = root.join(rule);
            let Ok(found) = path.metadata() else {
                bytes.push(0);
                continue;
            };
            note(&found, &mut bytes);
            bytes.extend(content(&path, &found)?);
        }
        Some(FingerprintState { hash: ContentHash::of(&bytes), newest_ns })
    }
}

/// Content hash of an ignore file; zeros if it is not a regular file.
fn content(path: &Path, found: &std::fs::Metadata) -> Option<[u8; 32]> {
    if !found.is_file() {
        return Some([0; 32]);
    }
    bounded_read::read(path, MAX_BYTES).ok().map(|bytes| *ContentHash::of(&bytes).as_bytes())
}
