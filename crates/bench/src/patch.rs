//! The changes of a trial as a patch in git's format, for `preds.json` and for people.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use similar::TextDiff;

use crate::case::Case;

/// Folders with build results and caches, which are not part of a solution.
const LEFT_OUT: [&str; 10] = [
    ".git",
    ".fusee",
    ".gradle",
    ".pytest_cache",
    "__pycache__",
    "build",
    "node_modules",
    "target",
    "venv",
    ".venv",
];

/// Larger files and files that are not text are left out.
const MAX_BYTES: u64 = 1 << 20;

/// Maximum number of files that are compared.
const MAX_FILES: usize = 5000;

/// The difference between the files of a case and those in `directory`.
pub(crate) fn between(case: &Case, directory: &Path) -> String {
    let mut files: BTreeMap<PathBuf, (Option<String>, Option<String>)> = BTreeMap::new();
    for file in &case.files {
        if let Some(text) = read(&file.source) {
            files.entry(file.path.clone()).or_default().0 = Some(text);
        }
    }
    let mut found = Vec::new();
    collect(directory, Path::new(""), &mut found);
    for path in found {
        if let Some(text) = read(&directory.join(&path)) {
            files.entry(path).or_default().1 = Some(text);
        }
    }
    let changed = files.iter().filter(|(path, (before, after))| before != after && !case.is_test(path));
    changed.map(|(path, (before, after))| file_patch(path, before.as_deref(), after.as_deref())).collect()
}

pub(crate) fn file_patch(path: &Path, before: Option<&str>, after: Option<&str>) -> String {
    let path = path.display();
    let mut patch = format!("diff --git a/{path} b/{path}\n");
    let (mut from, mut to) = (format!("a/{path}"), format!("b/{path}"));
    if before.is_none() {
        patch.push_str("new file mode 100644\n");
        from = "/dev/null".to_owned();
    }
    if after.is_none() {
        patch.push_str("deleted file mode 100644\n");
        to = "/dev/null".to_owned();
    }
    let diff = TextDiff::from_lines(before.unwrap_or_default(), after.unwrap_or_default());
    patch.push_str(&diff.unified_diff().header(&from, &to).to_string());
    patch
}

fn read(path: &Path) -> Option<String> {
    let found = fs::symlink_metadata(path).ok()?;
    if !found.is_file() || found.len() > MAX_BYTES {
        return None;
    }
    fs::read_to_string(path).ok()
}

fn collect(root: &Path, below: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(root.join(below)) else { return };
    for entry in entries.flatten() {
        if found.len() >= MAX_FILES || LEFT_OUT.iter().any(|name| entry.file_name() == *name) {
            continue;
        }
        let path = below.join(entry.file_name());
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => collect(root, &path, found),
            Ok(kind) if kind.is_file() => found.push(path),
            _ => {}
        }
    }
}
