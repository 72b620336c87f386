//! Questions that wait for the user. A subject that does not fit on the screen is scrolled, and can be allowed
//! only once its end was on the screen.

use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use fusee::engine::approval::{ApprovalExtent, ApprovalQuestion};

use crate::chat::commands::TurnTarget;
use crate::chat::editor::Editor;
use crate::ui::approval_prompt;
use crate::ui::line::{Style, StyledLine};

/// Rows of the screen that a question needs besides its subject.
const OTHER_ROWS: usize = 10;

/// Minimum number of rows that show the subject.
const FEWEST_ROWS: usize = 3;

/// Keys within this time after a question appeared still belong to the input.
const KEY_GRACE: Duration = Duration::from_millis(400);

/// A question on the screen that the user has not answered yet.
#[derive(Debug)]
pub(crate) struct OpenQuestion {
    pub(crate) subject: QuestionSubject,
    /// The subject of the question, rendered.
    pub(crate) rows: Vec<StyledLine>,
    pub(crate) stage: AnswerStage,
    /// What a lasting answer covers.
    pub(crate) extent: ApprovalExtent,
    /// First visible row of the subject.
    top: usize,
    /// Whether the end of the subject has been on the screen.
    read: bool,
    at: Duration,
}

/// The visible part of a question's subject.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SubjectWindow {
    pub(crate) rows: Vec<StyledLine>,
    /// Visible rows, counted from 0, and their total.
    pub(crate) shown: Range<usize>,
    pub(crate) total: usize,
}

/// What the user is asked to decide.
#[derive(Debug)]
pub(crate) enum QuestionSubject {
    /// Whether a call may run.
    Call(ApprovalQuestion),
    /// Whether to resume an interrupted run.
    Return(String),
    /// Whether to undo the changes of a run.
    Undo(String),
    /// Whether to go back to a turn of a run.
    Rewind(TurnTarget),
    /// Whether to carry out the plan.
    Plan,
}

/// Progress of the answer.
#[derive(Debug)]
pub(crate) enum AnswerStage {
    Choosing,
    /// The answer is no; the user is typing the reason.
    Reason(Editor),
}

impl OpenQuestion {
    fn new(subject: QuestionSubject, rows: Vec<StyledLine>, at: Duration) -> Self {
        let (stage, extent) = (AnswerStage::Choosing, ApprovalExtent::Shown);
        Self { subject, rows, stage, extent, top: 0, read: false, at }
    }

    pub(crate) fn about_call(question: ApprovalQuestion, workspace: &Path, now: Duration) -> Self {
        let rows = approval_prompt::subject(&question.name, &question.arguments, Some(workspace));
        Self::new(QuestionSubject::Call(question), rows, now)
    }

    pub(crate) fn about_return(run: String, title: &str, now: Duration) -> Self {
        Self::new(QuestionSubject::Return(run), vec![StyledLine::styled(Style::Plain, title)], now)
    }

    pub(crate) fn about_undo(run: String, rows: Vec<StyledLine>, now: Duration) -> Self {
        Self::new(QuestionSubject::Undo(run), rows, now)
    }

    pub(crate) fn about_rewind(target: TurnTarget, rows: Vec<StyledLine>, now: Duration) -> Self {
        Self::new(QuestionSubject::Rewind(target), rows, now)
    }

    pub(crate) fn about_plan(now: Duration) -> Self {
        Self::new(QuestionSubject::Plan, Vec::new(), now)
    }

    /// The part of the subject that fits on a screen of this size. Rows are wrapped, never cut.
    pub(crate) fn window(&self, (columns, rows): (usize, usize)) -> SubjectWindow {
        let indented = |row: &StyledLine| {
            StyledLine::styled(Style::Plain, "    ").join(row.clone()).broken(columns, "      ")
        };
        let all: Vec<StyledLine> = self.rows.iter().flat_map(indented).collect();
        let (total, height) = (all.len(), rows.saturating_sub(OTHER_ROWS).max(FEWEST_ROWS));
        let top = self.top.min(total.saturating_sub(height));
        let shown = top..total.min(top + height);
        SubjectWindow { rows: all[shown.clone()].to_vec(), shown, total }
    }

    /// Scrolls the subject by some rows.
    pub(crate) fn scroll(&mut self, by: isize, size: (usize, usize)) {
        let window = self.window(size);
        let last = window.total.saturating_sub(window.rows.len());
        self.top = window.shown.start.saturating_add_signed(by).min(last);
        self.read |= self.top == last;
    }

    /// Whether the end of the subject is, or has been, on the screen.
    pub(crate) fn is_read(&self, size: (usize, usize)) -> bool {
        let window = self.window(size);
        self.read || window.shown.end == window.total
    }

    /// Switches between what was shown and a wider extent, if there is one.
    pub(crate) fn toggle_extent(&mut self) {
        let QuestionSubject::Call(question) = &self.subject else { return };
        let other = approval_prompt::toggled(self.extent);
        if approval_prompt::covers(question, other).is_some() {
            self.extent = other;
        }
    }

    /// Whether the question has been visible long enough for a key to be an answer.
    pub(crate) fn is_seen(&self, now: Duration) -> bool {
        now.saturating_sub(self.at) >= KEY_GRACE
    }
}
