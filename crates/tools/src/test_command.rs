//! Finds the command that runs a project's own tests, from the project's files. The runners are data
//! (`test_command/runners.toml`); the caller runs the candidates in order and keeps the first that works.

use std::sync::LazyLock;

use globset::GlobBuilder;
use serde::{Deserialize, Serialize};

/// A command that runs tests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestCommand {
    /// Name of the runner, such as `pytest`.
    pub runner: String,
    /// Command line for the shell, to be run in the workspace's root.
    pub command: String,
    /// The file that led to it.
    pub marker: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Runner {
    name: String,
    marker: String,
    #[serde(default)]
    contains: Vec<String>,
    #[serde(default)]
    imports: Vec<String>,
    command: String,
    narrowed: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
struct Table {
    runner: Vec<Runner>,
}

/// The built-in table. Tests check that it parses; a broken one finds nothing.
static RUNNERS: LazyLock<Vec<Runner>> = LazyLock::new(|| {
    toml::from_str::<Table>(include_str!("test_command/runners.toml")).unwrap_or_default().runner
});

/// Maximum number of test files that a narrowed command names; more run all tests.
const MAX_NARROWED: usize = 12;

/// Maximum number of test files examined for their imports.
const MAX_EXAMINED: usize = 20;

/// The commands that may run the tests of a project, best first.
///
/// `files` are the workspace's files and `read` returns the text of one. `subjects` are the files that a
/// request is about: the project nearest to them is used. `tests` are the tests that matter; without any, all
/// tests of the project run.
pub fn test_commands(
    files: &[String],
    subjects: &[String],
    tests: &[String],
    read: impl Fn(&str) -> Option<String>,
) -> Vec<TestCommand> {
    // Files that make a package of a folder, or prepare its tests, are not tests.
    let is_test = |path: &&String| !matches!(path.rsplit('/').next(), Some("__init__.py" | "conftest.py"));
    let tests: Vec<String> = tests.iter().filter(is_test).cloned().collect();
    let near = subjects.iter().chain(&tests);
    let mut directories = vec![String::new()];
    for path in near {
        let parents = path.match_indices('/').map(|(at, _)| path[..at].to_owned());
        directories.extend(parents.filter(|parent| !directories.contains(parent)).collect::<Vec<_>>());
    }
    // The innermost project first: a package of a larger repository has its own runner.
    directories.sort_by_key(|directory| {
        std::cmp::Reverse(directory.matches('/').count() + usize::from(!directory.is_empty()))
    });
    let mut found: Vec<TestCommand> = Vec::new();
    let mut add = |directory: &str, runners: &mut dyn Iterator<Item = &Runner>| {
        let project = Project { directory, files, tests: &tests, read: &read };
        for command in runners.filter_map(|runner| project.command(runner)) {
            if found.iter().all(|known| known.command != command.command) {
                found.push(command);
            }
        }
    };
    let is_anchored = |runner: &&Runner| !runner.marker.starts_with("**");
    for directory in &directories {
        add(directory, &mut RUNNERS.iter().filter(|runner| is_anchored(runner) || directory.is_empty()));
    }
    // Test files alone make no project of their directory, but its modules may be importable only from there.
    for directory in directories.iter().rev().filter(|directory| !directory.is_empty()) {
        add(directory, &mut RUNNERS.iter().filter(|runner| !is_anchored(runner)));
    }
    found
}

/// One directory of the workspace.
struct Project<'a, R> {
    directory: &'a str,
    files: &'a [String],
    tests: &'a [String],
    read: &'a R,
}

impl<R: Fn(&str) -> Option<String>> Project<'_, R> {
    fn command(&self, runner: &Runner) -> Option<TestCommand> {
        let marker = self.marker(runner)?;
        if !runner.imports.is_empty() && !self.imports(&runner.imports) {
            return None;
        }
        let tests: Vec<&str> = self.tests.iter().filter_map(|path| self.inside(path)).collect();
        let narrowed = runner.narrowed.as_ref().filter(|_| !tests.is_empty() && tests.len() <= MAX_NARROWED);
        let line = narrowed.and_then(|line| fill(line, &tests)).or_else(|| {
            let text = (self.read)(&marker).unwrap_or_default();
            let target = if text.contains("\ntest:") || text.starts_with("test:") { "test" } else { "check" };
            Some(runner.command.replace("{make_target}", target))
        })?;
        let line = if self.has_sources_folder(&line) { format!("PYTHONPATH=src {line}") } else { line };
        let command =
            if self.directory.is_empty() { line } else { format!("cd {} && {line}", quoted(self.directory)) };
        Some(TestCommand { runner: runner.name.clone(), command, marker })
    }

    /// Whether a Python command needs the folder `src`, which holds modules of projects that are not installed.
    fn has_sources_folder(&self, line: &str) -> bool {
        let is_module = |path: &String| {
            self.inside(path).is_some_and(|path| path.starts_with("src/") && path.ends_with(".py"))
        };
        line.starts_with("python3 ") && self.files.iter().any(is_module)
    }

    /// A path relative to this directory, if it is inside.
    fn inside<'p>(&self, path: &'p str) -> Option<&'p str> {
        if self.directory.is_empty() {
            return Some(path);
        }
        path.strip_prefix(self.directory)?.strip_prefix('/')
    }

    /// The file that shows that the runner is used here.
    fn marker(&self, runner: &Runner) -> Option<String> {
        let glob = GlobBuilder::new(&runner.marker).literal_separator(true).build().ok()?.compile_matcher();
        let fits = |path: &&String| {
            self.inside(path).is_some_and(|relative| glob.is_match(relative))
                && self.holds(path, &runner.contains)
        };
        self.files.iter().find(fits).cloned()
    }

    fn holds(&self, path: &str, words: &[String]) -> bool {
        words.is_empty()
            || (self.read)(path).is_some_and(|text| {
                // A rule on the first line of a makefile follows no newline.
                let text = format!("\n{text}");
                words.iter().any(|word| text.contains(word.as_str()))
            })
    }

    /// Whether a test imports one of the modules.
    fn imports(&self, modules: &[String]) -> bool {
        let all = || self.files.iter().filter(|path| self.inside(path).is_some() && looks_like_test(path));
        let tests: Vec<&String> =
            if self.tests.is_empty() { all().collect() } else { self.tests.iter().collect() };
        tests.into_iter().take(MAX_EXAMINED).any(|path| {
            (self.read)(path).is_some_and(|text| modules.iter().any(|module| text.contains(module.as_str())))
        })
    }
}

fn looks_like_test(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.contains("test") || name.contains("spec")
}

/// Fills in a narrowed command. `None` if one of its placeholders has no value for these tests.
fn fill(line: &str, tests: &[&str]) -> Option<String> {
    let stem = |path: &str| {
        let name = path.rsplit('/').next().unwrap_or(path);
        name.rsplit_once('.').map_or(name, |(stem, _)| stem).to_owned()
    };
    let mut line = line.to_owned();
    if line.contains("{tests}") {
        line = line.replace("{tests}", &join(tests.iter().map(|path| quoted(path))));
    }
    if line.contains("{modules}") {
        let modules: Option<Vec<String>> =
            tests.iter().map(|path| Some(path.strip_suffix(".py")?.replace('/', "."))).collect();
        line = line.replace("{modules}", &join(modules?.iter().map(|module| quoted(module))));
    }
    if line.contains("{directories}") {
        let mut directories: Vec<String> = tests
            .iter()
            .map(|path| {
                path.rsplit_once('/').map_or("./".to_owned(), |(directory, _)| format!("./{directory}"))
            })
            .collect();
        directories.sort();
        directories.dedup();
        line = line.replace("{directories}", &join(directories.iter().map(|directory| quoted(directory))));
    }
    if line.contains("{names}") {
        line = line
            .replace("{names}", &tests.iter().map(|path| quoted(&stem(path))).collect::<Vec<_>>().join(","));
    }
    if line.contains("{rust_targets}") {
        // Files in `tests/` are targets of their own; unit tests are part of the whole.
        let own = |path: &&&str| {
            path.starts_with("tests/") && path.matches('/').count() == 1 && path.ends_with(".rs")
        };
        if tests.iter().filter(own).count() < tests.len() {
            return None;
        }
        let targets = tests.iter().map(|path| format!("--test {}", quoted(&stem(path))));
        line = line.replace("{rust_targets}", &join(targets));
    }
    Some(line)
}

fn join(words: impl Iterator<Item = String>) -> String {
    words.collect::<Vec<_>>().join(" ")
}

/// Quotes a word for a POSIX shell, if it needs quotes.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./,+=@".contains(c);
    // A leading dash would be an option.
    let word = if word.starts_with('-') { format!("./{word}") } else { word.to_owned() };
    if !word.is_empty() && word.chars().all(plain) {
        word
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests;
