//! A suite: cases read from a folder without running anything.
//!
//! A folder is searched for exercises in exercism's layout (`exercise`), tasks in Harbor's (`harbor`) and `suite.toml` files
//! (`table`); they may be mixed. What is wrong with a case is a [`SuiteProblem`], and the
//! other cases remain usable. [`Selection`] chooses among them.

mod demo;
mod exercise;
mod harbor;
mod selection;
pub(crate) mod table;

use std::fmt;
use std::path::{Path, PathBuf};

use crate::case::Case;
use crate::language::TestCommands;

pub use selection::{Selection, Slice};

/// Name of the suite that ships with Fusee.
pub const DEMO: &str = "demo";

/// Folders that are never searched for cases.
const NOT_SEARCHED: [&str; 4] = ["node_modules", "target", "__pycache__", "build"];

/// Maximum depth of a suite.
const MAX_DEPTH: usize = 8;

/// The cases of a suite, by name, and what is wrong with others.
#[derive(Clone, Debug, Default)]
pub struct Suite {
    /// Usable cases.
    pub cases: Vec<Case>,
    /// What is wrong with the rest.
    pub problems: Vec<SuiteProblem>,
}

/// Something wrong with a case, and where.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct SuiteProblem {
    /// The case, by the name of its folder.
    pub case: String,
    /// File or folder.
    pub file: PathBuf,
    /// Line in the file, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for SuiteProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        write!(f, ": {}", self.message)
    }
}

impl Suite {
    /// Reads the suite in a folder, or the one in a `suite.toml` file.
    pub fn read(root: &Path, commands: &TestCommands) -> Result<Self, SuiteProblem> {
        let fault = |message: String| SuiteProblem {
            case: root.display().to_string(),
            file: root.to_owned(),
            line: None,
            message,
        };
        let metadata =
            std::fs::metadata(root).map_err(|error| fault(format!("cannot read the suite: {error}")))?;
        let mut suite = Self::default();
        if metadata.is_file() {
            table::read(root, &mut suite);
        } else {
            suite
                .search(root, commands, 0)
                .map_err(|error| fault(format!("cannot read the suite: {error}")))?;
        }
        if suite.cases.is_empty() && suite.problems.is_empty() {
            return Err(fault(
                "no case found: expected folders with .meta/config.json (exercism) or task.toml (Harbor), or a \
                 suite.toml"
                    .to_owned(),
            ));
        }
        suite.leave_out_unreadable();
        suite.make_names_unique(root);
        suite.cases.sort_by(|one, other| one.name.cmp(&other.name));
        suite.problems.sort_by(|one, other| (&one.file, one.line).cmp(&(&other.file, other.line)));
        Ok(suite)
    }

    /// Writes the bundled suite below `parent`, unless it is there, and returns its folder.
    pub fn write_demo(parent: &Path) -> std::io::Result<PathBuf> {
        demo::write(parent)
    }

    fn search(&mut self, folder: &Path, commands: &TestCommands, depth: usize) -> std::io::Result<()> {
        let has = |name: &str| folder.join(name).exists();
        if has("suite.toml") {
            table::read(&folder.join("suite.toml"), self);
            return Ok(());
        }
        if has("task.toml") || (has("instruction.md") && has("tests")) {
            self.add(folder, harbor::read(folder));
            return Ok(());
        }
        if has(".meta") || has(".docs") {
            self.add(folder, exercise::read(folder, commands).map_err(|problem| vec![problem]));
            return Ok(());
        }
        if depth >= MAX_DEPTH {
            return Ok(());
        }
        let mut entries: Vec<PathBuf> = std::fs::read_dir(folder)?
            .filter_map(Result::ok)
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
            .map(|entry| entry.path())
            .filter(|path| {
                !file_name(path).starts_with('.') && !NOT_SEARCHED.contains(&file_name(path).as_str())
            })
            .collect();
        entries.sort();
        entries.iter().try_for_each(|entry| self.search(entry, commands, depth + 1))
    }

    /// A case whose files cannot be read, such as links that lead nowhere, is a problem now and not in the middle of a job.
    fn leave_out_unreadable(&mut self) {
        let problems = &mut self.problems;
        self.cases.retain(|case| match case.unreadable_file() {
            None => true,
            Some((file, message)) => {
                problems.push(SuiteProblem { case: case.name.clone(), ..problem(&file.source, message) });
                false
            }
        });
    }

    fn add(&mut self, folder: &Path, read: Result<Case, Vec<SuiteProblem>>) {
        match read {
            Ok(case) => self.cases.push(case),
            Err(problems) => self.problems.extend(problems.into_iter().map(|problem| SuiteProblem {
                case: if problem.case.is_empty() { file_name(folder) } else { problem.case },
                ..problem
            })),
        }
    }

    /// The same exercise may exist in several languages; such cases are named by their path in the suite.
    fn make_names_unique(&mut self, root: &Path) {
        let mut counts = std::collections::BTreeMap::<String, usize>::new();
        for case in &self.cases {
            *counts.entry(case.name.clone()).or_default() += 1;
        }
        for case in
            self.cases.iter_mut().filter(|case| counts.get(&case.name).is_some_and(|count| *count > 1))
        {
            let path = case.origin.strip_prefix(root).unwrap_or(&case.origin);
            case.name = match &case.language {
                Some(language) => format!("{language}.{}", case.name),
                None => path.to_string_lossy().replace('/', "."),
            };
        }
        let mut seen = std::collections::BTreeSet::new();
        for case in &mut self.cases {
            let base = case.name.clone();
            let mut number = 2;
            while !seen.insert(case.name.clone()) {
                case.name = format!("{base}.{number}");
                number += 1;
            }
        }
    }
}

fn problem(file: &Path, message: impl Into<String>) -> SuiteProblem {
    SuiteProblem { case: String::new(), file: file.to_owned(), line: None, message: message.into() }
}

/// A problem of a TOML file, at its line.
fn toml_problem(file: &Path, text: &str, error: &toml::de::Error) -> SuiteProblem {
    let line = error.span().map(|span| text[..span.start.min(text.len())].matches('\n').count() + 1);
    SuiteProblem { line, ..problem(file, error.message()) }
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests;
