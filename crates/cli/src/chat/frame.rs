//! Rendering of the chat: the area below the scrollback, as a pure function of the state and the terminal
//! size.

use std::time::Duration;

use super::commands::TABLE;
use super::question_queue::FreeTextPurpose;
use super::state::{AnswerStage, ChatState, OpenQuestion, QuestionSubject};
use crate::ui::format;
use crate::ui::line::{Style, StyledLine};

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
    pub(crate) rows: Vec<StyledLine>,
    pub(crate) cursor: (usize, usize),
}

/// Renders the area for a terminal of this size.
pub(crate) fn draw(state: &ChatState, columns: usize, rows: usize, now: Duration) -> Frame {
    let columns = columns.max(8);
    let mut above: Vec<StyledLine> = Vec::new();
    if let Some(view) = &state.view {
        let passed = now.saturating_sub(state.begun);
        above.extend(view.render_progress(columns, rows, passed, state.cancelled.is_some()));
    }
    if state.stopped.is_some() && state.cancelled.is_none() {
        let text = "  stopping the turn; esc again cancels the task";
        above.extend(StyledLine::of(Style::Warning, text).broken(columns, "  "));
    }
    let waiting = state.queue.iter().take(QUEUED_ROWS);
    above.extend(waiting.map(|errand| {
        let text = format!("  queued: {}", format::one_line(&errand.shown(), 400));
        StyledLine::of(Style::Dim, &text).cut(columns)
    }));
    let more = state.queue.len().saturating_sub(QUEUED_ROWS);
    if more > 0 {
        above.push(StyledLine::of(Style::Dim, &format!("  and {more} more")));
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

fn input(state: &ChatState, columns: usize) -> (Vec<StyledLine>, (usize, usize)) {
    let laid = state.editor.layout(columns.saturating_sub(3));
    let first = laid.cursor.0.saturating_sub(INPUT_ROWS - 1);
    let mut rows: Vec<StyledLine> = match &state.wanted {
        Some(FreeTextPurpose::Answer(question)) => free_text_question(state, question, columns),
        Some(FreeTextPurpose::WhatNow) => free_text_question(state, "stopped: what now?", columns),
        None => Vec::new(),
    };
    let above = rows.len();
    for (index, row) in laid.rows.iter().enumerate().skip(first).take(INPUT_ROWS) {
        let lead = if index == 0 { "> " } else { "  " };
        rows.push(StyledLine::of(Style::Accent, lead).and(Style::Plain, row));
    }
    let cursor = (above + laid.cursor.0 - first, laid.cursor.1 + 2);
    for (index, candidate) in state.completion.candidates.iter().enumerate() {
        let style = if index == 0 { Style::Plain } else { Style::Dim };
        let hint = if index == 0 { "   tab" } else { "" };
        let entry = TABLE.iter().find(|entry| entry.name == candidate.trim_end());
        let row = match entry {
            Some(entry) => {
                StyledLine::of(style, &format!("    {:<10}", entry.name)).and(Style::Dim, entry.help)
            }
            None => StyledLine::of(style, &format!("    {candidate}")),
        };
        rows.push(row.with_right(StyledLine::of(Style::Dim, hint.trim_start()), columns.min(WIDE)));
    }
    let below = match (&state.wanted, state.leaving, state.view.is_some()) {
        (Some(FreeTextPurpose::WhatNow), ..) => {
            "  type a message, or enter to continue · esc cancels the task"
        }
        (Some(FreeTextPurpose::Answer(_)), ..) => "  enter sends · esc stops the turn",
        (None, Some(_), false) => "  ctrl-c again exits",
        (None, _, true) => "",
        (None, None, false) => state.standing.as_str(),
    };
    if !below.is_empty() && state.completion.candidates.is_empty() {
        let below = StyledLine::of(Style::Dim, below);
        match state.wanted {
            // Key hints for a pending question are never truncated.
            Some(_) => rows.extend(below.broken(columns, "  ")),
            None => rows.push(below.cut(columns)),
        }
    }
    (rows, cursor)
}

/// The question that waits for a free-text answer, above the input.
fn free_text_question(state: &ChatState, question: &str, columns: usize) -> Vec<StyledLine> {
    let mut lines = question.trim().lines();
    let first = format!(" {}", lines.next().unwrap_or_default());
    let first = StyledLine::of(Style::Warning, state.glyphs.question).and(Style::Bold, &first);
    let more = lines.take(QUESTION_ROWS).map(|line| StyledLine::of(Style::Bold, &format!("  {line}")));
    [first].into_iter().chain(more).flat_map(|line| line.broken(columns, "  ")).collect()
}

fn question(state: &ChatState, asked: &OpenQuestion, columns: usize) -> (Vec<StyledLine>, (usize, usize)) {
    let (head, reason, choices) = match &asked.matter {
        QuestionSubject::Call(question) => (
            format!(" {}", question.name),
            question.reason.as_str(),
            "y once · s this conversation · a always · n no",
        ),
        QuestionSubject::Undo(_) => (" undo these changes?".to_owned(), "", "y yes · n no"),
        QuestionSubject::Return(_) => {
            (" this run was interrupted: resume it?".to_owned(), "", "y yes · n no")
        }
    };
    let lead = StyledLine::of(Style::Warning, state.glyphs.question).and(Style::Bold, &head);
    let mut rows = lead.and(Style::Dim, &format!("  {reason}")).broken(columns, "    ");
    // Rows are wrapped, not truncated: the user must see everything they approve.
    let indented =
        |row: &StyledLine| StyledLine::of(Style::Plain, "    ").join(row.clone()).broken(columns, "      ");
    rows.extend(asked.rows.iter().flat_map(indented));
    if matches!(&asked.matter, QuestionSubject::Call(question) if question.name.starts_with("shell")) {
        rows.extend(
            StyledLine::of(Style::Dim, "    ").and(Style::Dim, state.confined).broken(columns, "    "),
        );
    }
    match &asked.stage {
        AnswerStage::Choosing => {
            let lead = match asked.matter {
                QuestionSubject::Call(_) => StyledLine::of(Style::Bold, "  allow? "),
                QuestionSubject::Return(_) | QuestionSubject::Undo(_) => StyledLine::of(Style::Plain, "  "),
            };
            rows.extend(lead.and(Style::Plain, choices).broken(columns, "    "));
            let at = rows.last().map_or(0, StyledLine::width).min(columns.saturating_sub(1));
            let row = rows.len() - 1;
            (rows, (row, at))
        }
        AnswerStage::Reason(editor) => {
            rows.push(StyledLine::of(Style::Dim, "  reason for no (enter sends, esc back):").cut(columns));
            let laid = editor.layout(columns.saturating_sub(5));
            let first = rows.len();
            rows.extend(
                laid.rows.iter().map(|row| StyledLine::of(Style::Accent, "  > ").and(Style::Plain, row)),
            );
            (rows, (first + laid.cursor.0, laid.cursor.1 + 4))
        }
    }
}
