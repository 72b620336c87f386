//! Loads the text of a workflow and its files: read once, stored with the run, and read from there
//! afterwards.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Component, Path, PathBuf};

use fusee_lang::FileLoader;
use fusee_text::Source;

/// Maximum size of a workflow file.
pub const MAX_BYTES: u64 = 16 << 20;

/// Loader of a workflow's files. Paths are relative to the file that loads them.
pub struct WorkflowLoader {
    from: From,
    /// Loaded files, by name.
    pub files: BTreeMap<String, String>,
}

enum From {
    /// Reads from this directory; names are relative to it.
    Disk(PathBuf),
    /// Uses the files stored when the run started.
    Kept,
}

impl WorkflowLoader {
    /// Creates a loader for the disk; source names are relative to `directory`, or absolute.
    pub fn from_disk(directory: &Path) -> Self {
        Self { from: From::Disk(directory.to_owned()), files: BTreeMap::new() }
    }

    /// Creates a loader for the files stored with a run.
    pub fn from_files(files: BTreeMap<String, String>) -> Self {
        Self { from: From::Kept, files }
    }

    /// Reads one file; the error says why it cannot be read.
    pub fn read(path: &Path) -> Result<String, String> {
        let file = std::fs::File::open(path).map_err(|error| error.to_string())?;
        let mut bytes = Vec::new();
        file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
        if bytes.len() as u64 > MAX_BYTES {
            return Err(format!("the file is larger than {} MiB", MAX_BYTES >> 20));
        }
        let text = String::from_utf8(bytes).map_err(|error| {
            let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            let line = valid.iter().filter(|byte| **byte == b'\n').count() + 1;
            format!("line {line} is not UTF-8")
        })?;
        Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
    }
}

impl FileLoader for WorkflowLoader {
    fn load(&mut self, from: &Source, path: &str) -> Result<Source, String> {
        if Path::new(path).is_absolute() {
            return Err("the path must be relative to the file that loads it".to_owned());
        }
        let beside = Path::new(&**from.name()).parent().unwrap_or(Path::new(""));
        let name = plain(&beside.join(path)).display().to_string();
        if let Some(text) = self.files.get(&name) {
            return Ok(Source::new(name, text.as_str()));
        }
        match &self.from {
            From::Kept => Err("the file was not loaded when the run started".to_owned()),
            From::Disk(directory) => {
                let text = Self::read(&directory.join(&name))?;
                self.files.insert(name.clone(), text.clone());
                Ok(Source::new(name, text))
            }
        }
    }
}

/// Removes `.` and, as far as the path alone allows, `..`.
fn plain(path: &Path) -> PathBuf {
    let mut parts: Vec<Component<'_>> = Vec::new();
    for part in path.components() {
        match (part, parts.last()) {
            (Component::CurDir, _) => {}
            (Component::ParentDir, Some(Component::Normal(_))) => {
                parts.pop();
            }
            _ => parts.push(part),
        }
    }
    parts.iter().collect()
}

#[cfg(test)]
mod tests;
