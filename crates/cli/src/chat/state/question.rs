//! Questions that wait for the user, and the calls approved for the rest of the chat.

use std::collections::HashSet;
use std::path::Path;
use std::time::Duration;

use fusee::engine::approval::ApprovalQuestion;
use serde_json::Value;

use crate::chat::editor::Editor;
use crate::ui::call_diff;
use crate::ui::format;
use crate::ui::line::{Style, StyledLine};

/// Maximum number of rows that show the subject of a question; more are only counted.
const SHOWN_ROWS: usize = 16;

/// Keys within this time after a question appeared still belong to the input.
const SETTLES: Duration = Duration::from_millis(400);

/// An open question.
#[derive(Debug)]
pub(crate) struct OpenQuestion {
    pub(crate) matter: QuestionSubject,
    /// The subject of the question, rendered.
    pub(crate) rows: Vec<StyledLine>,
    pub(crate) stage: AnswerStage,
    at: Duration,
}

/// The subject of a question.
#[derive(Debug)]
pub(crate) enum QuestionSubject {
    /// Whether a call may run.
    Call(ApprovalQuestion),
    /// Whether to resume an interrupted run.
    Return(String),
    /// Whether to undo the changes of a run.
    Undo(String),
}

/// Progress of the answer.
#[derive(Debug)]
pub(crate) enum AnswerStage {
    Choosing,
    /// The answer is no; the user is typing the reason.
    Reason(Editor),
}

impl OpenQuestion {
    pub(crate) fn about_call(question: ApprovalQuestion, workspace: &Path, now: Duration) -> Self {
        let rows = is_remembered(&question, workspace);
        Self { rows, matter: QuestionSubject::Call(question), stage: AnswerStage::Choosing, at: now }
    }

    pub(crate) fn about_return(run: String, title: &str, now: Duration) -> Self {
        let rows = vec![StyledLine::of(Style::Plain, title)];
        Self { rows, matter: QuestionSubject::Return(run), stage: AnswerStage::Choosing, at: now }
    }

    pub(crate) fn about_undo(run: String, mut rows: Vec<StyledLine>, now: Duration) -> Self {
        shorten(&mut rows);
        Self { rows, matter: QuestionSubject::Undo(run), stage: AnswerStage::Choosing, at: now }
    }

    /// Whether the question has been visible long enough for a key to be an answer.
    pub(crate) fn is_seen(&self, now: Duration) -> bool {
        now.saturating_sub(self.at) >= SETTLES
    }
}

/// Renders the effect of a call: file changes as a diff, a command verbatim.
pub(crate) fn is_remembered(question: &ApprovalQuestion, workspace: &Path) -> Vec<StyledLine> {
    let mut rows = call_diff::rows(&question.name, &question.arguments, Some(workspace))
        .unwrap_or_else(|| whole(question));
    shorten(&mut rows);
    rows
}

fn shorten(rows: &mut Vec<StyledLine>) {
    let more = rows.len().saturating_sub(SHOWN_ROWS);
    if more > 0 {
        rows.truncate(SHOWN_ROWS);
        rows.push(StyledLine::of(Style::Dim, &format!("… {}", format::count(more as u64, "more line"))));
    }
}

fn whole(question: &ApprovalQuestion) -> Vec<StyledLine> {
    let text = match question.arguments.get("command").and_then(Value::as_str) {
        Some(command) => command.to_owned(),
        None => format::summarize_arguments(&question.name, &question.arguments),
    };
    text.lines().map(|line| StyledLine::of(Style::Plain, line)).collect()
}

/// Approvals for the rest of the chat: a command with its exact arguments, any other tool by name.
#[derive(Debug, Default)]
pub(crate) struct ChatApprovals(HashSet<(String, Option<String>)>);

impl ChatApprovals {
    pub(crate) fn add(&mut self, question: &ApprovalQuestion) {
        self.0.insert(key(question));
    }

    pub(crate) fn covers(&self, question: &ApprovalQuestion) -> bool {
        self.0.contains(&key(question))
    }
}

fn key(question: &ApprovalQuestion) -> (String, Option<String>) {
    // The same command in another directory or with other input is a different one.
    let whole = question.name.starts_with("shell").then(|| question.arguments.to_string());
    (question.name.clone(), whole)
}
