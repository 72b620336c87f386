//! Questions that wait for the user, and the calls approved for the rest of the chat.

use std::collections::HashSet;
use std::path::Path;
use std::time::Duration;

use fusee_engine::approval::Question;
use serde_json::Value;

use crate::face::line::{Line, Style};
use crate::face::words;
use crate::tui::change;
use crate::tui::editor::Editor;

/// Maximum number of rows that show the subject of a question; more are only counted.
const SHOWN_ROWS: usize = 16;

/// Keys within this time after a question appeared still belong to the input.
const SETTLES: Duration = Duration::from_millis(400);

/// An open question.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) matter: Matter,
    /// The subject of the question, rendered.
    pub(crate) rows: Vec<Line>,
    pub(crate) stage: Stage,
    at: Duration,
}

/// The subject of a question.
#[derive(Debug)]
pub(crate) enum Matter {
    /// Whether a call may run.
    Call(Question),
    /// Whether to resume an interrupted run.
    Return(String),
    /// Whether to undo the changes of a run.
    Undo(String),
}

/// Progress of the answer.
#[derive(Debug)]
pub(crate) enum Stage {
    Choosing,
    /// The answer is no; the user is typing the reason.
    Reason(Editor),
}

impl Asked {
    pub(crate) fn about_call(question: Question, workspace: &Path, now: Duration) -> Self {
        let rows = asked_about(&question, workspace);
        Self { rows, matter: Matter::Call(question), stage: Stage::Choosing, at: now }
    }

    pub(crate) fn about_return(run: String, title: &str, now: Duration) -> Self {
        let rows = vec![Line::of(Style::Plain, title)];
        Self { rows, matter: Matter::Return(run), stage: Stage::Choosing, at: now }
    }

    pub(crate) fn about_undo(run: String, mut rows: Vec<Line>, now: Duration) -> Self {
        shorten(&mut rows);
        Self { rows, matter: Matter::Undo(run), stage: Stage::Choosing, at: now }
    }

    /// Whether the question has been visible long enough for a key to be an answer.
    pub(crate) fn is_seen(&self, now: Duration) -> bool {
        now.saturating_sub(self.at) >= SETTLES
    }
}

/// Renders the effect of a call: file changes as a diff, a command verbatim.
pub(crate) fn asked_about(question: &Question, workspace: &Path) -> Vec<Line> {
    let mut rows =
        change::rows(&question.name, &question.arguments, Some(workspace)).unwrap_or_else(|| whole(question));
    shorten(&mut rows);
    rows
}

fn shorten(rows: &mut Vec<Line>) {
    let more = rows.len().saturating_sub(SHOWN_ROWS);
    if more > 0 {
        rows.truncate(SHOWN_ROWS);
        rows.push(Line::of(Style::Dim, &format!("… {}", words::count(more as u64, "more line"))));
    }
}

fn whole(question: &Question) -> Vec<Line> {
    let text = match question.arguments.get("command").and_then(Value::as_str) {
        Some(command) => command.to_owned(),
        None => words::gist(&question.name, &question.arguments),
    };
    text.lines().map(|line| Line::of(Style::Plain, line)).collect()
}

/// Approvals for the rest of the chat: a command with its exact arguments, any other tool by name.
#[derive(Debug, Default)]
pub(crate) struct Allowed(HashSet<(String, Option<String>)>);

impl Allowed {
    pub(crate) fn add(&mut self, question: &Question) {
        self.0.insert(key(question));
    }

    pub(crate) fn covers(&self, question: &Question) -> bool {
        self.0.contains(&key(question))
    }
}

fn key(question: &Question) -> (String, Option<String>) {
    // The same command in another directory or with other input is a different one.
    let whole = question.name.starts_with("shell").then(|| question.arguments.to_string());
    (question.name.clone(), whole)
}
