//! A project's own wording of a section of the default prompt or of the reviewer's: `.fusee/prompts/KEY.md`.
//!
//! An override is made for a certain original text and names it by hash in its first line,
//! `<!-- original: HASH -->`. Once the product says something else there, the override is not applied but reported:
//! it may contradict what is new.

use std::path::Path;

use fusee_tools::ContentHash;
use serde::{Deserialize, Serialize};

use super::default::{original, overridable};
use super::environment::{Environment, Whole, read_within};

/// Longer overrides are not used.
const MOST_BYTES: usize = 32 * 1024;

/// Files of the folder that are looked at.
const MOST_FILES: usize = 64;

/// Characters of a hash that name a text.
const HASH: usize = 12;

/// The wording of a section that a project would rather have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Override {
    /// The section's key.
    pub key: String,
    /// The hash of the text it was made for, as it says.
    pub original: Option<String>,
    /// What it says instead.
    pub text: String,
}

/// The file that overrides a section and says the same as the product: a beginning for one's own wording.
pub fn override_file(key: &str) -> Option<String> {
    original(key).map(|text| format!("<!-- original: {} -->\n{text}\n", hash_of(text)))
}

/// The hash that names a text in an override of it.
fn hash_of(original: &str) -> String {
    ContentHash::of(original.trim().as_bytes()).to_string().chars().take(HASH).collect()
}

/// The overrides of a folder, and what is wrong with the files there.
pub(super) fn read(folder: &Path, root: &Path) -> (Vec<Override>, Vec<String>) {
    let (mut found, mut notices) = (Vec::new(), Vec::new());
    let Ok(entries) = std::fs::read_dir(folder) else { return (found, notices) };
    let mut names: Vec<String> = entries
        .flatten()
        .take(MOST_FILES)
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.ends_with(".md"))
        .collect();
    names.sort();
    for name in names {
        let key = name.trim_end_matches(".md");
        match read_one(&folder.join(&name), root, key) {
            Ok(one) => found.push(one),
            Err(problem) => {
                notices.push(format!("the override .fusee/prompts/{name} is not used: {problem}"));
            }
        }
    }
    (found, notices)
}

fn read_one(path: &Path, root: &Path, key: &str) -> Result<Override, String> {
    if original(key).is_none() {
        let keys: Vec<&str> = overridable().collect();
        let near = fusee_text::near::nearest(key, keys.iter().copied());
        let hint = near.first().map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        return Err(format!(
            "no section of the prompt is called `{key}` (there are {}){hint}",
            keys.join(", ")
        ));
    }
    let (text, whole) = read_within(root, path, MOST_BYTES)
        .ok_or_else(|| "it is not a plain file of the project that can be read".to_owned())?;
    if whole == Whole::Cut {
        return Err(format!("it is longer than {} KB", MOST_BYTES / 1024));
    }
    let first = text.lines().next().unwrap_or_default().trim();
    let named = first.strip_prefix("<!-- original:").and_then(|rest| rest.strip_suffix("-->"));
    let original = named.map(|hash| hash.trim().to_owned());
    let body = if original.is_some() { text.split_once('\n').map_or("", |(_, body)| body) } else { &text };
    if body.trim().is_empty() {
        return Err("it says nothing".to_owned());
    }
    Ok(Override { key: key.to_owned(), original, text: body.trim().to_owned() })
}

/// The text of a section as this project would have it, and what a person should know of its override.
pub(crate) fn worded(key: &str, environment: &Environment, notices: &mut Vec<String>) -> String {
    apply(key, original(key).unwrap_or_default(), &environment.overrides, notices).to_owned()
}

/// The text of a section: the override's if it was made for this original. Otherwise the original, with what a person
/// should know.
fn apply<'a>(key: &str, original: &'a str, overrides: &'a [Override], notices: &mut Vec<String>) -> &'a str {
    let Some(found) = overrides.iter().find(|found| found.key == key) else { return original };
    let hash = hash_of(original);
    let reason = match &found.original {
        Some(named) if *named == hash => return &found.text,
        Some(named) => format!("it was made for another text ({named}) than the present one ({hash})"),
        None => "it does not say which text it was made for".to_owned(),
    };
    notices.push(format!(
        "the override .fusee/prompts/{key}.md is not used: {reason}; hold it against `fusee prompt render --original \
         {key}` and begin it with `<!-- original: {hash} -->`"
    ));
    original
}
