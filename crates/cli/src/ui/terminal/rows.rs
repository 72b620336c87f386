//! Multi-row layout: the diff of a call, and text with indented continuation rows.

use std::path::Path;

use serde_json::Value;

use crate::ui::call_diff;
use crate::ui::line::{Style, StyledLine, wrap};

/// Maximum rows of a diff shown with its call.
const CHANGE_LINES: usize = 14;

/// The first rows of a call's diff; `whole` is appended to the row that counts the remaining ones.
pub(super) fn shown_change(
    name: &str,
    arguments: &Value,
    workspace: Option<&Path>,
    whole: &str,
) -> Vec<StyledLine> {
    let mut rows = call_diff::rows(name, arguments, workspace).unwrap_or_default();
    let more = rows.len().saturating_sub(CHANGE_LINES);
    if more > 1 {
        rows.truncate(CHANGE_LINES);
        rows.push(StyledLine::styled(Style::Dim, &format!("… {more} more lines{whole}")));
    }
    // The call's own row already names the path.
    if name == "apply_patch" || rows.is_empty() { rows } else { rows.split_off(1) }
}

/// Wraps text: the first row follows `first`, the others are indented.
pub(super) fn indented(
    text: &str,
    style: Style,
    indent: &'static str,
    first: StyledLine,
    columns: usize,
) -> Vec<StyledLine> {
    let lead = if first == StyledLine::new() { StyledLine::styled(Style::Plain, indent) } else { first };
    let room = columns.saturating_sub(indent.len()).max(1);
    let mut rows = wrap(text, room).into_iter();
    let mut lines: Vec<StyledLine> = rows.next().map(|row| lead.and(style, &row)).into_iter().collect();
    lines.extend(rows.map(|row| StyledLine::styled(Style::Plain, indent).and(style, &row)));
    lines.into_iter().map(|line| line.cut(columns)).collect()
}
