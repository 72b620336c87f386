//! Which project files the user trusts, by path and content hash. Stored in the user's state folder, out of
//! reach of projects and sandboxed commands. A file that has changed since is no longer trusted.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::process::environment::Environment;

/// Maximum number of entries; entries of deleted files are dropped first, then the first ones by path.
const MOST: usize = 1000;
/// Maximum size of the list in bytes.
const MOST_BYTES: u64 = 1 << 20;

/// Trusted files with the hash of their content.
#[derive(Debug, Default)]
pub(crate) struct Trust {
    /// The file it is stored in; `None` without a home directory.
    file: Option<PathBuf>,
    known: TrustedFile,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct TrustedFile {
    files: BTreeMap<PathBuf, String>,
}

impl Trust {
    /// Loads the list. An unreadable list counts as empty.
    pub(crate) fn read(environment: &Environment) -> Self {
        let file = environment.state_folder().map(|folder| folder.join("trust.json"));
        let small = |file: &PathBuf| fs::metadata(file).is_ok_and(|found| found.len() <= MOST_BYTES);
        let text = file.as_ref().filter(|file| small(file)).and_then(|file| fs::read(file).ok());
        let known = text.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default();
        Self { file, known }
    }

    /// Whether a file with this content is trusted.
    pub(crate) fn covers(&self, path: &Path, content: &str) -> bool {
        let place = place(path);
        self.known.files.get(&place).is_some_and(|known| *known == hash(content))
    }

    /// Trusts a file with its current content.
    pub(crate) fn grant(&mut self, path: &Path, content: &str) -> io::Result<()> {
        if self.known.files.len() >= MOST {
            self.known.files.retain(|file, _| file.exists());
        }
        while self.known.files.len() >= MOST {
            self.known.files.pop_first();
        }
        self.known.files.insert(place(path), hash(content));
        self.save()
    }

    /// Revokes trust; returns whether the file was trusted.
    pub(crate) fn revoke(&mut self, path: &Path) -> io::Result<bool> {
        let was = self.known.files.remove(&place(path)).is_some();
        if was {
            self.save()?;
        }
        Ok(was)
    }

    fn save(&self) -> io::Result<()> {
        let Some(file) = &self.file else {
            return Err(io::Error::other("no location to save it: HOME is not set"));
        };
        let folder = file.parent().unwrap_or(Path::new("/"));
        fs::create_dir_all(folder)?;
        // Write to a temporary file and rename, so that no reader sees a partial list.
        let beside = folder.join(format!("trust.json.{}", std::process::id()));
        let mut written = fs::File::create(&beside)?;
        written.write_all(format!("{}\n", serde_json::to_string_pretty(&self.known)?).as_bytes())?;
        written.sync_all()?;
        fs::rename(&beside, file)
    }
}

/// The canonical path of a file.
fn place(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

fn hash(content: &str) -> String {
    blake3::hash(content.as_bytes()).to_hex().to_string()
}
