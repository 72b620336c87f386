//! What the conversation in a terminal is at any moment, and what keys and events make of it. Nothing is done here:
//! what is to be done comes out as [`Effect`]s, for the driver in [`super::terminal`]. How it looks is [`super::frame`]'s.

mod keys;
mod question;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::time::Duration;

use fusee_engine::approval::{Answer, Question};
use fusee_engine::journal::Stamped;

use super::commands::{Errand, Said, Slash, understand};
use super::complete::{self, Completion, Offer};
use super::desk::Wanted;
use super::editor::Editor;
use super::past::Past;
use crate::face::Plan;
use crate::face::line::{Line, Style};
use crate::face::terminal::{Glyphs, View};

pub(crate) use question::{Allowed, Asked, Matter, Stage, asked_about};

#[cfg(test)]
mod tests;

/// Messages that wait for their turn; one more stays in the input.
const QUEUE: usize = 32;

/// A second ctrl-c within this time means it.
const IMPATIENCE: Duration = Duration::from_secs(2);

/// Rows that wait to be printed; a terminal that is slower than this loses the oldest, which the journal has.
const PRINTED: usize = 20_000;

/// What is to be done.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Effect {
    /// Begin a run.
    Begin(Errand),
    /// Answer a command.
    Command(Slash),
    /// Stop the turn; the task goes on as the person says.
    StopTurn,
    /// Stop the task.
    Cancel,
    /// Say this to whoever wants words.
    Say(String),
    /// Answer the question that waits.
    Answer(Answer),
    /// Keep the answer to this for the project.
    Keep(Question),
    /// Let another program edit what is typed.
    Edit,
    /// Leave.
    Leave,
}

/// The conversation.
pub(crate) struct State {
    pub(super) glyphs: &'static Glyphs,
    pub(super) workspace: PathBuf,
    pub(super) editor: Editor,
    pub(super) past: Past,
    pub(super) queue: VecDeque<Errand>,
    /// The task under way.
    pub(super) view: Option<View>,
    /// Since when, by the conversation's clock.
    pub(super) begun: Duration,
    pub(super) question: Option<Asked>,
    allowed: Allowed,
    /// What the run wants words for.
    pub(super) wanted: Option<Wanted>,
    /// When the turn was told to stop; none once it has.
    pub(super) stopped: Option<Duration>,
    /// When the task was told to stop.
    pub(super) cancelled: Option<Duration>,
    /// When a person first asked to leave.
    pub(super) leaving: Option<Duration>,
    pub(super) completion: Completion,
    /// What `/task` could run, as long as that is being typed.
    offers: Option<Vec<Offer>>,
    /// What holds commands, for whoever is asked about one.
    pub(super) confined: &'static str,
    /// Facts that stand below the input while nothing runs.
    pub(super) standing: String,
    printed: Vec<Line>,
}

impl State {
    pub(crate) fn new(glyphs: &'static Glyphs, workspace: PathBuf, past: Past) -> Self {
        Self {
            glyphs,
            workspace,
            editor: Editor::default(),
            past,
            queue: VecDeque::new(),
            view: None,
            begun: Duration::ZERO,
            question: None,
            allowed: Allowed::default(),
            wanted: None,
            stopped: None,
            cancelled: None,
            leaving: None,
            completion: Completion::default(),
            offers: None,
            confined: "",
            standing: String::new(),
            printed: Vec::new(),
        }
    }

    /// What stands below the input.
    pub(crate) fn stand(&mut self, facts: String) {
        self.standing = facts;
    }

    /// What is being typed.
    pub(crate) fn typed(&self) -> &str {
        self.editor.text()
    }

    /// Puts something else there.
    pub(crate) fn retype(&mut self, text: &str) {
        self.editor = Editor::of(text);
    }

    /// Whether a task is under way.
    pub(crate) fn is_working(&self) -> bool {
        self.view.is_some()
    }

    /// Prints rows above all that changes.
    pub(crate) fn print(&mut self, rows: Vec<Line>) {
        self.printed.extend(rows);
        let lost = self.printed.len().saturating_sub(PRINTED);
        self.printed.drain(..lost);
    }

    /// Says something about the conversation itself.
    pub(crate) fn tell(&mut self, style: Style, text: &str) {
        self.print(text.lines().map(|line| Line::of(style, line)).collect());
    }

    /// The rows that are done since the last time, fit for so many columns.
    pub(crate) fn done(&mut self, columns: usize) -> Vec<Line> {
        let printed = std::mem::take(&mut self.printed);
        let mut rows: Vec<Line> = printed.into_iter().flat_map(|row| row.broken(columns, "  ")).collect();
        if let Some(view) = &mut self.view {
            rows.extend(view.done(columns));
        }
        rows
    }

    /// A task began.
    pub(crate) fn began(&mut self, plan: Plan, now: Duration) {
        self.view = Some(View::of_message(plan, self.glyphs));
        (self.begun, self.leaving) = (now, None);
        self.nothing_stands();
    }

    /// Something happened in it.
    pub(crate) fn take(&mut self, event: &Stamped, now: Duration) {
        if let Some(view) = &mut self.view {
            view.take(event, now.saturating_sub(self.begun));
        }
    }

    /// It ended: its last rows are printed, and the next message that waits begins.
    pub(crate) fn ended(&mut self, columns: usize) -> Vec<Effect> {
        if let Some(mut view) = self.view.take() {
            let rows = view.done(columns);
            self.print(rows);
            self.print(vec![Line::new()]);
        }
        self.question = None;
        self.nothing_stands();
        self.next()
    }

    fn nothing_stands(&mut self) {
        (self.wanted, self.stopped, self.cancelled) = (None, None, None);
    }

    /// What could not be done leaves nothing under way.
    pub(crate) fn next(&mut self) -> Vec<Effect> {
        match self.queue.pop_front() {
            Some(errand) if self.view.is_none() => vec![Effect::Begin(errand)],
            Some(errand) => {
                self.queue.push_front(errand);
                Vec::new()
            }
            None => Vec::new(),
        }
    }

    /// A run asks.
    pub(crate) fn ask(&mut self, question: Question, now: Duration) -> Vec<Effect> {
        if self.allowed.covers(&question) {
            return vec![Effect::Answer(Answer::yes())];
        }
        self.question = Some(Asked::about_call(question, &self.workspace, now));
        Vec::new()
    }

    /// A run wants words. After a stop those that wait already are meant, as they were typed to be heard next.
    pub(crate) fn want(&mut self, wanted: Wanted) -> Vec<Effect> {
        if wanted == Wanted::WhatNow {
            self.stopped = None;
            if let Some(Errand::Words(words)) = self.queue.front().cloned() {
                self.queue.pop_front();
                return vec![Effect::Say(words)];
            }
        }
        self.wanted = Some(wanted);
        Vec::new()
    }

    /// Asks whether to go on with a run that was cut off.
    pub(crate) fn ask_return(&mut self, run: String, title: &str, now: Duration) {
        self.question = Some(Asked::about_return(run, title, now));
    }

    /// Asks whether what a run changed is to be taken back.
    pub(crate) fn ask_undo(&mut self, run: String, rows: Vec<Line>, now: Duration) {
        self.question = Some(Asked::about_undo(run, rows, now));
    }

    /// What was typed is meant.
    fn submit(&mut self) -> Vec<Effect> {
        match understand(self.editor.text()) {
            Said::Nothing if self.wanted == Some(Wanted::WhatNow) => {
                self.wanted = None;
                vec![Effect::Say(String::new())]
            }
            Said::Nothing => Vec::new(),
            Said::Errand(Errand::Words(words)) if self.wanted.is_some() => {
                self.accept();
                self.wanted = None;
                vec![Effect::Say(words)]
            }
            Said::Errand(_) if self.queue.len() >= QUEUE => {
                self.tell(Style::Warning, "too many messages wait already; this one stays in the input");
                Vec::new()
            }
            Said::Errand(errand) => {
                self.accept();
                self.queue.push_back(errand);
                self.next()
            }
            Said::Command(slash) => {
                // What is answered stands under what was asked, also far up in the scrollback.
                let asked = format!("> {}", self.editor.text().trim());
                self.tell(Style::Dim, &asked);
                self.accept();
                match slash {
                    Slash::Quit => vec![Effect::Leave],
                    Slash::Resume(_) | Slash::New | Slash::Undo(_) | Slash::PlanEdit(_)
                        if self.is_working() =>
                    {
                        self.tell(
                            Style::Warning,
                            "a task is under way: wait for its end, or end it with esc twice",
                        );
                        Vec::new()
                    }
                    slash => vec![Effect::Command(slash)],
                }
            }
            Said::Unknown(problem) => {
                self.tell(Style::Warning, &problem);
                Vec::new()
            }
        }
    }

    fn accept(&mut self) {
        let typed = self.editor.take();
        self.past.add(typed.trim_end());
        self.completion = Completion::default();
    }

    /// Nothing more will be typed: what stands in the input is kept, and those messages that wait are counted.
    pub(crate) fn leave(&mut self) -> usize {
        if !self.editor.is_empty() {
            self.accept();
        }
        self.queue.len()
    }

    /// Stops the turn that runs, then its task, then what is typed, then all.
    fn interrupt(&mut self, now: Duration) -> Vec<Effect> {
        let soon = |at: Option<Duration>| at.is_some_and(|at| now.saturating_sub(at) < IMPATIENCE);
        if self.is_working() {
            if soon(self.cancelled) {
                return vec![Effect::Leave];
            }
            let wanted = self.wanted.take();
            let turn_runs = wanted != Some(Wanted::WhatNow) && self.cancelled.is_none();
            if turn_runs && !soon(self.stopped) {
                self.stopped = Some(now);
                return vec![Effect::StopTurn];
            }
            self.cancelled = Some(now);
            return vec![Effect::Cancel];
        }
        if !self.editor.is_empty() {
            // It can be had again from what was typed before.
            self.accept();
            return Vec::new();
        }
        if soon(self.leaving) {
            return vec![Effect::Leave];
        }
        self.leaving = Some(now);
        Vec::new()
    }

    /// Whether a hint stands that goes by itself.
    pub(crate) fn is_hinting(&self) -> bool {
        self.leaving.is_some()
    }

    /// Time has passed: a hint that stood for so long goes.
    pub(crate) fn rest(&mut self, now: Duration, hint: Duration) {
        self.leaving = self.leaving.filter(|at| now.saturating_sub(*at) < hint);
    }

    fn look_for_completions(&mut self) {
        let offers = self.offers.as_deref().unwrap_or_default();
        self.completion = complete::candidates(self.editor.before(), &self.workspace, offers);
    }

    /// Whether it should be told what `/task` could run. That is looked up anew each time somebody begins to type it,
    /// since files change.
    pub(crate) fn wants_offers(&mut self) -> bool {
        let typing = self.editor.text().starts_with("/task ");
        if !typing {
            self.offers = None;
        }
        typing && self.offers.is_none()
    }

    /// Tells it.
    pub(crate) fn offer(&mut self, offers: Vec<Offer>) {
        self.offers = Some(offers);
        self.look_for_completions();
    }

    /// Tells what holds commands.
    pub(crate) fn confine(&mut self, how: &'static str) {
        self.confined = how;
    }
}
