//! Tests that a benchmark task must not change by any tool. Their content is recorded as a step when the run
//! begins. Before and after each command and at the end of the task they are compared with it and restored, and
//! tests that were added are removed.

use std::io::Read;

use fusee_tools::Workspace;
use fusee_tools::workspace::OpenedPath;
use serde::{Deserialize, Serialize};

use super::preload::is_source;
use super::request_files::is_test;

/// Maximum number of files, and of bytes in total, that can be restored; test suites are smaller.
const MAX_FILES: usize = 2000;
const MAX_BYTES: usize = 8 << 20;

/// Maximum number of files examined in a workspace.
const MAX_EXAMINED: usize = 200_000;

/// Files that determine how tests run.
const TEST_SETTINGS: [&str; 2] = ["conftest.py", "pytest.ini"];

/// Directories whose files are never tests of the project: dependencies, build results, caches.
const NOT_PROJECT: [&str; 13] = [
    ".fusee",
    ".git",
    ".gradle",
    ".tox",
    ".venv",
    "__pycache__",
    "build",
    "dist",
    "node_modules",
    "site-packages",
    "target",
    "vendor",
    "venv",
];

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
    /// Records the tests of a workspace: the named files, and all that look like tests.
    pub(crate) fn take(workspace: &Workspace, named: &[String]) -> Self {
        let mut left = MAX_BYTES;
        let mut files = Vec::new();
        let others = workspace.files(MAX_EXAMINED).into_iter();
        let others = others.filter(|path| is_protected(path) && !named.contains(path));
        for path in named.iter().cloned().chain(others).take(MAX_FILES) {
            let Some(bytes) = read(workspace, &path, left) else { continue };
            left -= bytes.len();
            let content = match String::from_utf8(bytes) {
                Ok(text) => ProtectedContent::Text(text),
                Err(error) => ProtectedContent::Bytes(error.into_bytes()),
            };
            files.push(ProtectedFile { path, content });
        }
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Self { files }
    }

    /// Whether a path is protected: an existing test, or one that would be a test.
    pub(crate) fn covers(&self, path: &str) -> bool {
        is_protected(path) || self.files.iter().any(|kept| kept.path == path)
    }

    /// Path and content of each protected file.
    pub(crate) fn contents(&self) -> Vec<(String, Vec<u8>)> {
        self.files.iter().map(|kept| (kept.path.clone(), kept.content.bytes().to_vec())).collect()
    }

    /// Restores changed files, removes tests that were added, and returns the paths of both.
    pub(crate) fn restore(&self, workspace: &Workspace) -> Vec<String> {
        let differs = |kept: &&ProtectedFile| {
            read(workspace, &kept.path, MAX_BYTES).as_deref() != Some(kept.content.bytes())
        };
        let changed = self.files.iter().filter(differs);
        let restored =
            changed.filter(|kept| workspace.restore_file(&kept.path, Some(kept.content.bytes())).is_ok());
        let mut paths: Vec<String> = restored.map(|kept| kept.path.clone()).collect();
        let mut added = self.added(workspace);
        added.retain(|path| workspace.restore_file(path, None).is_ok());
        paths.extend(added);
        paths
    }

    /// Tests that were added. Ignore files do not count, because a command could write one.
    fn added(&self, workspace: &Workspace) -> Vec<String> {
        let is_project = |entry: &ignore::DirEntry| {
            let name = entry.file_name().to_str().unwrap_or_default();
            entry.depth() == 0 || !NOT_PROJECT.contains(&name)
        };
        let files = ignore::WalkBuilder::new(workspace.root())
            .standard_filters(false)
            .sort_by_file_name(Ord::cmp)
            .filter_entry(is_project)
            .build()
            .take(MAX_EXAMINED)
            .filter_map(Result::ok)
            .filter(|entry| entry.file_type().is_some_and(|kind| !kind.is_dir()));
        let paths = files.filter_map(|entry| {
            let path = entry.path().strip_prefix(workspace.root()).ok()?.to_str()?.to_owned();
            let known = self.files.binary_search_by(|kept| kept.path.as_str().cmp(&path)).is_ok();
            // Data that a test writes beside itself is not a test.
            (!known && is_protected(&path) && (is_source(&path) || is_settings(&path))).then_some(path)
        });
        paths.collect()
    }
}

/// Whether a path is that of a test or determines how tests run.
fn is_protected(path: &str) -> bool {
    is_test(path) || is_settings(path)
}

fn is_settings(path: &str) -> bool {
    TEST_SETTINGS.contains(&path.rsplit('/').next().unwrap_or_default())
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
