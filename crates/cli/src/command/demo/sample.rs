//! The demo project and its recordings, embedded in the binary: unpacks them and reports the result.
//! [`crate::command::demo`] runs them.

pub(crate) mod change;
pub(crate) mod check;
pub(crate) mod summary;
#[cfg(test)]
mod tests;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

/// The request sent to the model.
pub(crate) const REQUEST: &str = "The tests fail: free time is offered in the middle of a meeting. \
                                  Find the cause and fix it. Leave the tests as they are.";

/// Name of the project and of its directory.
pub(crate) const NAME: &str = "freetime";

/// The project: a small Python package with a bug, and tests that expose it.
pub(crate) const FILES: &[(&str, &str)] = &[
    (".gitignore", include_str!("sample/project/.gitignore")),
    ("README.md", include_str!("sample/project/README.md")),
    ("freetime/__init__.py", include_str!("sample/project/freetime/__init__.py")),
    ("freetime/__main__.py", include_str!("sample/project/freetime/__main__.py")),
    ("freetime/day.py", include_str!("sample/project/freetime/day.py")),
    ("freetime/span.py", include_str!("sample/project/freetime/span.py")),
    ("tests/__init__.py", include_str!("sample/project/tests/__init__.py")),
    ("tests/test_day.py", include_str!("sample/project/tests/test_day.py")),
    ("tests/test_span.py", include_str!("sample/project/tests/test_span.py")),
];

/// The model's replies, in the `script:FILE` format.
const RECORDING: &str = include_str!("sample/recording.jsonl");

/// The reviewer's replies for the same project.
const REVIEW: &str = include_str!("sample/review.jsonl");

/// The unpacked demo, deleted on drop unless it is kept.
pub(crate) struct UnpackedDemo {
    directory: PathBuf,
    keep: bool,
}

impl UnpackedDemo {
    /// Unpacks into the new directory `directory`. Delays in the recordings are capped at `longest_wait_ms`.
    pub(crate) fn make(directory: PathBuf, longest_wait_ms: u64, keep: bool) -> io::Result<Self> {
        fs::create_dir(&directory)?;
        let unpacked = Self { directory, keep };
        let project = unpacked.project();
        for (path, text) in FILES {
            let path = project.join(path);
            fs::create_dir_all(path.parent().unwrap_or(&project))?;
            fs::write(path, text)?;
        }
        // Marks the project root, so the journal is created inside and deleted with it.
        fs::create_dir(project.join(".fusee"))?;
        fs::write(unpacked.recording(), recording(RECORDING, longest_wait_ms))?;
        fs::write(unpacked.review(), recording(REVIEW, longest_wait_ms))?;
        Ok(unpacked)
    }

    /// The project directory.
    pub(crate) fn project(&self) -> PathBuf {
        self.directory.join(NAME)
    }

    /// The file with the model's replies.
    pub(crate) fn recording(&self) -> PathBuf {
        self.directory.join("recording.jsonl")
    }

    /// The file with the reviewer's replies.
    pub(crate) fn review(&self) -> PathBuf {
        self.directory.join("review.jsonl")
    }
}

impl Drop for UnpackedDemo {
    fn drop(&mut self) {
        if !self.keep {
            // The system cleans up temporary directories that could not be deleted.
            let _ = fs::remove_dir_all(&self.directory);
        }
    }
}

/// A recording with its delays capped.
fn recording(recorded: &str, longest_wait_ms: u64) -> String {
    recorded.lines().map(|line| with_shorter_wait(line, longest_wait_ms) + "\n").collect()
}

fn with_shorter_wait(line: &str, longest_ms: u64) -> String {
    match serde_json::from_str::<Map<String, Value>>(line) {
        Ok(mut reply) => {
            let wait = reply.get("delay_ms").and_then(Value::as_u64).unwrap_or_default();
            reply.insert("delay_ms".to_owned(), wait.min(longest_ms).into());
            Value::Object(reply).to_string()
        }
        // The scripted model reports the error and its position.
        Err(_) => line.to_owned(),
    }
}

/// The original content of a bundled file.
pub(crate) fn original(path: &str) -> Option<&'static str> {
    FILES.iter().find(|(known, _)| *known == path).map(|(_, text)| *text)
}

/// The path to unpack the demo into.
pub(crate) fn new_directory(temporary: &Path, name: &str) -> PathBuf {
    temporary.join(format!("fusee-demo-{name}"))
}
