//! Results on disk: `OUT/METHOD/EXERCISE.json` per trial with the output beside it (`.log`), and `OUT/settings.json`
//! with what they have in common.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::Outcome;
use crate::proxy::Usage;

/// Result of one method on one exercise.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct TrialResult {
    pub(crate) case: String,
    pub(crate) method: String,
    /// Whether the exercise's own tests pass after the tool has ended.
    pub(crate) passed: bool,
    /// `timeout` if the tool was killed at the limit, `exit N` if it failed.
    pub(crate) cause: Option<String>,
    #[serde(flatten)]
    pub(crate) usage: Usage,
    /// Time until the tool ended, without the tests that judge it.
    pub(crate) seconds: f64,
    /// When the trial ended.
    pub(crate) ended: String,
}

/// What the results of a folder have in common.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Settings {
    pub(crate) model: String,
    pub(crate) limit_seconds: u64,
    /// Version and flags by method.
    pub(crate) methods: BTreeMap<String, String>,
}

/// A folder of results.
pub(crate) struct Results<'a> {
    folder: &'a Path,
}

impl<'a> Results<'a> {
    pub(crate) fn new(folder: &'a Path) -> Self {
        Self { folder }
    }

    /// Records the settings; fails if the folder holds results of other settings.
    pub(crate) fn settle(&self, mut settings: Settings) -> Outcome {
        if let Some(earlier) = self.settings()? {
            let changed = |name: &String, version: &String| {
                settings.methods.get(name).is_some_and(|current| current != version)
            };
            let other = earlier.methods.iter().find(|(name, version)| changed(name, version));
            if (&earlier.model, earlier.limit_seconds) != (&settings.model, settings.limit_seconds) {
                return Err(format!("{}: has results of another model or limit", self.folder.display()));
            }
            if let Some((name, version)) = other {
                return Err(format!("{}: `{name}` was measured as `{version}`", self.folder.display()));
            }
            settings.methods.extend(earlier.methods);
        }
        self.write(&self.settings_path(), &settings)
    }

    /// The recorded settings.
    pub(crate) fn settings(&self) -> Outcome<Option<Settings>> {
        read(&self.settings_path())
    }

    /// The result of a trial that has ended.
    pub(crate) fn find(&self, method: &str, case: &str) -> Outcome<Option<TrialResult>> {
        read(&self.path(method, case, "json"))
    }

    pub(crate) fn store(&self, result: &TrialResult) -> Outcome {
        self.write(&self.path(&result.method, &result.case, "json"), result)
    }

    /// An empty file for the output of a trial.
    pub(crate) fn new_log(&self, method: &str, case: &str) -> Outcome<PathBuf> {
        let path = self.path(method, case, "log");
        create(&path, b"")?;
        Ok(path)
    }

    fn settings_path(&self) -> PathBuf {
        self.folder.join("settings.json")
    }

    fn path(&self, method: &str, case: &str, extension: &str) -> PathBuf {
        self.folder.join(method).join(format!("{}.{extension}", case.replace('/', ".")))
    }

    fn write(&self, path: &Path, value: &impl Serialize) -> Outcome {
        let text = serde_json::to_string_pretty(value).map_err(|error| error.to_string())?;
        // Renamed into place, so that a killed evaluation leaves no half a result.
        let partial = path.with_extension("partial");
        create(&partial, format!("{text}\n").as_bytes())?;
        fs::rename(&partial, path).map_err(|error| format!("{}: {error}", path.display()))
    }
}

fn create(path: &Path, content: &[u8]) -> Outcome {
    path.parent()
        .map_or(Ok(()), fs::create_dir_all)
        .and_then(|()| fs::write(path, content))
        .map_err(|error| format!("{}: {error}", path.display()))
}

fn read<T: serde::de::DeserializeOwned>(path: &Path) -> Outcome<Option<T>> {
    match fs::read_to_string(path) {
        Ok(text) => {
            serde_json::from_str(&text).map(Some).map_err(|error| format!("{}: {error}", path.display()))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("{}: {error}", path.display())),
    }
}
