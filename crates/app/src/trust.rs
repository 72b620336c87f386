//! Which projects' files the user trusts: by place and content, kept in the user's state folder, where no project and no
//! confined command reaches. A file that has changed since is a stranger's again.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::environment::Environment;

/// More files than anybody trusts; the ones that are gone go first, then any.
const MOST: usize = 1000;
/// No list is larger.
const MOST_BYTES: u64 = 1 << 20;

/// What is trusted: the hash of each file's content.
#[derive(Debug, Default)]
pub(crate) struct Trust {
    /// Where that is kept; nowhere if there is no home.
    file: Option<PathBuf>,
    known: Known,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Known {
    files: BTreeMap<PathBuf, String>,
}

impl Trust {
    /// What the user has said so far. A list that cannot be read holds nothing.
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

    /// Trusts a file as it is now.
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

    /// Trusts it no longer. Whether it was.
    pub(crate) fn revoke(&mut self, path: &Path) -> io::Result<bool> {
        let was = self.known.files.remove(&place(path)).is_some();
        if was {
            self.save()?;
        }
        Ok(was)
    }

    fn save(&self) -> io::Result<()> {
        let Some(file) = &self.file else {
            return Err(io::Error::other("there is no place for it: HOME is not set"));
        };
        let folder = file.parent().unwrap_or(Path::new("/"));
        fs::create_dir_all(folder)?;
        // Written beside and renamed, so that nobody reads half a list.
        let beside = folder.join(format!("trust.json.{}", std::process::id()));
        let mut written = fs::File::create(&beside)?;
        written.write_all(format!("{}\n", serde_json::to_string_pretty(&self.known)?).as_bytes())?;
        written.sync_all()?;
        fs::rename(&beside, file)
    }
}

/// A file by a name that no link changes.
fn place(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

fn hash(content: &str) -> String {
    blake3::hash(content.as_bytes()).to_hex().to_string()
}
