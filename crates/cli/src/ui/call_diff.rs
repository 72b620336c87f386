//! Diffs of calls that change files, computed from the call's arguments, so they can be shown before the call
//! runs and long afterwards.

use std::path::Path;

use serde_json::Value;
use similar::{ChangeTag, TextDiff};

use crate::ui::line::{Style, StyledLine};

#[cfg(test)]
mod tests;

/// Maximum size in bytes of an existing file that is compared with its new content.
const COMPARED_BYTES: u64 = 1 << 20;

/// Lines of context around a change.
const AROUND: usize = 2;

/// The diff of a call as rows; `None` for a call that does not change files itself. With a workspace, the new
/// content of a file is compared with its current content.
pub(crate) fn rows(name: &str, arguments: &Value, workspace: Option<&Path>) -> Option<Vec<StyledLine>> {
    let text = |keys: &[&str]| keys.iter().find_map(|key| arguments.get(key).and_then(Value::as_str));
    match name {
        "edit_file" => {
            let (old, new) = (text(&["old", "old_string"])?, text(&["new", "new_string"])?);
            let path = text(&["path"])?;
            let all = arguments.get("all").and_then(Value::as_bool).unwrap_or_default();
            let around =
                workspace.and_then(|workspace| edited(&current_content(workspace, path)?, old, new, all));
            let (old, new) = around.unwrap_or_else(|| (old.to_owned(), new.to_owned()));
            Some(with_heading(path, differences(&old, &new)))
        }
        "write_file" => {
            let (path, new) = (text(&["path"])?, text(&["content"])?);
            let old = workspace.and_then(|workspace| current_content(workspace, path)).unwrap_or_default();
            Some(with_heading(path, differences(&old, new)))
        }
        "apply_patch" => Some(text(&["patch", "input"])?.lines().map(patch_line).collect()),
        _ => None,
    }
}

fn with_heading(path: &str, rows: Vec<StyledLine>) -> Vec<StyledLine> {
    [StyledLine::styled(Style::Bold, path)].into_iter().chain(rows).collect()
}

fn differences(old: &str, new: &str) -> Vec<StyledLine> {
    let diff = TextDiff::from_lines(old, new);
    let mut rows = Vec::new();
    for (index, group) in diff.grouped_ops(AROUND).iter().enumerate() {
        if index > 0 {
            rows.push(StyledLine::styled(Style::Dim, "  …"));
        }
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let (sign, style) = match change.tag() {
                ChangeTag::Delete => ("- ", Style::Bad),
                ChangeTag::Insert => ("+ ", Style::Good),
                ChangeTag::Equal => ("  ", Style::Dim),
            };
            rows.push(
                StyledLine::styled(style, sign).and(style, change.value().trim_end_matches(['\n', '\r'])),
            );
        }
    }
    rows
}

fn patch_line(line: &str) -> StyledLine {
    let style = match line.as_bytes().first() {
        Some(b'+') => Style::Good,
        Some(b'-') => Style::Bad,
        Some(b'*') => Style::Bold,
        _ => Style::Dim,
    };
    StyledLine::styled(style, line)
}

/// The file before and after an edit, so that complete lines and their context can be shown; `None` if the
/// edit does not apply to the current content.
fn edited(file: &str, old: &str, new: &str, all: bool) -> Option<(String, String)> {
    let places = if old.is_empty() { 0 } else { file.matches(old).count() };
    let fits = places == 1 || (all && places > 0);
    fits.then(|| (file.to_owned(), file.replace(old, new)))
}

/// The current content of a file; `None` if it cannot be compared.
fn current_content(workspace: &Path, path: &str) -> Option<String> {
    let path = workspace.join(path);
    let file = std::fs::metadata(&path).ok().filter(|file| file.is_file() && file.len() <= COMPARED_BYTES);
    file.and_then(|_| std::fs::read_to_string(path).ok())
}
