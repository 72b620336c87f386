//! Diffs of what a run changed in the demo project.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use similar::{ChangeTag, TextDiff};

use super::{FILES, original};

/// Maximum size of a file that is diffed.
const MAX_BYTES: u64 = 256 << 10;

/// A changed file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FileDiff {
    /// Path relative to the project.
    pub(crate) path: String,
    /// Number of added lines.
    pub(crate) added: usize,
    /// Number of removed lines.
    pub(crate) removed: usize,
    pub(crate) diff: String,
}

/// The bundled files that changed, and those of the other `named` files that exist.
pub(crate) fn changes(project: &Path, named: &[String]) -> Vec<FileDiff> {
    let others = named.iter().map(String::as_str).filter(|path| original(path).is_none());
    let mut paths: Vec<&str> = FILES.iter().map(|(path, _)| *path).chain(others).collect();
    paths.sort_unstable();
    paths.dedup();
    paths.into_iter().filter_map(|path| change(project, path)).collect()
}

fn change(project: &Path, path: &str) -> Option<FileDiff> {
    let (before, after) = (original(path), now(project, path));
    if before == after.as_deref() {
        return None;
    }
    let (old, new) = (before.unwrap_or_default(), after.as_deref().unwrap_or_default());
    let compared = TextDiff::from_lines(old, new);
    let count = |tag| compared.iter_all_changes().filter(|change| change.tag() == tag).count();
    let name =
        |side: &str, there: bool| if there { format!("{side}/{path}") } else { "/dev/null".to_owned() };
    let diff = compared
        .unified_diff()
        .context_radius(2)
        .header(&name("a", before.is_some()), &name("b", after.is_some()))
        .to_string();
    Some(FileDiff {
        path: path.to_owned(),
        added: count(ChangeTag::Insert),
        removed: count(ChangeTag::Delete),
        diff,
    })
}

fn now(project: &Path, path: &str) -> Option<String> {
    let file = File::open(project.join(path)).ok()?;
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).ok()?;
    if bytes.len() as u64 > MAX_BYTES {
        return Some(format!("(a file of more than {} KB)\n", MAX_BYTES >> 10));
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
