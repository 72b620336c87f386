//! Index entry of one file.

use serde::Serialize;

use super::{symbols, tokenizer};

/// Maximum length of a summary, in characters.
const SUMMARY: usize = 240;

/// Metadata of a file, without its content.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FileEntry {
    /// Path relative to the work tree, with `/` as separator.
    pub path: String,
    /// Language, derived from the file extension.
    pub language: String,
    /// Size in bytes.
    pub size: u64,
    /// Modification time in nanoseconds since the epoch.
    #[serde(skip)]
    pub(super) mtime: i64,
    /// Hash of the content that was read (the head of the file).
    #[serde(skip)]
    pub(super) hash: i64,
    /// Commit that was checked out when the file was read, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Defined symbols, in source order.
    pub symbols: Vec<String>,
    /// First words of the file about itself: comment, docstring, heading or sentence.
    pub summary: String,
}

/// File metadata that a walk sees before reading the file.
pub(super) struct FileStat {
    pub(super) size: u64,
    pub(super) mtime: i64,
}

impl FileEntry {
    /// Creates an entry from the head of a file's content.
    pub(super) fn new(path: String, stat: &FileStat, head: &[u8], commit: Option<&str>) -> Self {
        let text = if head.iter().take(8192).any(|byte| *byte == 0) {
            std::borrow::Cow::Borrowed("")
        } else {
            String::from_utf8_lossy(head)
        };
        let language = language(&path).to_owned();
        let symbols = symbols::find(&text, &language);
        let summary = summary(&text, &language);
        let (size, mtime) = (stat.size, stat.mtime);
        let (hash, commit) = (tokenizer::hash(head), commit.map(str::to_owned));
        Self { path, language, size, mtime, hash, commit, symbols, summary }
    }
}

/// Returns the language of a file by its extension, or the extension itself if it is unknown.
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

/// Returns the first words of a file about itself: its first comment, docstring, heading or sentence.
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
            // Code: comments after it do not describe the whole file.
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
