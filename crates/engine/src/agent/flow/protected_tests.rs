//! Tests that a benchmark task must not change by any tool. Their content is recorded as a step when the run
//! begins; after each command they are compared with it and restored.

use std::io::Read;

use fusee_tools::Workspace;
use fusee_tools::workspace::OpenedPath;
use serde::{Deserialize, Serialize};

use super::request_files::is_test;

/// Maximum number of files, and of bytes in total, that can be restored; test suites are smaller.
const MAX_FILES: usize = 2000;
const MOST_BYTES: usize = 8 << 20;

/// The original tests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ProtectedTests {
    files: Vec<ProtectedFile>,
}

/// One original test file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct ProtectedFile {
    path: String,
    #[serde(flatten)]
    content: ProtectedContent,
}

/// Stored as text where possible, to keep the journal readable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ProtectedContent {
    Text(String),
    Bytes(Vec<u8>),
}

impl ProtectedContent {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Bytes(bytes) => bytes,
        }
    }
}

impl ProtectedTests {
    /// Records the tests of a workspace.
    pub(crate) fn take(workspace: &Workspace) -> Self {
        let mut left = MOST_BYTES;
        let mut files = Vec::new();
        for path in workspace.files(200_000).into_iter().filter(|path| is_test(path)).take(MAX_FILES) {
            let Some(bytes) = read(workspace, &path, left) else { continue };
            left -= bytes.len();
            let content = match String::from_utf8(bytes) {
                Ok(text) => ProtectedContent::Text(text),
                Err(error) => ProtectedContent::Bytes(error.into_bytes()),
            };
            files.push(ProtectedFile { path, content });
        }
        Self { files }
    }

    /// Whether a path is protected: an existing test, or one that would be a test.
    pub(crate) fn covers(&self, path: &str) -> bool {
        is_test(path) || self.files.iter().any(|kept| kept.path == path)
    }

    /// Restores changed files and returns their paths.
    pub(crate) fn restore(&self, workspace: &Workspace) -> Vec<String> {
        let differs = |kept: &&ProtectedFile| {
            read(workspace, &kept.path, MOST_BYTES).as_deref() != Some(kept.content.bytes())
        };
        let changed = self.files.iter().filter(differs);
        let restored =
            changed.filter(|kept| workspace.restore_file(&kept.path, kept.content.bytes()).is_ok());
        restored.map(|kept| kept.path.clone()).collect()
    }
}

fn read(workspace: &Workspace, path: &str, most: usize) -> Option<Vec<u8>> {
    let path = workspace.locate(path).ok()?;
    let OpenedPath::File { file, .. } = workspace.open_to_read(&path).ok()? else { return None };
    let mut bytes = Vec::new();
    file.take(most as u64 + 1).read_to_end(&mut bytes).ok()?;
    (bytes.len() <= most).then_some(bytes)
}

/// Message for the model when it tried to change a test.
pub(crate) fn answer(paths: &[String]) -> String {
    format!(
        "Test files cannot be changed in this task: {}. Change the code that they test.",
        paths.join(", ")
    )
}

#[cfg(test)]
mod tests;
