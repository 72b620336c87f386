//! The text of a workflow and of the files it loads: read once, kept with the run, read back ever after.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Component, Path, PathBuf};

use fusee_lang::Load;
use fusee_text::Source;

/// No file of a workflow is larger.
pub const MOST_BYTES: u64 = 16 << 20;

/// The files a workflow loads. A path is relative to the file that loads it.
pub struct Loading {
    from: From,
    /// What was loaded, by name.
    pub files: BTreeMap<String, String>,
}

enum From {
    /// Below this directory, where names are relative to it.
    Disk(PathBuf),
    /// What was read when the run began.
    Kept,
}

impl Loading {
    /// From the disk; names of sources are relative to `directory`, or absolute.
    pub fn from_disk(directory: &Path) -> Self {
        Self { from: From::Disk(directory.to_owned()), files: BTreeMap::new() }
    }

    /// From what a run has kept.
    pub fn kept(files: BTreeMap<String, String>) -> Self {
        Self { from: From::Kept, files }
    }

    /// The text of one file, or why there is none.
    pub fn read(path: &Path) -> Result<String, String> {
        let file = std::fs::File::open(path).map_err(|error| error.to_string())?;
        let mut bytes = Vec::new();
        file.take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
        if bytes.len() as u64 > MOST_BYTES {
            return Err(format!("it is larger than {} MiB", MOST_BYTES >> 20));
        }
        let text = String::from_utf8(bytes).map_err(|error| {
            let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            let line = valid.iter().filter(|byte| **byte == b'\n').count() + 1;
            format!("line {line} is not UTF-8")
        })?;
        Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
    }
}

impl Load for Loading {
    fn load(&mut self, from: &Source, path: &str) -> Result<Source, String> {
        if Path::new(path).is_absolute() {
            return Err("a path is relative to the file that loads it".to_owned());
        }
        let beside = Path::new(&**from.name()).parent().unwrap_or(Path::new(""));
        let name = plain(&beside.join(path)).display().to_string();
        if let Some(text) = self.files.get(&name) {
            return Ok(Source::new(name, text.as_str()));
        }
        match &self.from {
            From::Kept => Err("it was not there when the run began".to_owned()),
            From::Disk(directory) => {
                let text = Self::read(&directory.join(&name))?;
                self.files.insert(name.clone(), text.clone());
                Ok(Source::new(name, text))
            }
        }
    }
}

/// The path without `.` and, where it can be told from the path alone, without `..`.
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
