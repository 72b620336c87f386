//! Exercises in the layout of exercism and of the polyglot benchmark: a folder with `.meta/config.json`
//! (`files.solution`, `files.test`, `files.example`) and `.docs/instructions.md`.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::{SuiteProblem, file_name, problem};
use crate::case::{Case, CaseFile, CaseTest, Reference, Verdict};
use crate::language::{Language, TestCommands};

/// Time limit of the tests in seconds.
const TEST_TIMEOUT_S: u64 = 180;

/// Folders that never enter a working copy: instructions, reference solutions and what explains them.
const NEVER_COPIED: [&str; 6] = [".meta", ".docs", ".approaches", ".articles", ".git", ".fusee"];

#[derive(Deserialize)]
struct Config {
    files: Files,
}

#[derive(Deserialize)]
struct Files {
    solution: Vec<PathBuf>,
    test: Vec<PathBuf>,
    #[serde(default)]
    example: Vec<PathBuf>,
}

/// Reads the exercise in `folder`.
pub(super) fn read(folder: &Path, commands: &TestCommands) -> Result<Case, SuiteProblem> {
    let path = folder.join(".meta/config.json");
    let text = std::fs::read_to_string(&path).map_err(|error| problem(&path, error.to_string()))?;
    let config: Config = serde_json::from_str(&text)
        .map_err(|error| SuiteProblem { line: Some(error.line()), ..problem(&path, error.to_string()) })?;
    let Files { solution, test, example } = config.files;
    // Manifests are listed as solution files in some tracks, where an exercise may need a dependency.
    let solution: Vec<PathBuf> =
        solution.into_iter().filter(|file| Language::from_path(file).is_some()).collect();
    let Some(language) = solution.first().and_then(|file| Language::from_path(file)) else {
        return Err(problem(&path, "`files.solution` names no file in a supported language"));
    };
    if test.is_empty() {
        return Err(problem(&path, "`files.test` names no file"));
    }
    for file in solution.iter().chain(&test).chain(&example) {
        if !is_inside(file) {
            return Err(problem(&path, format!("`{}` is not a path inside the exercise", file.display())));
        }
        if !folder.join(file).is_file() {
            return Err(problem(&folder.join(file), "the file does not exist"));
        }
    }
    let (built_in, programs) = language.test_command(folder, &test);
    let configured = commands.get(language.name());
    let programs = if configured.is_some() { Vec::new() } else { programs };
    let reference = match example.len() {
        0 => None,
        _ => Some(Reference::Files(
            example
                .iter()
                .zip(&solution)
                .map(|(from, to)| CaseFile { path: to.clone(), source: folder.join(from) })
                .collect(),
        )),
    };
    let mut files = Vec::new();
    visible_files(folder, Path::new(""), &mut files).map_err(|error| problem(folder, error.to_string()))?;
    Ok(Case {
        name: file_name(folder),
        language: Some(language.name().to_owned()),
        keywords: Vec::new(),
        origin: folder.to_owned(),
        instruction: instruction(folder)?,
        files,
        solution,
        tests: test,
        test: CaseTest {
            command: configured.cloned().unwrap_or(built_in),
            timeout_s: TEST_TIMEOUT_S,
            verdict: Verdict::ExitCode,
        },
        reference,
        agent_timeout_s: None,
        mounted_at: None,
        programs,
        unsupported: None,
    })
}

fn instruction(folder: &Path) -> Result<String, SuiteProblem> {
    let texts = ["introduction.md", "instructions.md", "instructions.append.md"];
    let texts: Vec<String> = texts
        .iter()
        .filter_map(|text| std::fs::read_to_string(folder.join(".docs").join(text)).ok())
        .collect();
    match texts.as_slice() {
        [] => Err(problem(&folder.join(".docs/instructions.md"), "the file does not exist")),
        texts => Ok(texts.join("\n").trim().to_owned()),
    }
}

/// Lists the files of a working copy below `root`, sorted.
fn visible_files(root: &Path, below: &Path, found: &mut Vec<CaseFile>) -> std::io::Result<()> {
    let mut entries: Vec<_> = std::fs::read_dir(root.join(below))?.collect::<Result<_, _>>()?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let path = below.join(entry.file_name());
        if NEVER_COPIED.iter().any(|name| entry.file_name() == *name) {
            continue;
        }
        if entry.file_type()?.is_dir() {
            visible_files(root, &path, found)?;
        } else {
            found.push(CaseFile { source: root.join(&path), path });
        }
    }
    Ok(())
}

/// Whether a path stays inside the folder it is relative to.
pub(super) fn is_inside(path: &Path) -> bool {
    use std::path::Component;
    path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
}
