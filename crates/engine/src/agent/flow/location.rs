//! Locates the files that a request is about if it names none: by the failing tests, their imports, the symbols
//! and words of the request, and the file index. Every chosen file carries the reason it was chosen for.
//! `imports.rs` finds the files that a test uses; `preparation.rs` runs this as a step.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use fusee_journal::event::LocatedFile;
use fusee_tools::Workspace;
use fusee_tools::workspace::OpenedPath;
use serde::{Deserialize, Serialize};

use super::imports;
use super::preload::{self, MAX_LIKELY_SOURCES, is_source};
use super::request_files::{RequestFiles, is_test};
use crate::memory::{FileReader, MemoryQuery, MemorySystem};

/// Maximum number of files in a workspace that are looked at.
const MAX_FILES: usize = 20_000;

/// Maximum number of files that are located; more are no location.
const MAX_LOCATED: usize = 4;

/// Maximum number of failing test files that are shown.
const MAX_TESTS: usize = 3;

/// Maximum number of lines of a test output that are read.
const MAX_LINES: usize = 5_000;

/// Weights of the evidence that a file is meant.
const IN_FAILURE: u32 = 6;
const IMPORTED: u32 = 4;
const IMPORTED_BY_IMPORTED: u32 = 2;
const DEFINES: u32 = 8;
const NAME_MATCHES: u32 = 8;
const INDEXED: u32 = 3;

/// Words of a request that is about failures.
const ABOUT_FAILURE: &str = "bug bugs broken crash crashes error errors exception fail failing failed fails failure failures \
    fix pass passes passing test tests wrong";

/// The files that a request is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Located {
    /// Files to change, most likely first.
    pub(crate) targets: Vec<LocatedFile>,
    /// Tests that matter.
    pub(crate) tests: Vec<String>,
}

/// Locates the files of a request. `failure` is the output of the tests, if they fail.
pub(crate) fn locate(request: &str, workspace: &Arc<Workspace>, failure: Option<&str>) -> Located {
    let request_files = RequestFiles::find(request, workspace);
    let all = workspace.files(MAX_FILES);
    if !request_files.named.is_empty() {
        let reason = "named in the request";
        let targets = request_files.named.iter().map(|path| located(path, reason)).collect();
        return Located { targets, tests: preload::tests(&request_files, &all) };
    }
    let sources: Vec<&String> = preload::likely_sources(&all);
    let mentioned = failure.map(|output| mentioned(output, &all)).unwrap_or_default();
    let failing = mentioned.iter().filter(|path| is_test(path)).take(MAX_TESTS).cloned();
    let tests: Vec<String> =
        if request_files.tests.is_empty() { failing.collect() } else { request_files.tests.clone() };

    let mut evidence = Evidence::default();
    // Without a word about failures, tests that fail may be about something else.
    let share = if is_about_failure(request) || !request_files.tests.is_empty() { 1 } else { 2 };
    for path in mentioned.iter().filter(|path| sources.contains(path)) {
        evidence.add(path, IN_FAILURE / share, "in the output of the failing tests");
    }
    for test in &tests {
        let used = used_by(test, workspace, &sources);
        for path in &used {
            evidence.add(path, IMPORTED / share, &format!("used by {test}"));
        }
        // What a test shows may be caused one file further on.
        for path in &used {
            for further in used_by(path, workspace, &sources).iter().filter(|path| !used.contains(path)) {
                evidence.add(further, IMPORTED_BY_IMPORTED / share, &format!("used by {path}"));
            }
        }
    }
    let words = words(request);
    for path in &sources {
        if words.contains(&stem(path).to_lowercase()) {
            evidence.add(path, NAME_MATCHES, "named in the request");
        }
    }
    search_index(request, workspace, &sources, &mut evidence);

    // A single weak sign is no reason to leave out files of a small project.
    let targets = match evidence.best(MAX_LOCATED) {
        best if best.strongest >= IMPORTED / share => best.files,
        _ if sources.len() <= MAX_LIKELY_SOURCES => sources
            .iter()
            .map(|path| located(path, "one of only a few source files in the project"))
            .collect(),
        best => best.files,
    };
    let tests = if tests.is_empty() { tests_of(&targets, workspace, &all) } else { tests };
    Located { targets, tests }
}

/// The sources that a file uses.
fn used_by(path: &str, workspace: &Workspace, sources: &[&String]) -> Vec<String> {
    let text = preload::read_text(workspace, path).unwrap_or_default();
    imports::used_by(path, &text, sources)
}

fn located(path: &str, reason: &str) -> LocatedFile {
    LocatedFile { path: path.to_owned(), reason: reason.to_owned() }
}

/// The tests beside the located files, or else all tests of a small project.
fn tests_of(targets: &[LocatedFile], workspace: &Workspace, all: &[String]) -> Vec<String> {
    let named = targets.iter().map(|file| file.path.as_str()).collect::<Vec<_>>().join(" ");
    preload::tests(&RequestFiles::find(&named, workspace), all)
}

/// Adds what the file index knows: definitions of the names in the request, and the best matches of its words.
fn search_index(request: &str, workspace: &Arc<Workspace>, sources: &[&String], evidence: &mut Evidence) {
    let memory = MemorySystem::new(workspace.root(), None, Arc::new(Heads(Arc::clone(workspace))));
    let query = MemoryQuery { words: request.to_owned(), limit: 10 };
    let Ok(found) = memory.relevant_context_for(&query) else { return };
    let is_named = |path: &String| sources.contains(&path);
    for (rank, found) in (0..INDEXED).zip(found.matches.iter().filter(|found| is_named(&found.path))) {
        evidence.add(&found.path, INDEXED - rank, "matches the words of the request");
    }
    let names = identifiers(request);
    if names.is_empty() {
        return;
    }
    for entry in memory.global_index().unwrap_or_default().iter().filter(|entry| is_named(&entry.path)) {
        if let Some(name) = names.iter().find(|name| entry.symbols.iter().any(|symbol| symbol == **name)) {
            evidence.add(&entry.path, DEFINES, &format!("defines `{name}`"));
        }
    }
}

/// Reads the beginnings of files for the index.
struct Heads(Arc<Workspace>);

impl FileReader for Heads {
    fn head(&self, path: &Path, most: u64) -> Option<Vec<u8>> {
        let path = self.0.locate(path.to_str()?).ok()?;
        let OpenedPath::File { file, .. } = self.0.open_to_read(&path).ok()? else { return None };
        let mut bytes = Vec::new();
        file.take(most).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }
}

/// Signs that files are meant: weight and first reason by path.
#[derive(Default)]
struct Evidence(BTreeMap<String, (u32, u32, String)>);

/// The most likely files.
struct Best {
    /// Weight of the strongest single sign.
    strongest: u32,
    files: Vec<LocatedFile>,
}

impl Evidence {
    fn add(&mut self, path: &str, weight: u32, reason: &str) {
        let (total, strongest, known) = self.0.entry(path.to_owned()).or_default();
        *total += weight;
        if weight > *strongest {
            (*strongest, *known) = (weight, reason.to_owned());
        }
    }

    /// The files with at least half of the greatest weight, at most `most`.
    fn best(self, most: usize) -> Best {
        let mut files: Vec<(String, (u32, u32, String))> = self.0.into_iter().collect();
        files.sort_by_key(|(_, (total, ..))| std::cmp::Reverse(*total));
        let greatest = files.first().map_or(0, |(_, (total, ..))| *total);
        let strongest = files.iter().map(|(_, (_, strongest, _))| *strongest).max().unwrap_or_default();
        let likely = files.into_iter().filter(|(_, (total, ..))| total * 2 >= greatest).take(most);
        let files = likely.map(|(path, (.., reason))| LocatedFile { path, reason }).collect();
        Best { strongest, files }
    }
}

/// Files of the workspace that an output mentions, in its order.
fn mentioned(output: &str, all: &[String]) -> Vec<String> {
    let known: BTreeSet<&str> = all.iter().map(String::as_str).collect();
    let mut found: Vec<String> = Vec::new();
    for line in output.lines().take(MAX_LINES) {
        let tokens = line.split(|c: char| c.is_whitespace() || "\"'`()[]<>,;".contains(c));
        for token in tokens.filter(|token| token.contains('.')) {
            let path = token.trim_start_matches("file://").split(':').next().unwrap_or_default();
            let path = path.trim_start_matches("./");
            if !is_source(path) {
                continue;
            }
            if let Some(path) = resolve(path, &known)
                && !found.contains(&path)
            {
                found.push(path);
            }
        }
    }
    found
}

/// The file of the workspace that a printed path means: the path itself, the end of an absolute one, or the only
/// file whose path ends in it.
fn resolve(path: &str, known: &BTreeSet<&str>) -> Option<String> {
    if known.contains(path) {
        return Some(path.to_owned());
    }
    let ends = path.match_indices('/').map(|(at, _)| &path[at + 1..]);
    if let Some(end) = ends.filter(|_| path.starts_with('/')).find(|end| known.contains(end)) {
        return Some(end.to_owned());
    }
    let ends_in = |file: &&&str| file.strip_suffix(path).is_some_and(|rest| rest.ends_with('/'));
    let mut fitting = known.iter().filter(ends_in);
    fitting.next().filter(|_| fitting.next().is_none()).map(|file| (*file).to_owned())
}

fn is_about_failure(request: &str) -> bool {
    let words = words(request);
    ABOUT_FAILURE.split_whitespace().any(|word| words.contains(word))
}

/// The words of a request in lower case, without the shortest.
fn words(request: &str) -> BTreeSet<String> {
    let split = request.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '-');
    split.map(str::to_lowercase).filter(|word| word.len() > 2).collect()
}

/// The words of a request that look like names in code.
fn identifiers(request: &str) -> BTreeSet<&str> {
    let quoted = request.split('`').skip(1).step_by(2).map(|name| name.trim_end_matches("()"));
    let words = request.split(|c: char| !c.is_alphanumeric() && c != '_');
    let looks_like_code = |word: &&str| {
        let inner_capital =
            word.chars().skip(1).any(char::is_uppercase) && word.chars().any(char::is_lowercase);
        word.len() > 2 && (word.trim_matches('_').contains('_') || inner_capital)
    };
    let called = request
        .match_indices("()")
        .filter_map(|(at, _)| request[..at].rsplit(|c: char| !c.is_alphanumeric() && c != '_').next());
    quoted.chain(words.filter(looks_like_code)).chain(called).filter(|name| name.len() > 1).collect()
}

/// The name of a file without its last extension.
pub(super) fn stem(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or_default();
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}

#[cfg(test)]
mod tests;
