//! Folders of documents as sections: reference documents, and skills (`NAME/SKILL.md`). Each is closed until a model
//! opens it, and costs its summary until then.

use std::collections::HashSet;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::section::Section;

/// Documents of one folder; the rest is left out.
const MOST: usize = 64;

/// Levels of folders inside a folder of documents.
const DEPTH: usize = 4;

/// A longer document is cut, and the cut is marked.
const MOST_BYTES: u64 = 1 << 20;

/// Characters of a summary.
const SUMMARY: usize = 300;

/// A text that can be opened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Document {
    /// Its key among the others.
    pub key: String,
    /// Its title.
    pub title: String,
    /// What is shown of it until it is opened.
    pub summary: String,
    /// All of it.
    pub text: String,
}

impl Document {
    /// As a section that is closed at first.
    pub(crate) fn section(&self) -> Section {
        let summary = self.summary.replace('$', "$$");
        Section::literal(self.key.clone(), self.title.clone(), self.text.clone()).summarised(summary)
    }
}

/// The reference documents of some folders: Markdown and plain text, in order of path.
pub fn references(folders: &[PathBuf]) -> Vec<Document> {
    let mut keys = HashSet::new();
    let mut documents = Vec::new();
    for folder in folders {
        let is_text = |path: &Path| {
            let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
            ["md", "markdown", "txt", "rst", "adoc"].contains(&extension)
        };
        for path in files(folder, &is_text) {
            let Some(text) = read(&path) else { continue };
            let name = path.strip_prefix(folder).unwrap_or(&path).display().to_string();
            let title = heading(&text).unwrap_or_else(|| name.clone());
            let summary = format!("{name}: {}", first_words(&text));
            let stem = name.rsplit_once('.').map_or(name.as_str(), |(stem, _)| stem);
            documents.push(Document { key: new_key(stem, &mut keys), title, summary, text });
        }
    }
    documents.truncate(MOST);
    documents
}

/// The skills of a folder: each a folder with a `SKILL.md`, whose front matter names and describes it.
pub fn skills(folder: &Path) -> Vec<Document> {
    let mut keys = HashSet::new();
    let is_skill = |path: &Path| path.file_name().is_some_and(|name| name == "SKILL.md");
    let mut skills = Vec::new();
    for path in files(folder, &is_skill) {
        let Some(whole) = read(&path) else { continue };
        let (front, body) = front_matter(&whole);
        let field = |name: &str| front.and_then(|front| field(front, name));
        let place =
            path.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned();
        let title = field("name").or_else(|| heading(body)).unwrap_or_else(|| place.clone());
        let summary = field("description").unwrap_or_else(|| first_words(body));
        let text = format!(
            "{}\n\n(The skill's folder is {}.)",
            body.trim(),
            path.parent().unwrap_or(folder).display()
        );
        skills.push(Document { key: new_key(&place, &mut keys), title, summary, text });
    }
    skills.truncate(MOST);
    skills
}

/// The files of a folder that are wanted, in order. A link to a folder is not followed, so a circle of them ends.
fn files(folder: &Path, wanted: &dyn Fn(&Path) -> bool) -> Vec<PathBuf> {
    let (mut found, mut open) = (Vec::new(), vec![(folder.to_owned(), 0)]);
    while let Some((folder, depth)) = open.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries.flatten().take(MOST * 16) {
            let Ok(kind) = entry.file_type() else { continue };
            let path = entry.path();
            if kind.is_dir() && depth < DEPTH {
                open.push((path, depth + 1));
            } else if wanted(&path) && path.is_file() {
                found.push(path);
            }
        }
        if found.len() >= MOST * 4 {
            break;
        }
    }
    found.sort();
    found
}

fn read(path: &Path) -> Option<String> {
    let file = std::fs::File::open(path).ok()?;
    let mut bytes = Vec::new();
    file.take(MOST_BYTES + 1).read_to_end(&mut bytes).ok()?;
    let cut = bytes.len() as u64 > MOST_BYTES;
    bytes.truncate(usize::try_from(MOST_BYTES).unwrap_or(usize::MAX));
    let mut text = String::from_utf8_lossy(&bytes).into_owned();
    if cut {
        text.push_str("\n[cut here: the file is longer]");
    }
    (!text.trim().is_empty()).then_some(text)
}

/// What stands between two lines of dashes at the top, and the rest.
fn front_matter(text: &str) -> (Option<&str>, &str) {
    let inside = text.strip_prefix("---\n").and_then(|rest| rest.split_once("\n---"));
    match inside {
        Some((front, rest)) => (Some(front), rest.trim_start_matches('-')),
        None => (None, text),
    }
}

/// A field of front matter: `name: words`, perhaps in quotes.
fn field(front: &str, name: &str) -> Option<String> {
    let value = front.lines().find_map(|line| line.strip_prefix(name)?.trim_start().strip_prefix(':'))?;
    let value = value.trim().trim_matches(['"', '\'']).trim();
    (!value.is_empty()).then(|| value.chars().take(SUMMARY).collect())
}

fn heading(text: &str) -> Option<String> {
    let line = text.lines().find(|line| !line.trim().is_empty())?.trim();
    let title = line.strip_prefix('#')?.trim_start_matches('#').trim();
    (!title.is_empty()).then(|| title.to_owned())
}

/// The first paragraph that is no heading, shortened.
fn first_words(text: &str) -> String {
    let is_words = |paragraph: &&str| !paragraph.trim().is_empty() && !paragraph.trim().starts_with('#');
    let paragraph = text.split("\n\n").find(is_words).unwrap_or(text);
    let words = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
    match words.char_indices().nth(SUMMARY) {
        Some((at, _)) => format!("{}…", &words[..at]),
        None => words,
    }
}

/// A legal key made of a name, another than all before.
fn new_key(name: &str, taken: &mut HashSet<String>) -> String {
    let legal = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c.to_ascii_lowercase() } else { '-' };
    let key: String = name.chars().map(legal).collect();
    let key = key.trim_start_matches(['-', '_']);
    let key = if key.is_empty() { "document" } else { &key[..key.len().min(56)] };
    let numbered = (2..).map(|n| format!("{key}-{n}"));
    let free = std::iter::once(key.to_owned()).chain(numbered).find(|key| !taken.contains(key));
    let key = free.unwrap_or_default();
    taken.insert(key.clone());
    key
}
