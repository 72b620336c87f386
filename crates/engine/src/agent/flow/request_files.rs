//! The files a request is about: those it names, and their tests. Looked up once, as a step.

use std::path::Path;

use fusee_tools::Workspace;
use fusee_tools::workspace::OpenedPath;
use serde::{Deserialize, Serialize};

use super::task_rules::RequiredReads;

/// Maximum number of named files; more are a list, not the subject of a task.
const MAX_NAMED: usize = 8;

/// Maximum number of words of a request that are examined.
const MAX_WORDS: usize = 4000;

/// The files in the workspace that a request is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RequestFiles {
    /// Files the request names.
    pub(crate) named: Vec<String>,
    /// Tests of those files.
    pub(crate) tests: Vec<String>,
    /// Whether the workspace has any file to read.
    pub(crate) anything: bool,
}

impl RequestFiles {
    /// Finds the files in the workspace.
    pub(crate) fn find(request: &str, workspace: &Workspace) -> Self {
        let mut named: Vec<String> = Vec::new();
        for word in request.split_whitespace().take(MAX_WORDS) {
            let word = word.trim_matches(|c: char| !c.is_alphanumeric() && !"._-/".contains(c));
            let word = word.trim_end_matches(['.', ',', ':', ';']);
            if named.len() < MAX_NAMED
                && (word.contains('.') || word.contains('/'))
                && let Some(path) = text_file(workspace, word)
                && !named.contains(&path)
            {
                named.push(path);
            }
        }
        let (tests, named): (Vec<String>, Vec<String>) = named.into_iter().partition(|path| is_test(path));
        let mut found = tests;
        for path in &named {
            for beside in tests_beside(path) {
                if let Some(path) = text_file(workspace, &beside)
                    && !found.contains(&path)
                {
                    found.push(path);
                }
            }
        }
        found.truncate(MAX_NAMED);
        let anything = !named.is_empty() || !found.is_empty() || workspace.has_files();
        Self { named, tests: found, anything }
    }

    /// The files that must be read before planning.
    pub(crate) fn required(&self, least: u32) -> RequiredReads {
        let files = self.named.iter().chain(&self.tests).cloned().collect();
        RequiredReads { files, least: if self.anything { least } else { 0 } }
    }
}

/// The path of a file, if it is readable as text.
fn text_file(workspace: &Workspace, given: &str) -> Option<String> {
    use std::io::Read;
    let path = workspace.locate(given).ok()?;
    match workspace.open_to_read(&path).ok()? {
        OpenedPath::File { file, .. } => {
            let mut head = Vec::new();
            file.take(4096).read_to_end(&mut head).ok()?;
            (!head.contains(&0)).then(|| path.as_str().to_owned())
        }
        OpenedPath::Directory(_) | OpenedPath::Special(_) => None,
    }
}

/// Whether a path is that of a test, by the conventions of many languages.
pub(crate) fn is_test(path: &str) -> bool {
    let path = Path::new(path);
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let directories = path.parent().into_iter().flat_map(Path::components);
    let in_tests = directories
        .filter_map(|part| part.as_os_str().to_str())
        .any(|part| ["test", "tests", "spec", "specs", "__tests__", "testdata"].contains(&part));
    let stem = name.split('.').next().unwrap_or_default();
    in_tests
        || stem.starts_with("test_")
        || stem.ends_with("_test")
        || stem.ends_with("_tests")
        || stem.ends_with("_spec")
        || stem == "tests"
        || name.contains(".test.")
        || name.contains(".spec.")
        || (stem.ends_with("Test") || stem.ends_with("Tests") || stem.ends_with("Spec"))
            && stem.len() > 4
            && stem.starts_with(|c: char| c.is_ascii_uppercase())
}

/// Conventional locations of the tests of a file.
fn tests_beside(path: &str) -> Vec<String> {
    let (directory, name) = path.rsplit_once('/').map_or(("", path), |(directory, name)| (directory, name));
    let (stem, extension) = name.rsplit_once('.').unwrap_or((name, ""));
    let capital: String =
        stem.chars().take(1).flat_map(char::to_uppercase).chain(stem.chars().skip(1)).collect();
    let names = [
        format!("test_{stem}.{extension}"),
        format!("{stem}_test.{extension}"),
        format!("{stem}.test.{extension}"),
        format!("{stem}.spec.{extension}"),
        format!("{stem}_spec.{extension}"),
        format!("{capital}Test.{extension}"),
    ];
    let parent = directory.rsplit_once('/').map_or("", |(parent, _)| parent);
    let folders = [
        directory.to_owned(),
        join(directory, "tests"),
        join(directory, "test"),
        join(parent, "tests"),
        "tests".to_owned(),
        "test".to_owned(),
    ];
    let mut places = Vec::new();
    for folder in &folders {
        for name in &names {
            let place = join(folder, name);
            if place != path && !places.contains(&place) {
                places.push(place);
            }
        }
        // Integration tests, in Rust for example, have the name of the file they test.
        if folder.ends_with("tests") || folder.ends_with("test") {
            places.push(join(folder, name));
        }
    }
    places
}

fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

#[cfg(test)]
mod tests;
