//! Project overrides for sections of the default and review prompts: `.fusee/prompts/KEY.md`.
//!
//! An override names the hash of the original text it was written for in its first line, `<!-- original: HASH
//! -->`. When the built-in text changes, the override is reported instead of applied, because it may
//! contradict the new text.

use std::path::Path;

use fusee_tools::ContentHash;
use serde::{Deserialize, Serialize};

use super::default::{original, overridable};
use super::environment::{EnvironmentSnapshot, ReadExtent, read_within};

/// Maximum size of an override; longer ones are ignored.
const MAX_BYTES: usize = 32 * 1024;

/// Maximum number of files of the folder that are read.
const MAX_FILES: usize = 64;

/// Number of hash characters that identify a text.
const HASH: usize = 12;

/// A project's own text for a section.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SectionOverride {
    /// Key of the section.
    pub key: String,
    /// Hash of the original it was written for, as given in the file.
    pub original: Option<String>,
    /// The replacement text.
    pub text: String,
}

/// Returns an override file with the built-in text of a section, as a starting point.
pub fn override_file(key: &str) -> Option<String> {
    original(key).map(|text| format!("<!-- original: {} -->\n{text}\n", hash_of(text)))
}

/// Returns the hash that identifies an original text.
fn hash_of(original: &str) -> String {
    ContentHash::of(original.trim().as_bytes()).to_string().chars().take(HASH).collect()
}

/// Reads the overrides of a folder, and reports the problems of its files.
pub(super) fn read(folder: &Path, root: &Path) -> (Vec<SectionOverride>, Vec<String>) {
    let (mut found, mut notices) = (Vec::new(), Vec::new());
    let Ok(entries) = std::fs::read_dir(folder) else { return (found, notices) };
    let mut names: Vec<String> = entries
        .flatten()
        .take(MAX_FILES)
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.ends_with(".md"))
        .collect();
    names.sort();
    for name in names {
        let key = name.trim_end_matches(".md");
        match read_one(&folder.join(&name), root, key) {
            Ok(one) => found.push(one),
            Err(problem) => {
                notices.push(format!("ignoring override .fusee/prompts/{name}: {problem}"));
            }
        }
    }
    (found, notices)
}

fn read_one(path: &Path, root: &Path, key: &str) -> Result<SectionOverride, String> {
    if original(key).is_none() {
        let keys: Vec<&str> = overridable().collect();
        let near = fusee_text::suggest::nearest(key, keys.iter().copied());
        let hint = near.first().map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        return Err(format!("unknown prompt section `{key}` (known: {}){hint}", keys.join(", ")));
    }
    let (text, whole) = read_within(root, path, MAX_BYTES)
        .ok_or_else(|| "not a readable regular file inside the project".to_owned())?;
    if whole == ReadExtent::Cut {
        return Err(format!("longer than {} KB", MAX_BYTES / 1024));
    }
    let first = text.lines().next().unwrap_or_default().trim();
    let named = first.strip_prefix("<!-- original:").and_then(|rest| rest.strip_suffix("-->"));
    let original = named.map(|hash| hash.trim().to_owned());
    let body = if original.is_some() { text.split_once('\n').map_or("", |(_, body)| body) } else { &text };
    if body.trim().is_empty() {
        return Err("the file is empty".to_owned());
    }
    Ok(SectionOverride { key: key.to_owned(), original, text: body.trim().to_owned() })
}

/// Returns the text of a section for this project, and adds a notice if its override is ignored.
pub(crate) fn section_text(
    key: &str,
    environment: &EnvironmentSnapshot,
    notices: &mut Vec<String>,
) -> String {
    apply(key, original(key).unwrap_or_default(), &environment.overrides, notices).to_owned()
}

/// Returns the override's text if it was written for this original, otherwise the original with a notice for
/// the user.
fn apply<'a>(
    key: &str,
    original: &'a str,
    overrides: &'a [SectionOverride],
    notices: &mut Vec<String>,
) -> &'a str {
    let Some(found) = overrides.iter().find(|found| found.key == key) else { return original };
    let hash = hash_of(original);
    let reason = match &found.original {
        Some(named) if *named == hash => return &found.text,
        Some(named) => format!("it was written for another version of the original ({named}, now {hash})"),
        None => "it does not name the original it was written for".to_owned(),
    };
    notices.push(format!(
        "ignoring override .fusee/prompts/{key}.md: {reason}; compare it with the original, then \
         start it with `<!-- original: {hash} -->`"
    ));
    original
}
