//! `suite.toml`: cases as a table, for custom suites.
//!
//! ```toml
//! test = "python3 -m unittest -q"      # default of the cases
//! timeout_s = 60                        # time limit of the tests
//!
//! [[case]]
//! name = "leap-year"
//! prompt = "Implement `is_leap` in leap.py."   # or prompt_file
//! files = "leap-year/files"            # folder with the files of the working copy
//! tests = ["test_leap.py"]             # may not be changed; restored before scoring
//! solution = ["leap.py"]               # files to change, named in the request
//! reference = "leap-year/reference"    # folder with files that solve the case
//! ```

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::exercise::is_inside;
use super::{Suite, SuiteProblem, problem, toml_problem};
use crate::case::{Case, CaseFile, CaseTest, Reference, Verdict};
use crate::language::Language;

const TEST_TIMEOUT_S: u64 = 180;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    #[serde(default)]
    test: Option<String>,
    #[serde(default)]
    timeout_s: Option<u64>,
    #[serde(default)]
    case: Vec<toml::Spanned<toml::Value>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CaseTable {
    name: String,
    prompt: Option<String>,
    prompt_file: Option<PathBuf>,
    files: Option<PathBuf>,
    #[serde(default)]
    tests: Vec<PathBuf>,
    #[serde(default)]
    solution: Vec<PathBuf>,
    test: Option<String>,
    timeout_s: Option<u64>,
    agent_timeout_s: Option<u64>,
    reference: Option<PathBuf>,
    language: Option<String>,
    #[serde(default)]
    keywords: Vec<String>,
    #[serde(default)]
    programs: Vec<String>,
}

/// Reads the cases of a `suite.toml` into `suite`.
pub(super) fn read(file: &Path, suite: &mut Suite) {
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) => return suite.problems.push(problem(file, error.to_string())),
    };
    let table: Table = match toml::from_str(&text) {
        Ok(table) => table,
        Err(error) => return suite.problems.push(toml_problem(file, &text, &error)),
    };
    for entry in &table.case {
        let line = text[..entry.span().start.min(text.len())].matches('\n').count() + 1;
        match case(file, &table, entry.get_ref().clone()) {
            Ok(case) => suite.cases.push(case),
            Err(found) => suite.problems.push(SuiteProblem { line: Some(line), ..found }),
        }
    }
}

fn case(file: &Path, table: &Table, entry: toml::Value) -> Result<Case, SuiteProblem> {
    let name = entry.get("name").and_then(toml::Value::as_str).unwrap_or_default().to_owned();
    let fault = |message: String| SuiteProblem { case: name.clone(), ..problem(file, message) };
    let entry: CaseTable =
        entry.try_into().map_err(|error: toml::de::Error| fault(error.message().to_owned()))?;
    if !is_name(&entry.name) {
        return Err(fault(format!("`{}` is not a name: use letters, digits, `.`, `-` and `_`", entry.name)));
    }
    let folder = file.parent().unwrap_or(Path::new("."));
    let instruction = match (&entry.prompt, &entry.prompt_file) {
        (Some(prompt), None) => prompt.trim().to_owned(),
        (None, Some(path)) => std::fs::read_to_string(folder.join(path))
            .map_err(|error| fault(format!("prompt_file {}: {error}", path.display())))?
            .trim()
            .to_owned(),
        _ => return Err(fault("needs either `prompt` or `prompt_file`".to_owned())),
    };
    let command = entry.test.or_else(|| table.test.clone());
    let command =
        command.ok_or_else(|| fault("needs `test`, the command that judges the work".to_owned()))?;
    let files = match &entry.files {
        Some(path) => {
            tree(&folder.join(path)).map_err(|error| fault(format!("files {}: {error}", path.display())))?
        }
        None => Vec::new(),
    };
    let known = |path: &PathBuf| files.iter().any(|file| file.path == *path);
    if let Some(path) = entry.tests.iter().find(|path| !is_inside(path) || !known(path)) {
        return Err(fault(format!("`tests` names {}, which is not in `files`", path.display())));
    }
    let reference = match &entry.reference {
        Some(path) => Some(Reference::Files(
            tree(&folder.join(path))
                .map_err(|error| fault(format!("reference {}: {error}", path.display())))?,
        )),
        None => None,
    };
    let guessed =
        entry.solution.first().and_then(|file| Language::from_path(file)).map(|it| it.name().to_owned());
    Ok(Case {
        name: entry.name,
        language: entry.language.or(guessed),
        keywords: entry.keywords,
        origin: file.to_owned(),
        instruction,
        files,
        solution: entry.solution,
        tests: entry.tests,
        test: CaseTest {
            command,
            timeout_s: entry.timeout_s.or(table.timeout_s).unwrap_or(TEST_TIMEOUT_S).max(1),
            verdict: Verdict::ExitCode,
        },
        reference,
        agent_timeout_s: entry.agent_timeout_s,
        mounted_at: None,
        programs: entry.programs,
        unsupported: None,
    })
}

fn is_name(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    !name.is_empty() && !name.starts_with('.') && name.chars().all(fits)
}

/// All files below a folder.
pub(crate) fn tree(root: &Path) -> std::io::Result<Vec<CaseFile>> {
    fn collect(root: &Path, below: &Path, found: &mut Vec<CaseFile>) -> std::io::Result<()> {
        let mut entries: Vec<_> = std::fs::read_dir(root.join(below))?.collect::<Result<_, _>>()?;
        entries.sort_by_key(std::fs::DirEntry::file_name);
        for entry in entries {
            let path = below.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                collect(root, &path, found)?;
            } else {
                found.push(CaseFile { source: root.join(&path), path });
            }
        }
        Ok(())
    }
    let mut found = Vec::new();
    collect(root, Path::new(""), &mut found)?;
    Ok(found)
}
