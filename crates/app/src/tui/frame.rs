//! Rendering of the chat: the area below the scrollback, as a pure function of the state and the terminal
//! size.

use std::time::Duration;

use super::commands::TABLE;
use super::desk::Wanted;
use super::state::{Asked, Matter, Stage, State};
use crate::face::line::{Line, Style};
use crate::face::words;

#[cfg(test)]
mod tests;

/// Maximum visible rows of the input.
const INPUT_ROWS: usize = 8;

/// Maximum column of right-aligned text.
const WIDE: usize = 100;

/// Maximum number of lines of a model's question after the first.
const QUESTION_ROWS: usize = 8;

/// Maximum number of queued messages that are shown; more are only counted.
const QUEUED_ROWS: usize = 3;

/// The rows of the area, and the cursor's (row, column) in it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) rows: Vec<Line>,
    pub(crate) cursor: (usize, usize),
}

/// Renders the area for a terminal of this size.
pub(crate) fn draw(state: &State, columns: usize, rows: usize, now: Duration) -> Frame {
    let columns = columns.max(8);
    let mut above: Vec<Line> = Vec::new();
    if let Some(view) = &state.view {
        let passed = now.saturating_sub(state.begun);
        above.extend(view.area(columns, rows, passed, state.cancelled.is_some()));
    }
    if state.stopped.is_some() && state.cancelled.is_none() {
        let text = "  stopping the turn; esc again cancels the task";
        above.extend(Line::of(Style::Warning, text).broken(columns, "  "));
    }
    let waiting = state.queue.iter().take(QUEUED_ROWS);
    above.extend(waiting.map(|errand| {
        let text = format!("  queued: {}", words::one_line(&errand.shown(), 400));
        Line::of(Style::Dim, &text).cut(columns)
    }));
    let more = state.queue.len().saturating_sub(QUEUED_ROWS);
    if more > 0 {
        above.push(Line::of(Style::Dim, &format!("  and {more} more")));
    }
    let (typing, cursor) = match &state.question {
        Some(asked) => question(state, asked, columns),
        None => input(state, columns),
    };
    // In a short terminal the input wins.
    let most = rows.saturating_sub(1).max(1);
    let room = most.saturating_sub(typing.len());
    let mut all = above.split_off(above.len().saturating_sub(room));
    let cursor = (all.len() + cursor.0, cursor.1);
    all.extend(typing);
    let skipped = all.len().saturating_sub(most);
    Frame { rows: all.split_off(skipped), cursor: (cursor.0.saturating_sub(skipped), cursor.1) }
}

fn input(state: &State, columns: usize) -> (Vec<Line>, (usize, usize)) {
    let laid = state.editor.lay(columns.saturating_sub(3));
    let first = laid.cursor.0.saturating_sub(INPUT_ROWS - 1);
    let mut rows: Vec<Line> = match &state.wanted {
        Some(Wanted::Answer(question)) => asks(state, question, columns),
        Some(Wanted::WhatNow) => asks(state, "stopped: what now?", columns),
        None => Vec::new(),
    };
    let above = rows.len();
    for (index, row) in laid.rows.iter().enumerate().skip(first).take(INPUT_ROWS) {
        let lead = if index == 0 { "> " } else { "  " };
        rows.push(Line::of(Style::Accent, lead).and(Style::Plain, row));
    }
    let cursor = (above + laid.cursor.0 - first, laid.cursor.1 + 2);
    for (index, candidate) in state.completion.candidates.iter().enumerate() {
        let style = if index == 0 { Style::Plain } else { Style::Dim };
        let hint = if index == 0 { "   tab" } else { "" };
        let entry = TABLE.iter().find(|entry| entry.name == candidate.trim_end());
        let row = match entry {
            Some(entry) => Line::of(style, &format!("    {:<10}", entry.name)).and(Style::Dim, entry.help),
            None => Line::of(style, &format!("    {candidate}")),
        };
        rows.push(row.with_right(Line::of(Style::Dim, hint.trim_start()), columns.min(WIDE)));
    }
    let below = match (&state.wanted, state.leaving, state.view.is_some()) {
        (Some(Wanted::WhatNow), ..) => "  type a message, or enter to continue · esc cancels the task",
        (Some(Wanted::Answer(_)), ..) => "  enter sends · esc stops the turn",
        (None, Some(_), false) => "  ctrl-c again exits",
        (None, _, true) => "",
        (None, None, false) => state.standing.as_str(),
    };
    if !below.is_empty() && state.completion.candidates.is_empty() {
        let below = Line::of(Style::Dim, below);
        match state.wanted {
            // Key hints for a pending question are never truncated.
            Some(_) => rows.extend(below.broken(columns, "  ")),
            None => rows.push(below.cut(columns)),
        }
    }
    (rows, cursor)
}

/// The question that waits for a free-text answer, above the input.
fn asks(state: &State, question: &str, columns: usize) -> Vec<Line> {
    let mut lines = question.trim().lines();
    let first = format!(" {}", lines.next().unwrap_or_default());
    let first = Line::of(Style::Warning, state.glyphs.question).and(Style::Bold, &first);
    let more = lines.take(QUESTION_ROWS).map(|line| Line::of(Style::Bold, &format!("  {line}")));
    [first].into_iter().chain(more).flat_map(|line| line.broken(columns, "  ")).collect()
}

fn question(state: &State, asked: &Asked, columns: usize) -> (Vec<Line>, (usize, usize)) {
    let (head, reason, choices) = match &asked.matter {
        Matter::Call(question) => (
            format!(" {}", question.name),
            question.reason.as_str(),
            "y once · s this conversation · a always · n no",
        ),
        Matter::Undo(_) => (" undo these changes?".to_owned(), "", "y yes · n no"),
        Matter::Return(_) => (" this run was interrupted: resume it?".to_owned(), "", "y yes · n no"),
    };
    let lead = Line::of(Style::Warning, state.glyphs.question).and(Style::Bold, &head);
    let mut rows = lead.and(Style::Dim, &format!("  {reason}")).broken(columns, "    ");
    // Rows are wrapped, not truncated: the user must see everything they approve.
    let indented = |row: &Line| Line::of(Style::Plain, "    ").join(row.clone()).broken(columns, "      ");
    rows.extend(asked.rows.iter().flat_map(indented));
    if matches!(&asked.matter, Matter::Call(question) if question.name.starts_with("shell")) {
        rows.extend(Line::of(Style::Dim, "    ").and(Style::Dim, state.confined).broken(columns, "    "));
    }
    match &asked.stage {
        Stage::Choosing => {
            let lead = match asked.matter {
                Matter::Call(_) => Line::of(Style::Bold, "  allow? "),
                Matter::Return(_) | Matter::Undo(_) => Line::of(Style::Plain, "  "),
            };
            rows.extend(lead.and(Style::Plain, choices).broken(columns, "    "));
            let at = rows.last().map_or(0, Line::width).min(columns.saturating_sub(1));
            let row = rows.len() - 1;
            (rows, (row, at))
        }
        Stage::Reason(editor) => {
            rows.push(Line::of(Style::Dim, "  reason for no (enter sends, esc back):").cut(columns));
            let laid = editor.lay(columns.saturating_sub(5));
            let first = rows.len();
            rows.extend(laid.rows.iter().map(|row| Line::of(Style::Accent, "  > ").and(Style::Plain, row)));
            (rows, (first + laid.cursor.0, laid.cursor.1 + 4))
        }
    }
}
