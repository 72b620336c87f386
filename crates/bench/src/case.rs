//! A case: one task of a suite with everything needed to run and score it. `suite` reads cases from disk,
//! `working_copy` lays them out, `score` runs their tests.

use std::path::{Path, PathBuf};

use crate::machine::HostMachine;

/// One task of a suite. Paths of the working copy are relative to it.
#[derive(Clone, Debug)]
pub struct Case {
    /// Name of its folder; unique in the suite.
    pub name: String,
    /// Language, where the suite says so.
    pub language: Option<String>,
    /// Words to select it by, beyond its name.
    pub keywords: Vec<String>,
    /// Folder or file that defines it, for messages.
    pub origin: PathBuf,
    /// What the model is asked to do.
    pub instruction: String,
    /// Files of the working copy.
    pub files: Vec<CaseFile>,
    /// Files that the model is expected to change; empty if the suite does not say.
    pub solution: Vec<PathBuf>,
    /// Files that may not be changed. They are restored before scoring.
    pub tests: Vec<PathBuf>,
    /// How the work is judged.
    pub test: CaseTest,
    /// Reference solution, if there is one.
    pub reference: Option<Reference>,
    /// Time limit of the model in seconds, if the suite sets one.
    pub agent_timeout_s: Option<u64>,
    /// Path at which the tests expect the working copy.
    pub mounted_at: Option<PathBuf>,
    /// Programs that the tests need.
    pub programs: Vec<String>,
    /// Why the case cannot run on any machine without a container engine.
    pub unsupported: Option<String>,
}

/// A file of the working copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaseFile {
    /// Path in the working copy.
    pub path: PathBuf,
    /// Path on disk.
    pub source: PathBuf,
}

/// How the work on a case is judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaseTest {
    /// Command line, run in a copy of the working copy.
    pub command: String,
    /// Time limit in seconds.
    pub timeout_s: u64,
    /// Where the verdict comes from.
    pub verdict: Verdict,
}

/// Where the verdict on a case comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The exit code: 0 is a pass.
    ExitCode,
    /// A reward file that the tests write, as in Harbor.
    RewardFile {
        /// Folder with the tests, mounted at `/tests`.
        tests: PathBuf,
    },
}

/// A reference solution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reference {
    /// Files that replace those of the working copy.
    Files(Vec<CaseFile>),
    /// A script that is run in the working copy, with its folder mounted at `/solution`.
    Script(PathBuf),
}

impl CaseFile {
    fn problem(&self) -> Option<String> {
        match std::fs::File::open(&self.source).and_then(|file| file.metadata()) {
            Ok(found) if found.is_file() => None,
            Ok(_) => Some("not a file".to_owned()),
            Err(error) => Some(error.to_string()),
        }
    }
}

impl Case {
    /// Why the case cannot run on this machine, if it cannot.
    pub fn skip_reason(&self, machine: &HostMachine) -> Option<String> {
        if let Some(reason) = &self.unsupported {
            return Some(reason.clone());
        }
        if self.mounted_at.is_some() && !machine.has_mounts() {
            return Some("needs a sandbox with namespaces, to mount its folders".to_owned());
        }
        let missing = self.programs.iter().find(|program| !machine.has_program(program));
        missing.map(|program| format!("needs `{program}`, which is not installed"))
    }

    /// The first file that cannot be copied into a working copy, and why.
    pub(crate) fn unreadable_file(&self) -> Option<(&CaseFile, String)> {
        self.files.iter().find_map(|file| Some((file, file.problem()?)))
    }

    /// The request: the instructions, then what to change.
    pub fn request(&self) -> String {
        if self.solution.is_empty() {
            return self.instruction.clone();
        }
        let tests = match self.tests.as_slice() {
            [] => "the tests pass".to_owned(),
            tests => format!("the tests in {} pass", list(tests)),
        };
        format!(
            "{}\n\nChange {} so that {tests}. Do not change the tests, keep the names that they use, and use only \
             the standard library.",
            self.instruction,
            list(&self.solution)
        )
    }

    /// The request of a further try: the output of the tests, and what to do about it.
    pub fn retry_request(&self, feedback: &str) -> String {
        let files = match self.solution.as_slice() {
            [] => "the code".to_owned(),
            files => list(files),
        };
        format!(
            "The tests fail:\n\n```\n{feedback}\n```\n\nFix {files}. The tests are correct; do not change them."
        )
    }

    /// Whether the model may not change this file.
    pub fn is_test(&self, path: &Path) -> bool {
        self.tests.iter().any(|test| test == path)
    }
}

fn list(files: &[PathBuf]) -> String {
    files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join(" and ")
}
