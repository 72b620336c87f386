//! Renders a Markdown table: columns side by side if they fit, with wrapped cells if necessary, otherwise one
//! line per cell.

use unicode_width::UnicodeWidthStr as _;

use crate::ui::line::{Style, StyledLine, wrap};

#[cfg(test)]
mod tests;

/// Column separator.
const BETWEEN: &str = " │ ";

/// Minimum column width; a table that would need narrower columns is rendered as a list.
const NARROWEST: usize = 6;

/// The cells of a table; the first row is the header.
#[derive(Debug, Default)]
pub(super) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Starts a new row.
    pub(super) fn row(&mut self) {
        self.rows.push(Vec::new());
    }

    /// Starts a new cell in the current row.
    pub(super) fn cell(&mut self) {
        if let Some(row) = self.rows.last_mut() {
            row.push(String::new());
        }
    }

    /// Appends text to the current cell.
    pub(super) fn add(&mut self, text: &str) {
        if let Some(cell) = self.rows.last_mut().and_then(|row| row.last_mut()) {
            cell.push_str(text);
        }
    }

    /// Renders the table in at most `columns` terminal columns.
    pub(super) fn lines(&self, columns: usize) -> Vec<StyledLine> {
        let count = self.rows.iter().map(Vec::len).max().unwrap_or_default();
        let mut widths: Vec<usize> = (0..count).map(|at| self.widest(at)).collect();
        let room = columns.saturating_sub(BETWEEN.width() * count.saturating_sub(1));
        if !narrow_columns(&mut widths, room) {
            return self.listed(columns);
        }
        let mut lines = Vec::new();
        for (index, row) in self.rows.iter().enumerate() {
            lines.extend(side_by_side(row, &widths, if index == 0 { Style::Bold } else { Style::Plain }));
            if index == 0 {
                let rules: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
                lines.push(StyledLine::styled(Style::Dim, &rules.join("─┼─")));
            }
        }
        lines
    }

    fn widest(&self, at: usize) -> usize {
        self.rows
            .iter()
            .filter_map(|row| row.get(at))
            .map(|cell| cell.trim().width())
            .max()
            .unwrap_or(0)
            .max(1)
    }

    /// Renders one line per cell, prefixed with the column's name.
    fn listed(&self, columns: usize) -> Vec<StyledLine> {
        let Some((head, rows)) = self.rows.split_first() else { return Vec::new() };
        let mut lines = Vec::new();
        for row in rows {
            if !lines.is_empty() {
                lines.push(StyledLine::new());
            }
            for (at, cell) in row.iter().enumerate().filter(|(_, cell)| !cell.trim().is_empty()) {
                let name = head.get(at).map(|name| name.trim()).filter(|name| !name.is_empty());
                let lead = name.map_or_else(StyledLine::new, |name| {
                    StyledLine::styled(Style::Bold, &format!("{name}: "))
                });
                lines.extend(lead.and(Style::Plain, cell.trim()).broken(columns, "  "));
            }
        }
        lines
    }
}

/// Narrows the widest columns until the total fits into `room`; returns whether that was possible.
fn narrow_columns(widths: &mut [usize], room: usize) -> bool {
    let all: usize = widths.iter().sum();
    let mut over = all.saturating_sub(room);
    while over > 0 {
        let widest = widths.iter().copied().max().unwrap_or_default();
        if widest <= NARROWEST {
            return false;
        }
        // All of the widest columns shrink together, down to the next narrower one.
        let next = widths.iter().copied().filter(|width| *width < widest).max().unwrap_or(0).max(NARROWEST);
        let those = widths.iter().filter(|width| **width == widest).count();
        let step = (widest - next).min(over.div_ceil(those));
        for width in widths.iter_mut().filter(|width| **width == widest) {
            let less = step.min(over);
            (*width, over) = (*width - less, over - less);
        }
    }
    true
}

fn side_by_side(row: &[String], widths: &[usize], style: Style) -> Vec<StyledLine> {
    let cells: Vec<Vec<String>> = widths
        .iter()
        .enumerate()
        .map(|(at, width)| wrap(row.get(at).map_or("", |cell| cell.trim()), *width))
        .collect();
    let height = cells.iter().map(Vec::len).max().unwrap_or_default();
    let line = |n: usize| {
        let mut line = StyledLine::new();
        for (at, (cell, width)) in cells.iter().zip(widths).enumerate() {
            let text = cell.get(n).map_or("", String::as_str);
            let last = at + 1 == widths.len();
            let fill = if last { String::new() } else { " ".repeat(width.saturating_sub(text.width())) };
            line = line.and(style, text).and(Style::Plain, &fill);
            if !last {
                line = line.and(Style::Dim, BETWEEN);
            }
        }
        line
    };
    (0..height).map(line).collect()
}
