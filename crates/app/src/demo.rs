//! The demo's project and recording, which ship inside the binary: unpacking them, and telling afterwards what
//! became of them. What is done with them is [`crate::command::demo`]'s part.

pub(crate) mod change;
pub(crate) mod check;
pub(crate) mod summary;
#[cfg(test)]
mod tests;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

/// What the model is asked.
pub(crate) const REQUEST: &str = "The tests fail: free time is offered in the middle of a meeting. \
                                  Find the cause and fix it. Leave the tests as they are.";

/// The project's name, and its directory's.
pub(crate) const NAME: &str = "freetime";

/// The project: a small Python package with a bug in it, and tests that show the bug.
pub(crate) const FILES: &[(&str, &str)] = &[
    (".gitignore", include_str!("demo/project/.gitignore")),
    ("README.md", include_str!("demo/project/README.md")),
    ("freetime/__init__.py", include_str!("demo/project/freetime/__init__.py")),
    ("freetime/__main__.py", include_str!("demo/project/freetime/__main__.py")),
    ("freetime/day.py", include_str!("demo/project/freetime/day.py")),
    ("freetime/span.py", include_str!("demo/project/freetime/span.py")),
    ("tests/__init__.py", include_str!("demo/project/tests/__init__.py")),
    ("tests/test_day.py", include_str!("demo/project/tests/test_day.py")),
    ("tests/test_span.py", include_str!("demo/project/tests/test_span.py")),
];

/// The model's replies, in the format of `script:FILE`.
const RECORDING: &str = include_str!("demo/recording.jsonl");

/// The replies of a reviewer of the same project.
const REVIEW: &str = include_str!("demo/review.jsonl");

/// The unpacked demo. It is removed in the end unless it is kept.
pub(crate) struct Unpacked {
    directory: PathBuf,
    keep: bool,
}

impl Unpacked {
    /// Unpacks into a new directory of this path. No reply of the recording waits longer than `longest_wait_ms`.
    pub(crate) fn make(directory: PathBuf, longest_wait_ms: u64, keep: bool) -> io::Result<Self> {
        fs::create_dir(&directory)?;
        let unpacked = Self { directory, keep };
        let project = unpacked.project();
        for (path, text) in FILES {
            let path = project.join(path);
            fs::create_dir_all(path.parent().unwrap_or(&project))?;
            fs::write(path, text)?;
        }
        // It makes this the root of a project, so that the journal is in it and goes with it.
        fs::create_dir(project.join(".fusee"))?;
        fs::write(unpacked.recording(), recording(RECORDING, longest_wait_ms))?;
        fs::write(unpacked.review(), recording(REVIEW, longest_wait_ms))?;
        Ok(unpacked)
    }

    /// Where the project is.
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

impl Drop for Unpacked {
    fn drop(&mut self) {
        if !self.keep {
            // A temporary directory that stays is the system's to clean.
            let _ = fs::remove_dir_all(&self.directory);
        }
    }
}

/// A recording with its waits cut to this length.
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
        // The model that reads it says what is wrong, and where.
        Err(_) => line.to_owned(),
    }
}

/// A bundled file as it was unpacked.
pub(crate) fn original(path: &str) -> Option<&'static str> {
    FILES.iter().find(|(known, _)| *known == path).map(|(_, text)| *text)
}

/// A path under which the demo can be unpacked.
pub(crate) fn new_directory(temporary: &Path, name: &str) -> PathBuf {
    temporary.join(format!("fusee-demo-{name}"))
}
