//! The event loop of the chat in a terminal: feeds keys and events into the [`ChatState`], performs its effects
//! and draws the frame. Finished rows scroll by as ordinary output; only the area below them is redrawn.

mod external_editor;
mod keys;
mod pasted_image;
mod rewind;
mod task_move;

use std::future::Future;
use std::io::{self, Stdout};
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossterm::cursor::MoveTo;
use crossterm::event::{Event as Input, KeyEventKind};
use crossterm::terminal::{Clear, ClearType};
use fusee::engine::agent::TurnInterrupt;
use fusee::engine::approval::ApprovalAnswer;
use fusee::engine::journal::event::TaskStatus;
use fusee::engine::journal::{EventStream, RunId};
use fusee::engine::model::CancellationToken;
use fusee::engine::run::{ExitStatus, RunControl, RunOutcome};
use futures_util::FutureExt as _;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, oneshot};

use self::keys::{Keys, RawMode};
use self::task_move::TaskMove;
use super::commands::{RunRequest, SlashCommand};
use super::frame;
use super::input_history::InputHistory;
use super::question_queue::{QuestionQueue, QueuedQuestion};
use super::session::{Chat, ChatRun, ResumeOutcome};
use super::state::{ChatAction, ChatState};
use super::user_command::{CommandOutput, UserCommand};
use crate::command::run_setup::StartedRun;
use crate::process::environment::Environment;
use crate::process::error::CliError;
use crate::project::file_mentions;
use crate::ui::format;
use crate::ui::line::{Style, StyledLine};
use crate::ui::terminal::{Screen, size_of};

/// Minimum time between frames for streamed output (20 per second); a key press is drawn at once.
const FRAME: Duration = Duration::from_millis(50);

/// Update interval of the elapsed time and the spinner while no events arrive.
const TICK: Duration = Duration::from_millis(100);

/// Maximum number of events processed before the screen is drawn again.
const MAX_EVENTS_PER_FRAME: usize = 256;

/// Minimum room for the model's name in the status line, in characters.
const MIN_MODEL_WIDTH: usize = 28;

/// How long a hint is shown.
const HINT: Duration = Duration::from_secs(2);

/// A running task.
struct LiveTask {
    run: RunId,
    cancel: CancellationToken,
    turns: TurnInterrupt,
    control: RunControl,
    events: EventStream,
    outcome: Pin<Box<dyn Future<Output = RunOutcome>>>,
}

struct TerminalLoop<'s, 'p> {
    session: &'s mut Chat<'p>,
    environment: &'s Environment,
    state: ChatState,
    screen: Screen<Stdout>,
    live: Option<LiveTask>,
    /// The move of the task to the background.
    moving: Option<TaskMove>,
    /// The command of the user's that is running.
    shell: Option<UserCommand>,
    approval_reply: Option<oneshot::Sender<ApprovalAnswer>>,
    text_reply: Option<oneshot::Sender<String>>,
    begun: Instant,
    drawn: Option<Instant>,
    dirty: bool,
    leave: bool,
}

/// Runs the chat until the user exits.
pub(crate) async fn chat(session: &mut Chat<'_>, environment: &Environment) -> Result<ExitStatus, CliError> {
    let (queue, mut questions) = QuestionQueue::new();
    session.ask(Arc::new(queue));
    let (colour, glyphs) = session.appearance();
    let past = InputHistory::open(environment.state_folder().as_deref());
    let state = ChatState::new(glyphs, session.directory().to_owned(), past);
    let screen = Screen::raw(io::stdout(), colour);
    let mut driver = TerminalLoop {
        session,
        environment,
        state,
        screen,
        live: None,
        moving: None,
        shell: None,
        approval_reply: None,
        text_reply: None,
        begun: Instant::now(),
        drawn: None,
        dirty: true,
        leave: false,
    };
    let _raw = RawMode::enter().map_err(terminal_error)?;
    let mut keys = Keys::listen()?;
    driver.show_greeting();
    let held = driver.run_loop(&mut keys, &mut questions).await;
    let closed = driver.close();
    held.and(closed).map(|()| ExitStatus::Completed)
}

fn terminal_error(error: io::Error) -> CliError {
    CliError::failed(format!("cannot use the terminal: {error}"))
        .help("run `fusee --plain` for a chat in plain lines")
}

impl TerminalLoop<'_, '_> {
    fn now(&self) -> Duration {
        self.begun.elapsed()
    }

    fn show_greeting(&mut self) {
        let directory = self.session.directory().display().to_string();
        self.state.set_sandbox(self.session.sandbox_text());
        let title = StyledLine::styled(Style::Bold, "fusee").and(Style::Dim, &format!("  {directory}"));
        self.state.print(vec![title]);
        self.show_status();
        if self.session.is_continued() {
            match self.session.take_choice() {
                Some(entries) => return self.state.choose_session(entries),
                None => self.show_earlier(),
            }
        }
        let Some(left) = self.session.resumable_run() else { return };
        if left.open {
            let title = format!("{} ({})", left.title, format::age(left.age_ms));
            self.state.ask_return(left.run.to_string(), &title, Duration::ZERO);
        } else if !self.session.is_continued() {
            let text = format!(
                "last run here ({}): {} · /resume continues it",
                format::age(left.age_ms),
                left.title
            );
            self.state.notify(Style::Dim, &text);
        }
    }

    /// Prints the conversation so far.
    fn show_earlier(&mut self) {
        let (columns, _) = size_of(io::stdout());
        match self.session.earlier(columns) {
            Ok(rows) => self.state.print(rows),
            Err(failure) => self.failed(&failure),
        }
    }

    fn show_status(&mut self) {
        let rest = format!(" · /help · {}", self.session.approval_and_sandbox());
        let (columns, _) = size_of(io::stdout());
        let room = columns.saturating_sub(rest.chars().count() + 2).max(MIN_MODEL_WIDTH);
        let model = format::one_line(self.session.model(), room);
        self.state.set_status(format!("  {model}{rest}"));
    }

    async fn run_loop(
        &mut self,
        keys: &mut Keys,
        questions: &mut mpsc::Receiver<QueuedQuestion>,
    ) -> Result<(), CliError> {
        let listen = |kind| {
            signal(kind).map_err(|error| CliError::failed(format!("cannot listen for signals: {error}")))
        };
        let (mut terminate, mut hangup) = (listen(SignalKind::terminate())?, listen(SignalKind::hangup())?);
        self.draw()?;
        while !self.leave {
            let pause = self.pause();
            tokio::select! {
                biased;
                input = keys.next() => {
                    match input {
                        Some(input) => self.input(input.map_err(terminal_error)?).await?,
                        None => self.leave = true,
                    }
                    self.draw()?;
                    keys.go_on();
                }
                _ = terminate.recv() => self.leave = true,
                _ = hangup.recv() => self.leave = true,
                Some(waiting) = questions.recv() => {
                    // Events that led to the question are shown first.
                    let _ = poll_events(&mut self.live, &mut self.state, self.begun).now_or_never();
                    let now = self.now();
                    let effects = match waiting {
                        QueuedQuestion::Approval(question, sender) => {
                            self.approval_reply = Some(sender);
                            self.state.ask(question, now)
                        }
                        QueuedQuestion::FreeText(purpose, sender) => {
                            self.text_reply = Some(sender);
                            self.state.ask_free_text(purpose)
                        }
                    };
                    self.perform(effects).await?;
                    self.draw()?;
                }
                output = next_output(&mut self.shell) => {
                    self.dirty = true;
                    self.take_output(output);
                }
                more = poll_events(&mut self.live, &mut self.state, self.begun) => {
                    self.dirty = true;
                    match more {
                        Ok(true) => {}
                        Ok(false) => self.end().await?,
                        Err(problem) => {
                            self.state.notify(Style::Bad, &problem);
                            self.end().await?;
                        }
                    }
                    if self.drawn.is_none_or(|drawn| drawn.elapsed() >= FRAME) {
                        self.draw()?;
                    }
                }
                () = tokio::time::sleep(pause) => {
                    let now = self.now();
                    self.state.expire_hints(now, HINT);
                    self.draw()?;
                }
            }
        }
        Ok(())
    }

    /// How long the screen may stay as it is.
    fn pause(&self) -> Duration {
        let passed = self.drawn.map_or(FRAME, |drawn| drawn.elapsed());
        let wanted = match (self.dirty, self.state.is_working(), self.state.is_hinting()) {
            (true, ..) => FRAME,
            (_, true, _) => TICK,
            (_, _, true) => HINT,
            _ => return Duration::from_secs(3_600),
        };
        wanted.saturating_sub(passed).max(Duration::from_millis(1))
    }

    async fn input(&mut self, input: Input) -> Result<(), CliError> {
        let now = self.now();
        let effects = match input {
            Input::Key(key) if key.kind != KeyEventKind::Release => self.state.key(key, now),
            Input::Paste(text) => {
                let text = pasted_image::mention(&text, self.environment).unwrap_or(text);
                self.state.paste(&text);
                Vec::new()
            }
            _ => Vec::new(),
        };
        if self.state.wants_offers() {
            self.state.set_tasks(self.session.runnable_tasks());
        }
        self.perform(effects).await
    }

    async fn perform(&mut self, effects: Vec<ChatAction>) -> Result<(), CliError> {
        let mut left: std::collections::VecDeque<ChatAction> = effects.into();
        while let Some(effect) = left.pop_front() {
            match effect {
                ChatAction::Begin(request) => match self.session.begin(request).await {
                    Ok(begun) => self.on_started(begun),
                    Err(failure) => {
                        self.failed(&failure);
                        left.extend(self.state.next());
                    }
                },
                ChatAction::Command(SlashCommand::PlanEdit(None)) => self.edit_plan().await?,
                ChatAction::Command(SlashCommand::Clear) => {
                    self.clear()?;
                    self.command(&SlashCommand::Clear);
                }
                ChatAction::Background => self.move_to_background(),
                ChatAction::Shell(line) => self.start_shell(&line),
                ChatAction::StopShell => {
                    if let Some(shell) = &self.shell {
                        shell.stop();
                    }
                }
                ChatAction::CarryOutPlan => {
                    self.session.set_planning(false);
                    self.show_status();
                    left.push_back(ChatAction::Begin(RunRequest::Words("Carry out the plan.".to_owned())));
                }
                ChatAction::Rewind(target, parts) => self.rewind(&target, parts).await,
                ChatAction::PasteImage => match pasted_image::from_clipboard(self.environment) {
                    Ok(mention) => self.state.paste(&mention),
                    Err(problem) => self.state.notify(Style::Warning, &problem),
                },
                ChatAction::Suspend => self.suspend()?,
                ChatAction::Command(slash) => self.command(&slash),
                ChatAction::StopTurn => {
                    // If no turn can be stopped, the run itself is cancelled.
                    if let Some(live) = self.live.as_ref().filter(|live| !live.turns.stop()) {
                        live.cancel.cancel();
                    }
                }
                ChatAction::SendText(words) => {
                    let (words, problems) = file_mentions::spoken(&words, self.session.directory());
                    problems.iter().for_each(|problem| self.state.notify(Style::Warning, problem));
                    if let Some(text_reply) = self.text_reply.take() {
                        // The receiver is gone if the task was cancelled meanwhile.
                        let _ = text_reply.send(words);
                    }
                }
                ChatAction::Cancel => {
                    if let Some(live) = &self.live {
                        live.cancel.cancel();
                    }
                }
                ChatAction::Answer(answer) => {
                    if let Some(approval_reply) = self.approval_reply.take() {
                        // The receiver is gone if the task was cancelled meanwhile.
                        let _ = approval_reply.send(answer);
                    }
                }
                ChatAction::SaveRules(rules) => {
                    if let Err(error) = self.session.approvals().add(rules) {
                        let text = format!(
                            "cannot save the answer, so it applies to this conversation only: {error}"
                        );
                        self.state.notify(Style::Warning, &text);
                    }
                }
                ChatAction::Edit => self.edit().await?,
                ChatAction::Leave => self.leave = true,
            }
        }
        Ok(())
    }

    fn command(&mut self, slash: &SlashCommand) {
        if let SlashCommand::Resume(name) = slash {
            match self.session.resume(name.as_deref()) {
                Ok(ResumeOutcome::Running(begun)) => self.on_started(*begun),
                Ok(ResumeOutcome::Continues(run)) => {
                    self.show_earlier();
                    self.state.notify(Style::Dim, &format!("the next message continues run {run}"));
                }
                Err(failure) => self.failed(&failure),
            }
            return;
        }
        if let SlashCommand::Undo(name) = slash {
            match self.session.undo(name.as_deref()) {
                Ok((Some(run), rows)) => {
                    let now = self.now();
                    self.state.ask_undo(run.to_string(), rows, now);
                }
                Ok((None, rows)) => self.state.print(rows),
                Err(failure) => self.failed(&failure),
            }
            return;
        }
        if let SlashCommand::Rewind(target) = slash {
            return self.show_rewind(target.as_ref());
        }
        if let SlashCommand::Sessions = slash {
            match self.session.sessions() {
                Ok(entries) if entries.is_empty() => {
                    self.state.notify(Style::Dim, "no earlier conversations here");
                }
                Ok(entries) => self.state.choose_session(entries),
                Err(failure) => self.failed(&failure),
            }
            return;
        }
        let (columns, _) = size_of(io::stdout());
        match self.session.answer(slash, columns) {
            Ok(rows) => {
                self.state.print(rows);
                self.state.print(vec![StyledLine::new()]);
            }
            Err(failure) => self.failed(&failure),
        }
        self.show_status();
    }

    fn on_started(&mut self, begun: ChatRun) {
        let ChatRun { started: StartedRun { running, header, .. }, problems } = begun;
        for problem in problems {
            self.state.notify(Style::Warning, &problem);
        }
        let (run, cancel, events) = (running.id().clone(), running.cancellation(), running.events());
        let (turns, control) = (running.turn_stop(), running.control());
        let outcome = Box::pin(running.outcome());
        self.live = Some(LiveTask { run, cancel, turns, control, events, outcome });
        let now = self.now();
        self.state.on_started(header, now);
    }

    fn failed(&mut self, failure: &CliError) {
        let help = failure.help.as_deref().map(|help| format!("\n{help}")).unwrap_or_default();
        self.state.notify(Style::Bad, &format!("{}{help}", failure.message.trim_end()));
    }

    async fn end(&mut self) -> Result<(), CliError> {
        let Some(live) = self.live.take() else { return Ok(()) };
        let outcome = live.outcome.await;
        let moved = self.moving.take();
        self.session.ended(&live.run, &outcome);
        (self.approval_reply, self.text_reply) = (None, None);
        let (columns, _) = size_of(io::stdout());
        let effects = self.state.ended(columns);
        if let Some(moved) = moved.filter(|_| !matches!(outcome, RunOutcome::Ended(_))) {
            self.continue_elsewhere(moved, &live.run).await;
            return self.perform(effects).await;
        }
        let is_planned =
            matches!(&outcome, RunOutcome::Ended(ended) if ended.status == TaskStatus::Completed);
        if self.session.is_planning() && is_planned && effects.is_empty() {
            let now = self.now();
            self.state.ask_plan(now);
        }
        if let RunOutcome::Lost(cause) = &outcome {
            self.state.notify(Style::Bad, &format!("internal error: the run panicked: {cause}"));
        }
        self.perform(effects).await
    }

    async fn edit(&mut self) -> Result<(), CliError> {
        let typed = self.state.typed().to_owned();
        if let Some(text) = self.edited(typed).await? {
            self.state.set_input(text.trim_end());
        }
        Ok(())
    }

    async fn edit_plan(&mut self) -> Result<(), CliError> {
        let text = match self.session.plan_text() {
            Ok(text) => text,
            Err(failure) => {
                self.failed(&failure);
                return Ok(());
            }
        };
        let Some(text) = self.edited(text).await? else { return Ok(()) };
        match self.session.change_plan(&text) {
            Ok(rows) => self.state.print(rows),
            Err(failure) => self.failed(&failure),
        }
        self.state.print(vec![StyledLine::new()]);
        Ok(())
    }

    /// Opens a text in the user's editor and returns the result; `None` after a failure, which is reported.
    async fn edited(&mut self, text: String) -> Result<Option<String>, CliError> {
        let Some(program) = external_editor::editor(self.environment) else {
            self.state.notify(Style::Warning, "no editor configured; set EDITOR");
            return Ok(None);
        };
        let (columns, _) = size_of(io::stdout());
        self.screen.draw(&[], &[], columns).map_err(terminal_error)?;
        // The task keeps running meanwhile; its events are queued.
        let edited = tokio::task::spawn_blocking(move || external_editor::edit(&program, &text)).await;
        match edited {
            Ok(Ok(text)) => return Ok(Some(text)),
            Ok(Err(error)) => self.state.notify(Style::Bad, &format!("the editor failed: {error}")),
            Err(_) => self.state.notify(Style::Bad, "the editor failed"),
        }
        Ok(None)
    }

    fn start_shell(&mut self, line: &str) {
        match UserCommand::start(line, self.session.directory()) {
            Ok(command) => {
                self.state.set_shell(Some(line.to_owned()));
                self.shell = Some(command);
            }
            Err(error) => self.state.notify(Style::Bad, &format!("cannot run `{line}`: {error}")),
        }
    }

    fn take_output(&mut self, output: CommandOutput) {
        match output {
            CommandOutput::Line(text) => self.state.notify(Style::Plain, &format!("  {text}")),
            CommandOutput::Ended(end) => {
                if !end.is_empty() {
                    self.state.notify(Style::Warning, &format!("  {end}"));
                }
                if let Some(command) = self.shell.take() {
                    self.session.note_command(command.for_model(&end));
                }
                self.state.set_shell(None);
            }
        }
    }

    /// Clears the screen; what has scrolled by stays in the scrollback.
    fn clear(&mut self) -> Result<(), CliError> {
        let (columns, _) = size_of(io::stdout());
        self.screen.draw(&[], &[], columns).map_err(terminal_error)?;
        crossterm::execute!(io::stdout(), Clear(ClearType::All), MoveTo(0, 0)).map_err(terminal_error)
    }

    /// Stops the process until the shell continues it. The task in this process stands still meanwhile.
    fn suspend(&mut self) -> Result<(), CliError> {
        let (columns, _) = size_of(io::stdout());
        self.screen.draw(&[], &[], columns).map_err(terminal_error)?;
        keys::suspend().map_err(terminal_error)
    }

    fn draw(&mut self) -> Result<(), CliError> {
        let (columns, rows) = size_of(io::stdout());
        self.state.resize(columns, rows);
        let done = self.state.take_finished_rows(columns);
        let frame = frame::draw(&self.state, columns, rows, self.now());
        (self.dirty, self.drawn) = (false, Some(Instant::now()));
        self.screen.draw_with(&done, &frame.rows, columns, frame.cursor).map_err(terminal_error)
    }

    /// Clears the redrawn area, so that only the scrollback is left on the screen.
    fn close(&mut self) -> Result<(), CliError> {
        if let Some(live) = &self.live {
            let text = format!("run {} is still open; start `fusee` again to resume it", live.run);
            self.state.notify(Style::Dim, &text);
        }
        let waiting = self.state.leave();
        if waiting > 0 {
            let waiting = format::count(waiting as u64, "message");
            let text = format!("{waiting} not sent; press up to recall what was typed");
            self.state.notify(Style::Dim, &text);
        }
        let (columns, _) = size_of(io::stdout());
        let done = self.state.take_finished_rows(columns);
        self.screen.draw(&done, &[], columns).map_err(terminal_error)
    }
}

/// The next output of the user's command.
async fn next_output(shell: &mut Option<UserCommand>) -> CommandOutput {
    match shell {
        Some(shell) => shell.next().await,
        None => std::future::pending().await,
    }
}

/// Feeds the run's events into the state; returns whether more can follow, or the error that ended the
/// stream.
async fn poll_events(
    live: &mut Option<LiveTask>,
    state: &mut ChatState,
    begun: Instant,
) -> Result<bool, String> {
    let Some(live) = live else { return std::future::pending().await };
    let mut next = Some(live.events.next().await);
    let mut taken = 0;
    while let Some(event) = next {
        match event {
            Ok(Some(event)) => state.take(&event, begun.elapsed()),
            Ok(None) => return Ok(false),
            Err(error) => return Err(error.to_string()),
        }
        taken += 1;
        next = if taken < MAX_EVENTS_PER_FRAME { live.events.next().now_or_never() } else { None };
    }
    Ok(true)
}
