//! What a call would change or has changed, as a diff: from the call's own arguments, so that it can be shown
//! before the call runs, and long after.

use std::path::Path;

use serde_json::Value;
use similar::{ChangeTag, TextDiff};

use crate::face::line::{Line, Style};

#[cfg(test)]
mod tests;

/// A file larger than this is not compared with what it is to become.
const COMPARED_BYTES: u64 = 1 << 20;

/// Lines around a change that are shown.
const AROUND: usize = 2;

/// The changes of a call as rows; `None` for a call that changes no file by itself. With a workspace, a file that is
/// written anew is compared with what stands there.
pub(crate) fn rows(name: &str, arguments: &Value, workspace: Option<&Path>) -> Option<Vec<Line>> {
    let text = |keys: &[&str]| keys.iter().find_map(|key| arguments.get(key).and_then(Value::as_str));
    match name {
        "edit_file" => {
            let (old, new) = (text(&["old", "old_string"])?, text(&["new", "new_string"])?);
            let path = text(&["path"])?;
            let all = arguments.get("all").and_then(Value::as_bool).unwrap_or_default();
            let around = workspace.and_then(|workspace| edited(&standing(workspace, path)?, old, new, all));
            let (old, new) = around.unwrap_or_else(|| (old.to_owned(), new.to_owned()));
            Some(headed(path, differences(&old, &new)))
        }
        "write_file" => {
            let (path, new) = (text(&["path"])?, text(&["content"])?);
            let old = workspace.and_then(|workspace| standing(workspace, path)).unwrap_or_default();
            Some(headed(path, differences(&old, new)))
        }
        "apply_patch" => Some(text(&["patch", "input"])?.lines().map(patch_line).collect()),
        _ => None,
    }
}

fn headed(path: &str, rows: Vec<Line>) -> Vec<Line> {
    [Line::of(Style::Bold, path)].into_iter().chain(rows).collect()
}

fn differences(old: &str, new: &str) -> Vec<Line> {
    let diff = TextDiff::from_lines(old, new);
    let mut rows = Vec::new();
    for (index, group) in diff.grouped_ops(AROUND).iter().enumerate() {
        if index > 0 {
            rows.push(Line::of(Style::Dim, "  …"));
        }
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let (sign, style) = match change.tag() {
                ChangeTag::Delete => ("- ", Style::Bad),
                ChangeTag::Insert => ("+ ", Style::Good),
                ChangeTag::Equal => ("  ", Style::Dim),
            };
            rows.push(Line::of(style, sign).and(style, change.value().trim_end_matches(['\n', '\r'])));
        }
    }
    rows
}

fn patch_line(line: &str) -> Line {
    let style = match line.as_bytes().first() {
        Some(b'+') => Style::Good,
        Some(b'-') => Style::Bad,
        Some(b'*') => Style::Bold,
        _ => Style::Dim,
    };
    Line::of(style, line)
}

/// A file before and after an edit, so that whole lines and those around them are shown; nothing if the edit does not
/// fit it as it is.
fn edited(file: &str, old: &str, new: &str, all: bool) -> Option<(String, String)> {
    let places = if old.is_empty() { 0 } else { file.matches(old).count() };
    let fits = places == 1 || (all && places > 0);
    fits.then(|| (file.to_owned(), file.replace(old, new)))
}

/// What stands in a file now; nothing where it cannot be compared.
fn standing(workspace: &Path, path: &str) -> Option<String> {
    let path = workspace.join(path);
    let file = std::fs::metadata(&path).ok().filter(|file| file.is_file() && file.len() <= COMPARED_BYTES);
    file.and_then(|_| std::fs::read_to_string(path).ok())
}
