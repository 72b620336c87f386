//! The languages of exercises: how each is recognised and tested.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Language of an exercise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Language {
    Cpp,
    Go,
    Java,
    JavaScript,
    Python,
    Rust,
}

/// Test commands that replace those built in, by language.
pub type TestCommands = BTreeMap<String, String>;

impl Language {
    /// Recognises the language by the extension of a solution file.
    pub(crate) fn from_path(file: &Path) -> Option<Self> {
        match file.extension()?.to_str()? {
            "cpp" | "cc" | "h" | "hpp" => Some(Self::Cpp),
            "go" => Some(Self::Go),
            "java" => Some(Self::Java),
            "js" | "mjs" => Some(Self::JavaScript),
            "py" => Some(Self::Python),
            "rs" => Some(Self::Rust),
            _ => None,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Cpp => "cpp",
            Self::Go => "go",
            Self::Java => "java",
            Self::JavaScript => "javascript",
            Self::Python => "python",
            Self::Rust => "rust",
        }
    }

    /// Command that runs the tests in `folder`, and the programs it needs. Prefers what the language itself brings.
    pub(crate) fn test_command(self, folder: &Path, tests: &[PathBuf]) -> (String, Vec<String>) {
        let names: Vec<String> = tests.iter().map(|test| quoted(&test.display().to_string())).collect();
        let names = names.join(" ");
        let mentions = |word: &str| {
            tests
                .iter()
                .any(|test| std::fs::read_to_string(folder.join(test)).is_ok_and(|text| text.contains(word)))
        };
        let (command, programs): (String, &[&str]) = match self {
            Self::Cpp => (
                "mkdir -p build && cd build && cmake -DEXERCISM_RUN_ALL_TESTS=1 -G 'Unix Makefiles' .. && make".into(),
                &["cmake", "make"],
            ),
            Self::Go => ("go test ./...".into(), &["go"]),
            Self::Java => ("./gradlew test --offline".into(), &["java"]),
            Self::JavaScript if mentions("node:test") => (format!("node --test {names}"), &["node"]),
            Self::JavaScript => (format!("npx --no-install jest {names}"), &["npx"]),
            Self::Python if mentions("unittest") => (format!("python3 -m unittest -q {names}"), &["python3"]),
            Self::Python => (format!("python3 -m pytest -q {names}"), &["python3"]),
            Self::Rust => ("cargo test --offline --quiet -- --include-ignored".into(), &["cargo"]),
        };
        (command, programs.iter().map(|program| (*program).to_owned()).collect())
    }

    /// The content of a test file with tests enabled that exercism ships disabled.
    pub(crate) fn with_all_tests(self, content: Vec<u8>) -> Vec<u8> {
        let Ok(text) = std::str::from_utf8(&content) else { return content };
        match self {
            Self::Java => {
                let kept = text.lines().filter(|line| !line.trim_start().starts_with("@Disabled"));
                let mut enabled = kept.collect::<Vec<_>>().join("\n");
                if text.ends_with('\n') {
                    enabled.push('\n');
                }
                enabled.into_bytes()
            }
            Self::JavaScript => text.replace("xtest(", "test(").replace("xit(", "it(").into_bytes(),
            Self::Cpp | Self::Go | Self::Python | Self::Rust => content,
        }
    }
}

/// A word for the shell.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}
