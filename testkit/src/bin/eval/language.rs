//! The languages of exercises: how each is recognised, tested and installed.

use std::path::{Path, PathBuf};

use crate::Outcome;

/// Language of an exercise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Language {
    Go,
    JavaScript,
    Python,
    Rust,
}

impl Language {
    /// Recognises the language by the extension of a solution file.
    pub(crate) fn from_path(file: &Path) -> Option<Self> {
        match file.extension()?.to_str()? {
            "go" => Some(Self::Go),
            "js" | "mjs" => Some(Self::JavaScript),
            "py" => Some(Self::Python),
            "rs" => Some(Self::Rust),
            _ => None,
        }
    }

    /// Name in tables and in the tags of code blocks.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Go => "go",
            Self::JavaScript => "javascript",
            Self::Python => "python",
            Self::Rust => "rust",
        }
    }

    /// Program that runs the tests, and the Debian package it comes from.
    pub(crate) fn program(self) -> (&'static str, &'static str) {
        match self {
            Self::Go => ("go", "golang-go"),
            Self::JavaScript => ("node", "nodejs"),
            Self::Python => ("python3", "python3"),
            Self::Rust => ("cargo", "cargo"),
        }
    }

    /// Command that runs these tests, without packages beyond the language's own where the tests allow it.
    pub(crate) fn test_command(self, folder: &Path, tests: &[PathBuf]) -> Outcome<String> {
        let names: Vec<String> = tests.iter().map(|test| test.display().to_string()).collect();
        let names = names.join(" ");
        let mention = |word: &str| {
            tests
                .iter()
                .any(|test| std::fs::read_to_string(folder.join(test)).is_ok_and(|text| text.contains(word)))
        };
        match self {
            Self::Go => Ok("go test ./...".to_owned()),
            Self::JavaScript if mention("node:test") => Ok(format!("node --test {names}")),
            Self::JavaScript => {
                Err("the tests need a runner from npm; only node's own is supported".to_owned())
            }
            Self::Python if mention("unittest") => Ok(format!("python3 -m unittest -q {names}")),
            Self::Python => Ok(format!("python3 -m pytest -q {names}")),
            Self::Rust => Ok("cargo test --offline --quiet -- --include-ignored".to_owned()),
        }
    }
}
