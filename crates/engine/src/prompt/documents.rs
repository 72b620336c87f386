//! Folders of documents as sections: reference documents, and skills (`NAME/SKILL.md`). Each is closed and
//! costs only its summary until the model opens it.

use std::collections::HashSet;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::environment::{ReadExtent, read_within};
use super::section::PromptSection;
use front_matter::{FrontMatter, field};

pub mod front_matter;

/// Maximum number of documents of a folder; the rest is left out.
const MAX_DOCUMENTS: usize = 64;

/// Maximum depth of nested folders.
const DEPTH: usize = 4;

/// Longer documents are truncated, with a marker.
const MAX_BYTES: u64 = 1 << 20;

/// Maximum length of a summary, and of a skill's name, in characters.
const SUMMARY: usize = 300;
const TITLE: usize = 80;

/// Longer skills are truncated, with a marker: skills are stored with the session, and the model can read the
/// rest.
const SKILL_BYTES: usize = 64 * 1024;

/// Maximum total size of a project's skills; those beyond it are left out.
const SKILLS_BYTES: usize = 1 << 20;

/// A text that the model can open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Document {
    /// Unique section key.
    pub key: String,
    /// Section title.
    pub title: String,
    /// Text shown until the document is opened.
    pub summary: String,
    /// The full text.
    pub text: String,
}

impl Document {
    /// Converts the document to an initially closed section.
    pub fn section(&self) -> PromptSection {
        let summary = self.summary.replace('$', "$$");
        PromptSection::literal(self.key.clone(), self.title.clone(), self.text.clone()).summarised(summary)
    }
}

/// Reads the reference documents of some folders: Markdown and plain text, sorted by path.
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
    documents.truncate(MAX_DOCUMENTS);
    documents
}

/// Skills of a project, and the problems found in their files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Skills {
    /// Skills, sorted by path.
    pub documents: Vec<Document>,
    /// Notices for the user.
    pub notices: Vec<String>,
}

/// Reads the skills of a folder: each is a folder with a `SKILL.md`, whose front matter names and describes
/// it. A link is followed only to a file within `root`.
pub fn skills(folder: &Path, root: &Path) -> Skills {
    let is_skill = |path: &Path| path.file_name().is_some_and(|name| name == "SKILL.md");
    let (mut keys, mut found, mut room) = (HashSet::new(), Skills::default(), SKILLS_BYTES);
    for path in files(folder, &is_skill) {
        let name = path.strip_prefix(root).unwrap_or(&path).display().to_string();
        if found.documents.len() >= MAX_DOCUMENTS || room == 0 {
            let most = format!("the limit is {MAX_DOCUMENTS} skills and {} KB", SKILLS_BYTES / 1024);
            found.notices.push(format!("ignoring skill {name} and all after it: {most}"));
            break;
        }
        let Some((whole, all)) = read_within(root, &path, SKILL_BYTES) else {
            let reason = "not a readable regular file inside the project";
            found.notices.push(format!("ignoring skill {name}: {reason}"));
            continue;
        };
        if whole.trim().is_empty() {
            found.notices.push(format!("ignoring skill {name}: the file is empty"));
            continue;
        }
        let mut document = skill(&path, &name, &whole, &mut found.notices);
        if all == ReadExtent::Cut {
            document.text.push_str(&format!("\n[cut here: read {name} for the rest]"));
        }
        document.key = new_key(&document.key, &mut keys);
        room = room.saturating_sub(document.text.len());
        found.documents.push(document);
    }
    found
}

/// Reads one skill. A file without front matter is accepted with a notice, and summarised by its first
/// paragraph.
fn skill(path: &Path, name: &str, whole: &str, notices: &mut Vec<String>) -> Document {
    let (fields, body) = match FrontMatter::parse(whole) {
        FrontMatter::Fields { fields, body } => (fields, body),
        FrontMatter::Nothing => ("", whole),
        FrontMatter::Open => {
            notices.push(format!("{name}: unterminated front matter: missing the closing `---` line"));
            ("", whole.trim_start_matches('-'))
        }
    };
    let parent = path.parent().unwrap_or(path);
    let place = parent.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let title = field(fields, "name").or_else(|| heading(body)).unwrap_or_else(|| place.clone());
    let summary = field(fields, "description").unwrap_or_else(|| {
        notices.push(format!("{name}: no `description` in the front matter; using its first paragraph"));
        first_words(body)
    });
    let folder = name.trim_end_matches("/SKILL.md");
    let text = format!("(The files of this skill are in {folder}.)\n\n{}", body.trim());
    Document { key: place, title: shortened(&title, TITLE), summary: shortened(&summary, SUMMARY), text }
}

/// Returns the wanted files of a folder, sorted. Links to folders are not followed, so link cycles end.
fn files(folder: &Path, wanted: &dyn Fn(&Path) -> bool) -> Vec<PathBuf> {
    let (mut found, mut open) = (Vec::new(), vec![(folder.to_owned(), 0)]);
    while let Some((folder, depth)) = open.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries.flatten().take(MAX_DOCUMENTS * 16) {
            let Ok(kind) = entry.file_type() else { continue };
            let path = entry.path();
            if kind.is_dir() && depth < DEPTH {
                open.push((path, depth + 1));
            } else if wanted(&path) && path.is_file() {
                found.push(path);
            }
        }
        if found.len() >= MAX_DOCUMENTS * 4 {
            break;
        }
    }
    found.sort();
    found
}

fn read(path: &Path) -> Option<String> {
    let file = std::fs::File::open(path).ok()?;
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).ok()?;
    let cut = bytes.len() as u64 > MAX_BYTES;
    bytes.truncate(usize::try_from(MAX_BYTES).unwrap_or(usize::MAX));
    let mut text = String::from_utf8_lossy(&bytes).into_owned();
    if cut {
        text.push_str("\n[cut here: the file is longer]");
    }
    (!text.trim().is_empty()).then_some(text)
}

fn heading(text: &str) -> Option<String> {
    let line = text.lines().find(|line| !line.trim().is_empty())?.trim();
    let title = line.strip_prefix('#')?.trim_start_matches('#').trim();
    (!title.is_empty()).then(|| title.to_owned())
}

/// Returns the first paragraph that is not a heading, shortened.
fn first_words(text: &str) -> String {
    let is_words = |paragraph: &&str| !paragraph.trim().is_empty() && !paragraph.trim().starts_with('#');
    let paragraph = text.split("\n\n").find(is_words).unwrap_or(text);
    shortened(&paragraph.split_whitespace().collect::<Vec<_>>().join(" "), SUMMARY)
}

fn shortened(words: &str, most: usize) -> String {
    match words.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", &words[..at]),
        None => words.to_owned(),
    }
}

/// Makes a valid, unused key from a name.
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
