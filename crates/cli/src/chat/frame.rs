//! Rendering of the chat: the area below the scrollback, as a pure function of the state and the terminal
//! size.

use std::time::Duration;

use super::commands::TABLE;
use super::history_search::HistorySearch;
use super::question_queue::FreeTextPurpose;
use super::session_picker::{PickerSubject, SessionPicker};
use super::state::{AnswerStage, ChatState, OpenQuestion, QuestionSubject};
use crate::ui::approval_prompt;
use crate::ui::format;
use crate::ui::line::{Style, StyledLine};

#[cfg(test)]
mod tests;

/// Maximum visible rows of the input.
const INPUT_ROWS: usize = 8;

/// Maximum column of right-aligned text.
const MAX_RIGHT_COLUMN: usize = 100;

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
        above.extend(StyledLine::styled(Style::Warning, text).broken(columns, "  "));
    }
    if state.moving {
        let text = "  moving to the background once the current call finishes";
        above.extend(StyledLine::styled(Style::Warning, text).broken(columns, "  "));
    }
    if let Some(line) = &state.shell {
        let text = format!("  running {} · esc to stop", format::one_line(line, 200));
        above.push(StyledLine::styled(Style::Dim, &text).cut(columns));
    }
    let waiting = state.queue.iter().take(QUEUED_ROWS);
    above.extend(waiting.map(|request| {
        let text = format!("  queued: {}", format::one_line(&request.shown(), 400));
        StyledLine::styled(Style::Dim, &text).cut(columns)
    }));
    let more = state.queue.len().saturating_sub(QUEUED_ROWS);
    if more > 0 {
        above.push(StyledLine::styled(Style::Dim, &format!("  and {more} more")));
    }
    let (typing, cursor) = match (&state.picker, &state.search, &state.question) {
        (Some(picker), ..) => choose_session(picker, columns),
        (None, Some(search), _) => search_history(search, columns),
        (None, None, Some(asked)) => question(state, asked, (columns, rows)),
        (None, None, None) => input(state, columns),
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

/// The list of conversations or turns; the cursor is at the chosen one.
fn choose_session(picker: &SessionPicker, columns: usize) -> (Vec<StyledLine>, (usize, usize)) {
    let (title, enter) = match picker.subject {
        PickerSubject::Conversation => ("continue a conversation", "continues"),
        PickerSubject::Turn => ("go back to an earlier point", "shows what would change"),
    };
    let mut rows = vec![StyledLine::styled(Style::Bold, title)];
    let window = picker.window();
    let chosen = 1 + picker.selected - window.start;
    let below = picker.entries.len() - window.end;
    for (index, entry) in picker.entries[window.clone()].iter().enumerate() {
        let is_chosen = window.start + index == picker.selected;
        let (lead, style) = if is_chosen { ("> ", Style::Bold) } else { ("  ", Style::Plain) };
        rows.push(StyledLine::styled(Style::Accent, lead).and(style, &entry.text).cut(columns));
    }
    if below > 0 {
        rows.push(StyledLine::styled(Style::Dim, &format!("  and {below} more: ↓")));
    }
    let keys = format!("  ↑ and ↓ choose · enter {enter} · esc closes");
    rows.push(StyledLine::styled(Style::Dim, &keys).cut(columns));
    (rows, (chosen, 0))
}

/// The search of earlier messages.
fn search_history(search: &HistorySearch, columns: usize) -> (Vec<StyledLine>, (usize, usize)) {
    let lead = StyledLine::styled(Style::Accent, "search: ").and(Style::Plain, &search.query).cut(columns);
    let at = lead.width().min(columns.saturating_sub(1));
    let found = match &search.found {
        Some(message) => StyledLine::styled(Style::Plain, &format!("  {}", format::one_line(message, 400))),
        None if search.query.is_empty() => {
            StyledLine::styled(Style::Dim, "  type part of an earlier message")
        }
        None => StyledLine::styled(Style::Dim, "  no match"),
    };
    let keys = StyledLine::styled(Style::Dim, "  enter accept · ctrl-r older match · esc cancel");
    (vec![lead, found.cut(columns), keys.cut(columns)], (0, at))
}

fn input(state: &ChatState, columns: usize) -> (Vec<StyledLine>, (usize, usize)) {
    let laid = state.editor.layout(columns.saturating_sub(3));
    let first = laid.cursor.0.saturating_sub(INPUT_ROWS - 1);
    let mut rows: Vec<StyledLine> = match &state.free_text {
        Some(FreeTextPurpose::Answer(question)) => free_text_question(state, question, columns),
        Some(FreeTextPurpose::AfterStop) => {
            free_text_question(state, "stopped; what should it do next?", columns)
        }
        None => Vec::new(),
    };
    let above = rows.len();
    for (index, row) in laid.rows.iter().enumerate().skip(first).take(INPUT_ROWS) {
        let lead = if index == 0 { "> " } else { "  " };
        rows.push(StyledLine::styled(Style::Accent, lead).and(Style::Plain, row));
    }
    let cursor = (above + laid.cursor.0 - first, laid.cursor.1 + 2);
    let (window, current) = (state.completion.window(), state.completion.selected.unwrap_or_default());
    let below_window = state.completion.candidates.len() - window.end;
    for index in window {
        let candidate = &state.completion.candidates[index];
        let style = if index == current { Style::Bold } else { Style::Dim };
        let hint = match state.completion.selected {
            Some(selected) if selected == index => "   enter or tab",
            None if index == 0 => "   tab",
            _ => "",
        };
        let entry = TABLE.iter().find(|entry| entry.name == candidate.trim_end());
        let row = match entry {
            Some(entry) => {
                StyledLine::styled(style, &format!("    {:<10}", entry.name)).and(Style::Dim, entry.help)
            }
            None => StyledLine::styled(style, &format!("    {candidate}")),
        };
        rows.push(
            row.with_right(StyledLine::styled(Style::Dim, hint.trim_start()), columns.min(MAX_RIGHT_COLUMN)),
        );
    }
    if below_window > 0 {
        rows.push(StyledLine::styled(Style::Dim, &format!("    and {below_window} more: ↓")));
    }
    let below = match (&state.free_text, state.leaving, state.view.is_some()) {
        (Some(FreeTextPurpose::AfterStop), ..) => {
            "  type a message, or enter to continue · esc cancels the task"
        }
        (Some(FreeTextPurpose::Answer(_)), ..) => "  enter sends · esc stops the turn",
        (None, Some(_), false) => "  ctrl-c again exits",
        (None, None, false) if state.going_back.is_some() => "  esc again goes back to an earlier point",
        (None, _, true) => "",
        (None, None, false) => state.run_facts.as_str(),
    };
    if !below.is_empty() && state.completion.candidates.is_empty() {
        let below = StyledLine::styled(Style::Dim, below);
        match state.free_text {
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
    let first = StyledLine::styled(Style::Warning, state.glyphs.question).and(Style::Bold, &first);
    let more = lines.take(QUESTION_ROWS).map(|line| StyledLine::styled(Style::Bold, &format!("  {line}")));
    [first].into_iter().chain(more).flat_map(|line| line.broken(columns, "  ")).collect()
}

fn question(
    state: &ChatState,
    asked: &OpenQuestion,
    size: (usize, usize),
) -> (Vec<StyledLine>, (usize, usize)) {
    let columns = size.0;
    let (head, reason) = match &asked.subject {
        QuestionSubject::Call(question) => (format!(" {}", question.name), question.reason.as_str()),
        QuestionSubject::Undo(_) => (" undo these changes?".to_owned(), ""),
        QuestionSubject::Rewind(_) => (" go back to this point?".to_owned(), ""),
        QuestionSubject::Plan => (" carry out this plan?".to_owned(), "n keeps planning"),
        QuestionSubject::Return(_) => (" this run was interrupted: resume it?".to_owned(), ""),
    };
    let lead = StyledLine::styled(Style::Warning, state.glyphs.question).and(Style::Bold, &head);
    let mut rows = lead.and(Style::Dim, &format!("  {reason}")).broken(columns, "    ");
    let window = asked.window(size);
    let is_part = window.rows.len() < window.total;
    rows.extend(window.rows);
    if is_part {
        let (first, last) = (window.shown.start + 1, window.shown.end);
        let text = format!("    lines {first} to {last} of {} · space, ↓ and ↑ scroll", window.total);
        rows.extend(StyledLine::styled(Style::Warning, &text).broken(columns, "    "));
    }
    if matches!(&asked.subject, QuestionSubject::Call(question) if question.name.starts_with("shell")) {
        rows.extend(
            StyledLine::styled(Style::Dim, "    ").and(Style::Dim, state.confined).broken(columns, "    "),
        );
    }
    match &asked.stage {
        AnswerStage::Choosing => {
            rows.extend(choices(asked, size).into_iter().flat_map(|row| row.broken(columns, "    ")));
            let at = rows.last().map_or(0, StyledLine::width).min(columns.saturating_sub(1));
            let row = rows.len() - 1;
            (rows, (row, at))
        }
        AnswerStage::Reason(editor) => {
            let hint = "  reason for declining (enter to send, esc to go back):";
            rows.extend(StyledLine::styled(Style::Dim, hint).broken(columns, "    "));
            let laid = editor.layout(columns.saturating_sub(5));
            let first = rows.len();
            rows.extend(
                laid.rows.iter().map(|row| StyledLine::styled(Style::Accent, "  > ").and(Style::Plain, row)),
            );
            (rows, (first + laid.cursor.0, laid.cursor.1 + 4))
        }
    }
}

/// The keys that answer a question. What has not been shown to its end cannot be allowed.
fn choices(asked: &OpenQuestion, size: (usize, usize)) -> Vec<StyledLine> {
    let plain = |text: &str| StyledLine::styled(Style::Plain, text);
    match &asked.subject {
        _ if !asked.is_read(size) => vec![plain("  scroll to the end to allow · n to decline")],
        QuestionSubject::Return(_) | QuestionSubject::Undo(_) | QuestionSubject::Plan => {
            vec![plain("  y yes · n no")]
        }
        QuestionSubject::Rewind(_) => {
            vec![plain("  b files and conversation · f files only · c conversation only · n no")]
        }
        QuestionSubject::Call(question) => {
            let covers = |extent| approval_prompt::covers(question, extent);
            let mut scope = format!("    s and a apply to: {}", covers(asked.extent).unwrap_or_default());
            if let Some(other) = covers(approval_prompt::toggled(asked.extent)) {
                scope.push_str(&format!(" · w changes this to: {other}"));
            }
            let keys = "y once · s this conversation · a always in this project · n no";
            vec![
                StyledLine::styled(Style::Dim, &scope),
                StyledLine::styled(Style::Bold, "  allow? ").and(Style::Plain, keys),
            ]
        }
    }
}
