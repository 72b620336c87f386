//! Finds leaked keys: after every command of every test, its output and every file it left are searched for
//! the keys in its environment. That includes journals, cassettes, logs and events. `project` starts the
//! commands.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// Shorter values do not count as keys; the product does not redact them by value either.
const SHORTEST: usize = 8;

/// The keys to search for, and where.
pub(crate) struct SecretScan {
    root: PathBuf,
    keys: Vec<String>,
    /// Files that contained a key before the command, because the test put it there.
    planted: HashSet<PathBuf>,
}

impl SecretScan {
    /// Collects the keys of this environment; `root` is the directory that is searched.
    pub(crate) fn over(root: &Path, environment: &[(OsString, OsString)]) -> Self {
        let keys: Vec<String> = environment
            .iter()
            .filter(|(name, _)| {
                let name = name.to_string_lossy();
                ["_KEY", "_TOKEN", "_SECRET", "_PASSWORD"].iter().any(|end| name.ends_with(end))
            })
            .map(|(_, value)| value.to_string_lossy().into_owned())
            .filter(|value| value.len() >= SHORTEST)
            .collect();
        let mut watch = Self { root: root.to_owned(), keys, planted: HashSet::new() };
        watch.planted = watch.found();
        watch
    }

    /// Panics if a key has been leaked. `line` is the command line.
    pub(crate) fn assert_kept(&self, line: &str) {
        let mut leaked: Vec<PathBuf> = self.found().difference(&self.planted).cloned().collect();
        leaked.sort();
        assert!(leaked.is_empty(), "`fusee {line}` left a key in {leaked:?}");
    }

    /// Files that contain a key.
    fn found(&self) -> HashSet<PathBuf> {
        let (mut found, mut folders) = (HashSet::new(), vec![self.root.clone()]);
        while !self.keys.is_empty()
            && let Some(folder) = folders.pop()
        {
            for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() => folders.push(entry.path()),
                    Ok(kind) if kind.is_file() && self.is_in(&entry.path()) => {
                        found.insert(entry.path());
                    }
                    _ => {}
                }
            }
        }
        found
    }

    fn is_in(&self, file: &Path) -> bool {
        let content = fs::read(file).unwrap_or_default();
        let holds = |key: &String| memchr::memmem::find(&content, key.as_bytes()).is_some();
        self.keys.iter().any(holds)
    }
}

#[cfg(test)]
mod tests;
