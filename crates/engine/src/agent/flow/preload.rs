//! Reads files on behalf of the model: the files that a stage names are found and read in one step, so that a
//! small model does not get lost searching for them.

use std::collections::BTreeSet;
use std::io::Read;

use fusee_tools::workspace::OpenedPath;
use fusee_tools::{ContentHash, SeenVersion, Workspace};
use serde::{Deserialize, Serialize};

use super::location::Located;
use super::request_files::{RequestFiles, is_test};

/// Maximum bytes read per file and in total.
const FILE_BYTES: usize = 48 * 1024;
const ALL_BYTES: usize = 160 * 1024;

/// Maximum number of files; more cannot be what a stage is about.
const MAX_FILES: usize = 40;

/// If a request names no file and the project has more sources than this, there is no target.
pub(super) const MAX_LIKELY_SOURCES: usize = 6;

/// A file as shown to the model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PreloadedFile {
    pub(crate) path: String,
    pub(crate) text: String,
    pub(crate) hash: ContentHash,
    /// Whether the end was truncated.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) cut: bool,
    /// Whether the task is about this file.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) target: bool,
}

impl PreloadedFile {
    /// Replaces the text of a file, or adds it.
    pub(crate) fn replace(files: &mut Vec<Self>, path: &str, text: &str) {
        match files.iter_mut().find(|file| file.path == path) {
            Some(file) => (file.text, file.cut) = (text.to_owned(), false),
            None => files.push(Self {
                path: path.to_owned(),
                text: text.to_owned(),
                hash: ContentHash::of(text.as_bytes()),
                cut: false,
                target: true,
            }),
        }
    }
}

/// Records that the run knows the current version of a file, which it is about to replace.
pub(crate) fn remember_version(workspace: &Workspace, path: &str) {
    if let Some(file) = load_file(workspace, path.to_owned(), false, 0) {
        workspace.record_seen(&SeenVersion { path: file.path, hash: file.hash });
    }
}

/// Reads the named files: globs, `@target`, `@tests`. The last two are the located files, if there are any.
pub(crate) fn read(
    named: &[String],
    request: &str,
    located: Option<&Located>,
    workspace: &Workspace,
) -> Vec<PreloadedFile> {
    let all = workspace.files(20_000);
    let request_targets = match located {
        Some(Located { targets, tests }) => {
            let targets = targets.iter().map(|file| file.path.clone()).collect();
            RequestTargets { targets, tests: tests.clone() }
        }
        None => request_targets(request, workspace, &all),
    };
    let mut paths: Vec<(String, bool)> = Vec::new();
    for name in named {
        let found: Vec<(String, bool)> = match name.as_str() {
            "@target" => {
                let references = RequestFiles::find(request, workspace).references;
                let references = references.into_iter().map(|path| (path, false));
                references.chain(request_targets.targets.iter().map(|path| (path.clone(), true))).collect()
            }
            "@tests" => request_targets.tests.iter().map(|path| (path.clone(), false)).collect(),
            glob => fusee_tools::matching(glob, &all).map(|path| (path.clone(), false)).collect(),
        };
        for (path, target) in found {
            match paths.iter_mut().find(|(known, _)| *known == path) {
                Some((_, known)) => *known |= target,
                None => paths.push((path, target)),
            }
        }
    }
    let mut left = ALL_BYTES;
    let mut files = Vec::new();
    for (path, target) in paths.into_iter().take(MAX_FILES) {
        if let Some(file) = load_file(workspace, path, target, left.min(FILE_BYTES)) {
            left = left.saturating_sub(file.text.len());
            files.push(file);
        }
    }
    files
}

/// The files that a request is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RequestTargets {
    /// Files to change.
    pub(crate) targets: Vec<String>,
    /// Their tests.
    pub(crate) tests: Vec<String>,
}

/// Finds the files that a request is about, among `all` files of the workspace.
pub(crate) fn request_targets(request: &str, workspace: &Workspace, all: &[String]) -> RequestTargets {
    let request_files = RequestFiles::find(request, workspace);
    RequestTargets { targets: targets(&request_files, request, all), tests: tests(&request_files, all) }
}

/// The sources among `all` files that a request may be about although it names none: no tests, and no file that only
/// marks a package or configures its tests or its installation, unless there is nothing else.
pub(super) fn likely_sources(all: &[String]) -> Vec<&String> {
    const NON_SOURCE_FILES: &[&str] = &["__init__.py", "conftest.py", "setup.py"];
    let sources: Vec<&String> = all.iter().filter(|path| is_source(path) && !is_test(path)).collect();
    let name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    let meant: Vec<&String> =
        sources.iter().filter(|path| !NON_SOURCE_FILES.contains(&name(path).as_str())).copied().collect();
    if meant.is_empty() { sources } else { meant }
}

/// How clear it is which files a request is about, without looking at more than names.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct TargetCertainty {
    /// It names files.
    pub(super) named: bool,
    /// There is only one file that it can be about.
    pub(super) only_one: bool,
}

/// Finds out how clear it is which files a request is about.
pub(super) fn target_certainty(request: &str, workspace: &Workspace) -> TargetCertainty {
    let named = !RequestFiles::find(request, workspace).named.is_empty();
    TargetCertainty { named, only_one: likely_sources(&workspace.files(20_000)).len() < 2 }
}

/// Reads a file as text, if it is a small text file.
pub(crate) fn read_text(workspace: &Workspace, path: &str) -> Option<String> {
    load_file(workspace, path.to_owned(), false, FILE_BYTES).map(|file| file.text)
}

/// The files a task is about: those it names, otherwise all sources if there are only a few, otherwise those
/// whose name is a word of the request.
fn targets(request_files: &RequestFiles, request: &str, all: &[String]) -> Vec<String> {
    if !request_files.named.is_empty() {
        return request_files.named.clone();
    }
    let sources: Vec<String> = likely_sources(all).into_iter().cloned().collect();
    if sources.len() <= MAX_LIKELY_SOURCES {
        return sources;
    }
    let words: BTreeSet<String> = request
        .split(|c: char| !c.is_alphanumeric() && c != '_' && c != '-')
        .map(str::to_lowercase)
        .filter(|word| word.len() > 2)
        .collect();
    let called = |path: &&String| {
        let name = path.rsplit('/').next().unwrap_or_default();
        let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
        words.contains(&stem.to_lowercase())
    };
    let found: Vec<String> = sources.iter().filter(called).cloned().collect();
    if found.len() <= MAX_LIKELY_SOURCES { found } else { Vec::new() }
}

/// The tests of a request's files: those it names or that are beside them, otherwise all if there are only a few.
pub(super) fn tests(request_files: &RequestFiles, all: &[String]) -> Vec<String> {
    if !request_files.tests.is_empty() {
        return request_files.tests.clone();
    }
    let tests: Vec<String> = all.iter().filter(|path| is_source(path) && is_test(path)).cloned().collect();
    if tests.len() <= MAX_LIKELY_SOURCES { tests } else { Vec::new() }
}

/// Whether a path looks like a source file.
pub(super) fn is_source(path: &str) -> bool {
    const ENDS: &[&str] = &[
        "c", "cc", "clj", "cpp", "cs", "cxx", "dart", "elm", "erl", "ex", "exs", "f90", "go", "h", "hpp",
        "hs", "java", "jl", "js", "jsx", "kt", "lua", "m", "mjs", "ml", "nim", "php", "pl", "py", "r", "rb",
        "rs", "scala", "sh", "sql", "swift", "ts", "tsx", "vue", "zig",
    ];
    let name = path.rsplit('/').next().unwrap_or_default();
    name.rsplit_once('.').is_some_and(|(_, end)| ENDS.contains(&end.to_ascii_lowercase().as_str()))
}

fn load_file(workspace: &Workspace, path: String, target: bool, most: usize) -> Option<PreloadedFile> {
    let located = workspace.locate(&path).ok()?;
    let OpenedPath::File { file, .. } = workspace.open_to_read(&located).ok()? else { return None };
    let mut content = Vec::new();
    file.take(16 << 20).read_to_end(&mut content).ok()?;
    let hash = ContentHash::of(&content);
    if content.iter().take(8192).any(|byte| *byte == 0) {
        return None;
    }
    let mut text = String::from_utf8_lossy(&content).into_owned();
    let cut = text.len() > most;
    if cut {
        let end = (0..=most).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
        text.truncate(end);
    }
    Some(PreloadedFile { path: located.as_str().to_owned(), text, hash, cut, target })
}

/// Renders the files for the model, each in a fence longer than any it contains.
pub(crate) fn render(files: &[PreloadedFile]) -> String {
    let mut text = String::new();
    for file in files {
        let longest = file
            .text
            .lines()
            .map(|line| line.trim_start().chars().take_while(|c| *c == '`').count())
            .max()
            .unwrap_or_default();
        let fence = "`".repeat(longest.max(2) + 1);
        let newline = if file.text.ends_with('\n') || file.text.is_empty() { "" } else { "\n" };
        text.push_str(&format!("{}\n{fence}\n{}{newline}{fence}\n", file.path, file.text));
        if file.cut {
            text.push_str("[the rest of this file is left out]\n");
        }
        text.push('\n');
    }
    text.trim_end().to_owned()
}

#[cfg(test)]
mod tests;
