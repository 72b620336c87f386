//! What is known of one file.

use serde::Serialize;

use super::coding::{self, Rest};
use super::symbols;
use super::tokens::{self, Tokens};

/// Longest summary, in characters.
const SUMMARY: usize = 240;

/// A file without its content.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// Its path in the work tree, `/` between components.
    pub path: String,
    /// By its ending.
    pub language: String,
    /// In bytes.
    pub size: u64,
    /// When it changed, in nanoseconds since the epoch.
    #[serde(skip)]
    pub(super) mtime: i64,
    /// Of the content that was read.
    #[serde(skip)]
    pub(super) hash: u64,
    /// What was checked out when it was read, where that is a commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// What it defines, in the order of the text.
    pub symbols: Vec<String>,
    /// Its first words about itself.
    pub summary: String,
    #[serde(skip)]
    pub(super) tokens: Tokens,
}

/// What a walk sees of a file before reading it.
pub(super) struct Stat {
    pub(super) size: u64,
    pub(super) mtime: i64,
}

impl Entry {
    /// From the beginning of a file's content.
    pub(super) fn new(path: String, stat: &Stat, head: &[u8], commit: Option<&str>) -> Self {
        let text = if head.iter().take(8192).any(|byte| *byte == 0) {
            std::borrow::Cow::Borrowed("")
        } else {
            String::from_utf8_lossy(head)
        };
        let language = language(&path).to_owned();
        let symbols = symbols::find(&text, &language);
        let summary = summary(&text, &language);
        let tokens = tokens::of_fields(&path, &symbols, &summary);
        let (size, mtime) = (stat.size, stat.mtime);
        let (hash, commit) = (tokens::hash_bytes(head), commit.map(str::to_owned));
        Self { path, language, size, mtime, hash, commit, symbols, summary, tokens }
    }

    /// Writes what is shown of it beside its path and state.
    pub(super) fn detail(&self, bytes: &mut Vec<u8>) {
        coding::text(bytes, self.commit.as_deref().unwrap_or_default());
        coding::text(bytes, &self.summary);
        coding::text(bytes, &self.symbols.join("\n"));
    }

    /// Reads that; the rest of the entry is empty.
    pub(super) fn from_detail(rest: &mut Rest<'_>) -> Option<Self> {
        let commit = Some(rest.text()?).filter(|commit| !commit.is_empty()).map(str::to_owned);
        let summary = rest.text()?.to_owned();
        let symbols = rest.text()?.split('\n').filter(|symbol| !symbol.is_empty());
        Some(Self { commit, summary, symbols: symbols.map(str::to_owned).collect(), ..Self::default() })
    }
}

/// The language of a file, by its name; its ending where that is none we know.
pub(super) fn language(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    let Some((_, ending)) = name.rsplit_once('.') else { return "" };
    match ending {
        "rs" => "rust",
        "py" | "pyi" => "python",
        "js" | "mjs" | "cjs" | "jsx" => "javascript",
        "ts" | "tsx" | "mts" => "typescript",
        "go" => "go",
        "c" | "h" => "c",
        "cc" | "cpp" | "cxx" | "hpp" | "hh" => "cpp",
        "java" => "java",
        "kt" | "kts" => "kotlin",
        "cs" => "csharp",
        "rb" => "ruby",
        "php" => "php",
        "swift" => "swift",
        "scala" => "scala",
        "sh" | "bash" | "zsh" => "shell",
        "md" | "markdown" => "markdown",
        "toml" => "toml",
        "json" => "json",
        "yaml" | "yml" => "yaml",
        "xml" => "xml",
        "sql" => "sql",
        "fusee" => "fusee",
        other => other,
    }
}

/// The first words of a file about itself: its first comment, docstring, heading or sentence.
fn summary(text: &str, language: &str) -> String {
    let mut words = String::new();
    for line in text.lines().take(40) {
        let line = line.trim();
        let bare = line.trim_start_matches(['/', '!', '#', '*', '-', ';', '<', '"', '\'', '=']).trim();
        let is_comment = line.len() > bare.len();
        let counts = is_comment || matches!(language, "markdown" | "txt" | "rst" | "");
        let noise = line.starts_with("#!") || line.starts_with("#[") || line.starts_with("#include");
        if noise || bare.is_empty() {
            if words.is_empty() {
                continue;
            }
            break;
        }
        if !counts {
            // Code: what comes after it is not about the whole file.
            break;
        }
        if !words.is_empty() {
            words.push(' ');
        }
        words.push_str(bare.trim_end_matches(['*', '/', '"', '>', '-', ' ']));
        if words.chars().count() >= SUMMARY {
            break;
        }
    }
    words.chars().take(SUMMARY).collect()
}
