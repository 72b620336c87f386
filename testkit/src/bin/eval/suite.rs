//! A suite: a folder of exercises in exercism's layout, read without running anything.
//!
//! An exercise is a folder with `.meta/config.json` (`files.solution`, `files.test`, `files.example`) and
//! `.docs/instructions.md`. `split.json` in the suite's folder divides the exercises into named parts.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Deserialize;

use crate::Outcome;
use crate::language::Language;

/// Which exercises of which suite.
#[derive(Args, Clone)]
pub(crate) struct Selection {
    /// Folder of exercises, at any depth
    #[arg(long, value_name = "DIR")]
    suite: PathBuf,
    /// Only this part of the suite, as divided by its split.json, such as `tuning` or `judging`
    #[arg(long, value_name = "PART")]
    part: Option<String>,
    /// Only exercises whose name contains one of these texts
    #[arg(long, value_name = "TEXT")]
    only: Vec<String>,
}

/// The selected exercises, sorted by name.
pub(crate) struct Suite {
    pub(crate) exercises: Vec<Exercise>,
}

/// One exercise. Paths of files are relative to its folder.
#[derive(Debug)]
pub(crate) struct Exercise {
    /// Path of its folder in the suite, such as `python/leap-year`.
    pub(crate) name: String,
    pub(crate) language: Language,
    pub(crate) folder: PathBuf,
    pub(crate) instructions: String,
    /// Files to change.
    pub(crate) solution: Vec<PathBuf>,
    pub(crate) tests: Vec<PathBuf>,
    /// Reference solution: pairs of the file in `.meta` and the file it replaces.
    pub(crate) reference: Vec<(PathBuf, PathBuf)>,
    /// Command that runs the tests.
    pub(crate) test_command: String,
}

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

impl Suite {
    /// Reads a suite; the error names every exercise that cannot be read.
    pub(crate) fn read(selection: &Selection) -> Outcome<Self> {
        let root = &selection.suite;
        let mut folders = Vec::new();
        collect(root, &mut folders)?;
        folders.sort();
        let part = selection.part.as_deref().map(|part| read_part(root, part)).transpose()?;
        let (mut exercises, mut faults) = (Vec::new(), Vec::new());
        for folder in folders {
            let relative = folder.strip_prefix(root).unwrap_or(&folder);
            let name = relative.to_string_lossy().replace('\\', "/");
            let wanted = selection.only.is_empty() || selection.only.iter().any(|text| name.contains(text));
            if !wanted || part.as_ref().is_some_and(|part| !part.contains(&name)) {
                continue;
            }
            match Exercise::read(name, folder) {
                Ok(exercise) => exercises.push(exercise),
                Err(fault) => faults.push(fault),
            }
        }
        if !faults.is_empty() {
            return Err(faults.join("\n"));
        }
        if exercises.is_empty() {
            return Err(format!("{}: no exercise matches", root.display()));
        }
        Ok(Self { exercises })
    }
}

impl Exercise {
    fn read(name: String, folder: PathBuf) -> Outcome<Self> {
        let fault = |what: &str| format!("{name}: {what}");
        let read = |path: &str| std::fs::read_to_string(folder.join(path));
        let config = read(".meta/config.json").map_err(|error| fault(&format!("config.json: {error}")))?;
        let config: Config =
            serde_json::from_str(&config).map_err(|error| fault(&format!("config.json: {error}")))?;
        let files = config.files;
        // Manifests are listed as solution files in some tracks, where an exercise may need a dependency.
        let solution: Vec<PathBuf> =
            files.solution.into_iter().filter(|file| Language::from_path(file).is_some()).collect();
        let language = solution.first().and_then(|file| Language::from_path(file));
        let language = language.ok_or_else(|| fault("no solution file in a supported language"))?;
        let missing = solution.iter().chain(&files.test).find(|file| !folder.join(file).is_file());
        if let Some(missing) = missing {
            return Err(fault(&format!("{} does not exist", missing.display())));
        }
        let test_command = language.test_command(&folder, &files.test).map_err(|error| fault(&error))?;
        let texts = ["introduction.md", "instructions.md", "instructions.append.md"];
        let texts: Vec<String> =
            texts.iter().filter_map(|text| read(&format!(".docs/{text}")).ok()).collect();
        if texts.is_empty() {
            return Err(fault(".docs/instructions.md does not exist"));
        }
        let reference = files.example.into_iter().zip(solution.iter().cloned()).collect();
        Ok(Self {
            language,
            instructions: texts.join("\n").trim().to_owned(),
            solution,
            tests: files.test,
            reference,
            test_command,
            folder,
            name,
        })
    }

    /// The request, the same for every method: the instructions, then what to change.
    pub(crate) fn request(&self) -> String {
        format!(
            "{}\n\nChange {} so that the tests in {} pass. Do not change the tests, keep the names that they use, and \
             use only the standard library.",
            self.instructions,
            list(&self.solution),
            list(&self.tests)
        )
    }
}

/// Finds the exercises below a folder.
fn collect(folder: &Path, found: &mut Vec<PathBuf>) -> Outcome {
    if folder.join(".meta/config.json").is_file() {
        found.push(folder.to_owned());
        return Ok(());
    }
    let entries = std::fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    for entry in entries.flatten() {
        let hidden = entry.file_name().to_string_lossy().starts_with('.');
        if !hidden && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            collect(&entry.path(), found)?;
        }
    }
    Ok(())
}

fn read_part(root: &Path, part: &str) -> Outcome<Vec<String>> {
    let path = root.join("split.json");
    let fault = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let text = std::fs::read_to_string(&path).map_err(|error| fault(&error))?;
    let mut parts: BTreeMap<String, Vec<String>> =
        serde_json::from_str(&text).map_err(|error| fault(&error))?;
    parts.remove(part).ok_or_else(|| fault(&format!("no part named `{part}`")))
}

fn list(files: &[PathBuf]) -> String {
    files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join(" and ")
}
