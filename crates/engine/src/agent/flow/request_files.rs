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
    /// Documents that say what to do; they are not to be changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) references: Vec<String>,
    /// Whether the workspace has any file to read.
    pub(crate) anything: bool,
}

impl RequestFiles {
    /// Finds the files in the workspace.
    pub(crate) fn find(request: &str, workspace: &Workspace) -> Self {
        let (mut named, mut references): (Vec<String>, Vec<String>) = Default::default();
        let mut before = ["", ""];
        for word in request.split_whitespace().take(MAX_WORDS) {
            let word = word.trim_matches(|c: char| !c.is_alphanumeric() && !"._-/".contains(c));
            let word = word.trim_end_matches(['.', ',', ':', ';']);
            let words = before;
            if !["the", "file", "a"].contains(&word) {
                before = [before[1], word];
            }
            if named.len() + references.len() < MAX_NAMED
                && (word.contains('.') || word.contains('/'))
                && let Some(path) = text_file(workspace, word)
                && !named.contains(&path)
                && !references.contains(&path)
            {
                let list = if is_reference(&path, words) { &mut references } else { &mut named };
                list.push(path);
            }
        }
        let instructions = instructions(request, workspace);
        references.extend(instructions.filter(|path| !named.contains(path) && !references.contains(path)));
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
        Self { named, tests: found, references, anything }
    }

    /// The files that must be read before planning.
    pub(crate) fn required(&self, min_files: u32) -> RequiredReads {
        let files = self.references.iter().chain(&self.named).chain(&self.tests).cloned().collect();
        RequiredReads { files, min_files: if self.anything { min_files } else { 0 } }
    }
}

/// Where exercises have their instructions.
const INSTRUCTIONS: &str = ".docs/instructions.md";

/// The instructions of an exercise, unless the request contains them.
fn instructions(request: &str, workspace: &Workspace) -> Option<String> {
    let (path, head) = text_head(workspace, INSTRUCTIONS)?;
    let head = String::from_utf8_lossy(&head);
    let longest = head.lines().max_by_key(|line| line.len())?.trim();
    (!longest.is_empty() && !request.contains(longest)).then_some(path)
}

/// Whether a request mentions a document for what it says, and not to have it changed, by the two words before it.
fn is_reference(path: &str, before: [&str; 2]) -> bool {
    const DOCUMENTS: &[&str] = &["adoc", "md", "rst", "txt"];
    const SAYS_WHAT_TO_DO: &[&str] =
        &["assignment", "exercise", "instructions", "introduction", "issue", "problem", "spec", "task"];
    const CHANGE: &[&str] =
        &["change", "correct", "edit", "extend", "fix", "improve", "rewrite", "translate", "update", "write"];
    const SEE: &[&str] = &["follow", "following", "per", "read", "see"];
    const SAID: &[&str] = &[
        "according",
        "defined",
        "described",
        "documented",
        "explained",
        "given",
        "instructions",
        "listed",
        "requirements",
        "specified",
        "specification",
        "stated",
        "steps",
    ];
    let name = path.rsplit('/').next().unwrap_or_default().to_lowercase();
    let Some((stem, end)) = name.rsplit_once('.') else { return false };
    let [first, second] = before.map(str::to_lowercase);
    let is_said = ["by", "from", "in", "to"].contains(&second.as_str()) && SAID.contains(&first.as_str());
    DOCUMENTS.contains(&end)
        && !CHANGE.contains(&second.as_str())
        && (path.starts_with('.')
            || SAYS_WHAT_TO_DO.contains(&stem)
            || SEE.contains(&second.as_str())
            || is_said)
}

/// The path of a file, if it is readable as text.
fn text_file(workspace: &Workspace, given: &str) -> Option<String> {
    text_head(workspace, given).map(|(path, _)| path)
}

/// The path and the beginning of a file, if it is readable as text.
fn text_head(workspace: &Workspace, given: &str) -> Option<(String, Vec<u8>)> {
    use std::io::Read;
    let path = workspace.locate(given).ok()?;
    match workspace.open_to_read(&path).ok()? {
        OpenedPath::File { file, .. } => {
            let mut head = Vec::new();
            file.take(4096).read_to_end(&mut head).ok()?;
            (!head.contains(&0)).then(|| (path.as_str().to_owned(), head))
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
