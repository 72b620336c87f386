//! The state of the chat in a terminal, and its transitions on keys and events. Performs no I/O: actions come
//! out as [`ChatAction`]s for the event loop in [`super::terminal`]. [`super::frame`] renders the state.

mod keys;
mod question;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::time::Duration;

use fusee::engine::approval::rules::{ApprovalRule, ApprovalRules};
use fusee::engine::approval::{ApprovalAnswer, ApprovalQuestion};
use fusee::engine::journal::{Event, EventRecord};
use fusee::engine::rewind::RewindParts;

use super::commands::{InputLine, RunRequest, SlashCommand, TurnTarget, parse_line_in};
use super::complete::{self, Completion, TaskCandidate};
use super::editor::Editor;
use super::history_search::HistorySearch;
use super::input_history::InputHistory;
use super::question_queue::FreeTextPurpose;
use super::session_picker::{PickerEntry, PickerSubject, SessionPicker};
use crate::ui::RunHeader;
use crate::ui::line::{Style, StyledLine};
use crate::ui::terminal::{Glyphs, View};

pub(crate) use question::{AnswerStage, OpenQuestion, QuestionSubject};

#[cfg(test)]
mod tests;

/// Maximum number of queued messages; one more stays in the input.
const MAX_QUEUED: usize = 32;

/// A second ctrl-c within this time escalates the first.
const DOUBLE_PRESS_WINDOW: Duration = Duration::from_secs(2);

/// Maximum number of rows waiting to be printed. A slower terminal loses the oldest, which the journal still
/// has.
const MAX_PENDING_ROWS: usize = 20_000;

/// An action for the event loop.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ChatAction {
    /// Start a run.
    Begin(RunRequest),
    /// Execute a slash command.
    Command(SlashCommand),
    /// Stop the turn; the user then says how the task continues.
    StopTurn,
    /// Cancel the task.
    Cancel,
    /// Send this text to the pending free-text question.
    SendText(String),
    /// Answer the pending approval request.
    Answer(ApprovalAnswer),
    /// Store approvals permanently for the project.
    SaveRules(Vec<ApprovalRule>),
    /// Open the input in the user's editor.
    Edit,
    /// Let the task go on in another process.
    Background,
    /// Run a command of the user's.
    Shell(String),
    /// End the user's command.
    StopShell,
    /// Leave plan mode and carry out the plan.
    CarryOutPlan,
    /// Go back to a turn; the user has confirmed.
    Rewind(TurnTarget, RewindParts),
    /// Insert a mention of the image in the clipboard.
    PasteImage,
    /// Stop the process, as ctrl-z does in a shell.
    Suspend,
    /// Exit the chat.
    Leave,
}

/// Everything on the screen, and the requests still to be sent.
pub(crate) struct ChatState {
    pub(super) glyphs: &'static Glyphs,
    pub(super) workspace: PathBuf,
    pub(super) editor: Editor,
    pub(super) past: InputHistory,
    pub(super) queue: VecDeque<RunRequest>,
    /// The view of the running task.
    pub(super) view: Option<View>,
    /// When the task started, as time since the start of the chat.
    pub(super) begun: Duration,
    pub(super) question: Option<OpenQuestion>,
    /// Answers that hold for the rest of the chat.
    allowed: ApprovalRules,
    /// Columns and rows of the terminal.
    size: (usize, usize),
    /// The pending free-text question of the run.
    pub(super) free_text: Option<FreeTextPurpose>,
    /// When the turn was asked to stop; `None` once it has.
    pub(super) stopped: Option<Duration>,
    /// When the task was cancelled.
    pub(super) cancelled: Option<Duration>,
    /// When the user first pressed ctrl-c to exit.
    pub(super) leaving: Option<Duration>,
    /// When the user first pressed esc to go back to an earlier turn.
    pub(super) going_back: Option<Duration>,
    pub(super) completion: Completion,
    /// The search of earlier messages.
    pub(super) search: Option<HistorySearch>,
    /// The list of conversations.
    pub(super) picker: Option<SessionPicker>,
    /// The command of the user's that is running.
    pub(super) shell: Option<String>,
    /// Whether the task is moving to the background.
    pub(super) moving: bool,
    /// Tasks that `/task` can run; only set while it is being typed.
    offers: Option<Vec<TaskCandidate>>,
    /// Description of the sandbox, shown in questions about commands.
    pub(super) confined: &'static str,
    /// Status line below the input while nothing runs.
    pub(super) run_facts: String,
    printed: Vec<StyledLine>,
}

impl ChatState {
    pub(crate) fn new(glyphs: &'static Glyphs, workspace: PathBuf, past: InputHistory) -> Self {
        Self {
            glyphs,
            workspace,
            editor: Editor::default(),
            past,
            queue: VecDeque::new(),
            view: None,
            begun: Duration::ZERO,
            question: None,
            allowed: ApprovalRules::default(),
            size: (80, 24),
            free_text: None,
            stopped: None,
            cancelled: None,
            leaving: None,
            going_back: None,
            completion: Completion::default(),
            search: None,
            picker: None,
            shell: None,
            moving: false,
            offers: None,
            confined: "",
            run_facts: String::new(),
            printed: Vec::new(),
        }
    }

    /// Takes note of the size of the terminal.
    pub(crate) fn resize(&mut self, columns: usize, rows: usize) {
        self.size = (columns, rows);
    }

    /// Sets the status line below the input.
    pub(crate) fn set_status(&mut self, facts: String) {
        self.run_facts = facts;
    }

    /// The current input.
    pub(crate) fn typed(&self) -> &str {
        self.editor.text()
    }

    /// Replaces the current input.
    pub(crate) fn set_input(&mut self, text: &str) {
        self.editor = Editor::with_text(text);
    }

    /// Whether a task is running.
    pub(crate) fn is_working(&self) -> bool {
        self.view.is_some()
    }

    /// Prints rows to the scrollback.
    pub(crate) fn print(&mut self, rows: Vec<StyledLine>) {
        self.printed.extend(rows);
        let lost = self.printed.len().saturating_sub(MAX_PENDING_ROWS);
        self.printed.drain(..lost);
    }

    /// Prints a notice about the chat itself.
    pub(crate) fn notify(&mut self, style: Style, text: &str) {
        self.print(text.lines().map(|line| StyledLine::styled(style, line)).collect());
    }

    /// Takes the rows finished since the last call, laid out for `columns` columns.
    pub(crate) fn take_finished_rows(&mut self, columns: usize) -> Vec<StyledLine> {
        let printed = std::mem::take(&mut self.printed);
        let mut rows: Vec<StyledLine> =
            printed.into_iter().flat_map(|row| row.broken(columns, "  ")).collect();
        if let Some(view) = &mut self.view {
            rows.extend(view.take_finished_rows(columns));
        }
        rows
    }

    /// A task was started.
    pub(crate) fn on_started(&mut self, plan: RunHeader, now: Duration) {
        self.view = Some(View::of_message(plan, self.glyphs));
        (self.begun, self.leaving) = (now, None);
        self.clear_pending();
    }

    /// Takes an event of the running task.
    pub(crate) fn take(&mut self, event: &EventRecord, now: Duration) {
        if let Some(view) = &mut self.view {
            view.take(event, now.saturating_sub(self.begun));
        }
        if let Event::ApprovalResolved { call_id, .. } = &event.event {
            self.close_question(call_id);
        }
    }

    /// Takes a question off the screen that was answered elsewhere.
    fn close_question(&mut self, id: &str) {
        let is_it = |asked: &OpenQuestion| matches!(&asked.subject, QuestionSubject::Call(question) if question.call_id == id);
        if self.question.as_ref().is_some_and(is_it) {
            self.question = None;
            self.notify(Style::Dim, "  answered elsewhere");
        }
    }

    /// The task ended: prints its last rows and starts the next queued message.
    pub(crate) fn ended(&mut self, columns: usize) -> Vec<ChatAction> {
        if let Some(mut view) = self.view.take() {
            let rows = view.take_finished_rows(columns);
            self.print(rows);
            self.print(vec![StyledLine::new()]);
        }
        self.question = None;
        self.moving = false;
        self.clear_pending();
        self.next()
    }

    fn clear_pending(&mut self) {
        (self.free_text, self.stopped, self.cancelled) = (None, None, None);
    }

    /// Starts the next queued message, unless a task is running.
    pub(crate) fn next(&mut self) -> Vec<ChatAction> {
        match self.queue.pop_front() {
            Some(request) if self.view.is_none() => vec![ChatAction::Begin(request)],
            Some(request) => {
                self.queue.push_front(request);
                Vec::new()
            }
            None => Vec::new(),
        }
    }

    /// Shows an approval request, or answers it if an earlier approval covers it.
    pub(crate) fn ask(&mut self, question: ApprovalQuestion, now: Duration) -> Vec<ChatAction> {
        if self.allowed.allow(&question) {
            return vec![ChatAction::Answer(ApprovalAnswer::yes())];
        }
        self.question = Some(OpenQuestion::about_call(question, &self.workspace, now));
        Vec::new()
    }

    /// Shows a free-text question. After a stop, a queued message answers it, since it was typed to be sent
    /// next.
    pub(crate) fn ask_free_text(&mut self, purpose: FreeTextPurpose) -> Vec<ChatAction> {
        if purpose == FreeTextPurpose::AfterStop {
            self.stopped = None;
            if let Some(RunRequest::Words(words)) = self.queue.front().cloned() {
                self.queue.pop_front();
                return vec![ChatAction::SendText(words)];
            }
        }
        self.free_text = Some(purpose);
        Vec::new()
    }

    /// Asks whether to resume an interrupted run.
    pub(crate) fn ask_return(&mut self, run: String, title: &str, now: Duration) {
        self.question = Some(OpenQuestion::about_return(run, title, now));
    }

    /// Asks whether to undo the changes of a run.
    pub(crate) fn ask_undo(&mut self, run: String, rows: Vec<StyledLine>, now: Duration) {
        self.question = Some(OpenQuestion::about_undo(run, rows, now));
    }

    /// Asks what goes back to a turn, after what would change.
    pub(crate) fn ask_rewind(&mut self, target: TurnTarget, rows: Vec<StyledLine>, now: Duration) {
        self.question = Some(OpenQuestion::about_rewind(target, rows, now));
    }

    /// Asks whether to carry out the plan that was made in plan mode.
    pub(crate) fn ask_plan(&mut self, now: Duration) {
        self.question = Some(OpenQuestion::about_plan(now));
    }

    /// Shows the list of conversations.
    pub(crate) fn choose_session(&mut self, entries: Vec<PickerEntry>) {
        self.picker = Some(SessionPicker::new(PickerSubject::Conversation, entries));
    }

    /// Shows the list of turns.
    pub(crate) fn choose_turn(&mut self, entries: Vec<PickerEntry>) {
        self.picker = Some(SessionPicker::new(PickerSubject::Turn, entries));
    }

    /// Sets the command of the user's that is running.
    pub(crate) fn set_shell(&mut self, line: Option<String>) {
        self.shell = line;
    }

    /// The task moves to the background as soon as its tool calls have ended.
    pub(crate) fn set_moving(&mut self) {
        self.moving = true;
    }

    /// Handles the input when enter is pressed.
    fn submit(&mut self) -> Vec<ChatAction> {
        match parse_line_in(self.editor.text(), &self.workspace) {
            InputLine::Nothing if self.free_text == Some(FreeTextPurpose::AfterStop) => {
                self.free_text = None;
                vec![ChatAction::SendText(String::new())]
            }
            InputLine::Nothing => Vec::new(),
            InputLine::Request(RunRequest::Words(words)) if self.free_text.is_some() => {
                self.accept();
                self.free_text = None;
                vec![ChatAction::SendText(words)]
            }
            InputLine::Request(_) if self.queue.len() >= MAX_QUEUED => {
                self.notify(Style::Warning, "too many queued messages; this one stays in the input");
                Vec::new()
            }
            InputLine::Request(request) => {
                self.accept();
                self.queue.push_back(request);
                self.next()
            }
            InputLine::Shell(_) if self.shell.is_some() => {
                self.notify(
                    Style::Warning,
                    "a shell command is still running: wait for it, or press esc to stop it",
                );
                Vec::new()
            }
            InputLine::Shell(line) => {
                self.notify(Style::Dim, &format!("> !{line}"));
                self.accept();
                vec![ChatAction::Shell(line)]
            }
            InputLine::Command(slash) => {
                // Echoes the command, so that its reply is identifiable far up in the scrollback.
                let asked = format!("> {}", self.editor.text().trim());
                self.notify(Style::Dim, &asked);
                self.accept();
                match slash {
                    SlashCommand::Quit => vec![ChatAction::Leave],
                    SlashCommand::Background => self.move_to_background(),
                    SlashCommand::Resume(_)
                    | SlashCommand::Sessions
                    | SlashCommand::Clear
                    | SlashCommand::New
                    | SlashCommand::Undo(_)
                    | SlashCommand::Rewind(_)
                    | SlashCommand::PlanEdit(_)
                        if self.is_working() =>
                    {
                        self.notify(
                            Style::Warning,
                            "a task is running: wait for it, or press esc twice to cancel it",
                        );
                        Vec::new()
                    }
                    slash => vec![ChatAction::Command(slash)],
                }
            }
            InputLine::Unknown(problem) => {
                self.notify(Style::Warning, &problem);
                Vec::new()
            }
        }
    }

    fn accept(&mut self) {
        let typed = self.editor.take();
        self.past.add(typed.trim_end());
        self.completion = Completion::default();
    }

    /// Saves the current input to the history before the chat exits; returns the number of queued messages.
    pub(crate) fn leave(&mut self) -> usize {
        if !self.editor.is_empty() {
            self.accept();
        }
        self.queue.len()
    }

    /// Moves the running task to the background.
    fn move_to_background(&mut self) -> Vec<ChatAction> {
        if self.is_working() && self.cancelled.is_none() && !self.moving {
            return vec![ChatAction::Background];
        }
        if !self.is_working() {
            self.notify(Style::Warning, "no task is running");
        }
        Vec::new()
    }

    /// Handles an interrupt: stops the turn, then cancels the task; with no task, clears the input, then
    /// exits.
    fn interrupt(&mut self, now: Duration) -> Vec<ChatAction> {
        let soon = |at: Option<Duration>| at.is_some_and(|at| now.saturating_sub(at) < DOUBLE_PRESS_WINDOW);
        if self.shell.is_some() {
            return vec![ChatAction::StopShell];
        }
        if self.is_working() {
            if soon(self.cancelled) {
                return vec![ChatAction::Leave];
            }
            let purpose = self.free_text.take();
            let turn_runs = purpose != Some(FreeTextPurpose::AfterStop) && self.cancelled.is_none();
            if turn_runs && !soon(self.stopped) {
                self.stopped = Some(now);
                return vec![ChatAction::StopTurn];
            }
            self.cancelled = Some(now);
            return vec![ChatAction::Cancel];
        }
        if !self.editor.is_empty() {
            // The input history keeps it.
            self.accept();
            return Vec::new();
        }
        if soon(self.leaving) {
            return vec![ChatAction::Leave];
        }
        self.leaving = Some(now);
        Vec::new()
    }

    /// Esc with an empty input and no task: the second one opens the list of turns.
    fn go_back(&mut self, now: Duration) -> Vec<ChatAction> {
        let is_second = self.going_back.take().is_some_and(|at| now.saturating_sub(at) < DOUBLE_PRESS_WINDOW);
        if is_second {
            return vec![ChatAction::Command(SlashCommand::Rewind(None))];
        }
        self.going_back = Some(now);
        Vec::new()
    }

    /// Whether a temporary hint is shown.
    pub(crate) fn is_hinting(&self) -> bool {
        self.leaving.is_some() || self.going_back.is_some()
    }

    /// Removes the hint after it was shown for `hint`.
    pub(crate) fn expire_hints(&mut self, now: Duration, hint: Duration) {
        self.leaving = self.leaving.filter(|at| now.saturating_sub(*at) < hint);
        self.going_back = self.going_back.filter(|at| now.saturating_sub(*at) < hint);
    }

    fn update_completions(&mut self) {
        let offers = self.offers.as_deref().unwrap_or_default();
        self.completion = complete::candidates(self.editor.before(), &self.workspace, offers);
    }

    /// Whether the list of tasks for `/task` is needed. It is loaded again each time the user starts typing
    /// it, since files change.
    pub(crate) fn wants_offers(&mut self) -> bool {
        let typing = self.editor.text().starts_with("/task ");
        if !typing {
            self.offers = None;
        }
        typing && self.offers.is_none()
    }

    /// Sets the tasks that `/task` can run.
    pub(crate) fn set_tasks(&mut self, offers: Vec<TaskCandidate>) {
        self.offers = Some(offers);
        self.update_completions();
    }

    /// Sets the description of the sandbox.
    pub(crate) fn set_sandbox(&mut self, how: &'static str) {
        self.confined = how;
    }
}
