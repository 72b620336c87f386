//! The event loop of the chat in a terminal: feeds keys and events into the [`State`], performs its effects
//! and draws the frame. Finished rows scroll by as ordinary output; only the area below them is redrawn.

mod keys;
mod outside;

use std::future::Future;
use std::io::{self, Stdout};
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossterm::event::{Event as Input, KeyEventKind};
use fusee_engine::agent::TurnStop;
use fusee_engine::approval::Answer;
use fusee_engine::journal::{Events, RunId};
use fusee_engine::model::CancellationToken;
use fusee_engine::run::{Exit, RunOutcome};
use futures_util::FutureExt as _;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, oneshot};

use self::keys::{Keys, Raw};
use super::commands::Slash;
use super::desk::{Desk, Waiting};
use super::frame;
use super::mention;
use super::past::Past;
use super::session::{Begun, Returned, Session};
use super::state::{Effect, State};
use crate::environment::Environment;
use crate::face::line::{Line, Style};
use crate::face::terminal::{Screen, size_of};
use crate::face::words;
use crate::failure::Failure;

/// Minimum time between frames for streamed output (20 per second); a key press is drawn at once.
const FRAME: Duration = Duration::from_millis(50);

/// Update interval of the elapsed time and the spinner while no events arrive.
const BREATH: Duration = Duration::from_millis(100);

/// Maximum number of events processed before the screen is drawn again.
const AT_ONCE: usize = 256;

/// Maximum length of the model's name in the status line, in characters.
const MODEL: usize = 28;

/// How long a hint is shown.
const HINT: Duration = Duration::from_secs(2);

/// A running task.
struct Live {
    run: RunId,
    cancel: CancellationToken,
    turns: TurnStop,
    events: Events,
    outcome: Pin<Box<dyn Future<Output = RunOutcome>>>,
}

struct Driver<'s, 'p> {
    session: &'s mut Session<'p>,
    environment: &'s Environment,
    state: State,
    screen: Screen<Stdout>,
    live: Option<Live>,
    asking: Option<oneshot::Sender<Answer>>,
    listening: Option<oneshot::Sender<String>>,
    begun: Instant,
    drawn: Option<Instant>,
    dirty: bool,
    leave: bool,
}

/// Runs the chat until the user exits.
pub(crate) async fn converse(session: &mut Session<'_>, environment: &Environment) -> Result<Exit, Failure> {
    let (desk, mut questions) = Desk::new();
    session.ask(Arc::new(desk));
    let (colour, glyphs) = session.looks();
    let past = Past::open(environment.state_folder().as_deref());
    let state = State::new(glyphs, session.directory().to_owned(), past);
    let screen = Screen::raw(io::stdout(), colour);
    let mut driver = Driver {
        session,
        environment,
        state,
        screen,
        live: None,
        asking: None,
        listening: None,
        begun: Instant::now(),
        drawn: None,
        dirty: true,
        leave: false,
    };
    let _raw = Raw::enter().map_err(lost)?;
    let mut keys = Keys::listen()?;
    driver.greet();
    let held = driver.hold(&mut keys, &mut questions).await;
    let closed = driver.close();
    held.and(closed).map(|()| Exit::Completed)
}

fn lost(error: io::Error) -> Failure {
    Failure::failed(format!("cannot use the terminal: {error}"))
        .help("run `fusee --plain` for a chat in plain lines")
}

impl Driver<'_, '_> {
    fn now(&self) -> Duration {
        self.begun.elapsed()
    }

    fn greet(&mut self) {
        let directory = self.session.directory().display().to_string();
        self.state.confine(self.session.confines());
        let title = Line::of(Style::Bold, "fusee").and(Style::Dim, &format!("  {directory}"));
        self.state.print(vec![title]);
        self.stand();
        let Some(left) = self.session.left_behind() else { return };
        if left.open {
            let title = format!("{} ({})", left.title, words::age(left.age_ms));
            self.state.ask_return(left.run.to_string(), &title, Duration::ZERO);
        } else if !self.session.is_continued() {
            let text =
                format!("last run here ({}): {} · /resume continues it", words::age(left.age_ms), left.title);
            self.state.tell(Style::Dim, &text);
        }
    }

    fn stand(&mut self) {
        let model = words::one_line(self.session.model(), MODEL);
        self.state.stand(format!("  {model} · /help · {}", self.session.terms()));
    }

    async fn hold(
        &mut self,
        keys: &mut Keys,
        questions: &mut mpsc::Receiver<Waiting>,
    ) -> Result<(), Failure> {
        let listen = |kind| {
            signal(kind).map_err(|error| Failure::failed(format!("cannot listen for signals: {error}")))
        };
        let (mut terminate, mut hangup) = (listen(SignalKind::terminate())?, listen(SignalKind::hangup())?);
        self.draw()?;
        while !self.leave {
            let pause = self.pause();
            tokio::select! {
                biased;
                input = keys.next() => {
                    match input {
                        Some(input) => self.input(input.map_err(lost)?).await?,
                        None => self.leave = true,
                    }
                    self.draw()?;
                    keys.go_on();
                }
                _ = terminate.recv() => self.leave = true,
                _ = hangup.recv() => self.leave = true,
                Some(waiting) = questions.recv() => {
                    // Events that led to the question are shown first.
                    let _ = happen(&mut self.live, &mut self.state, self.begun).now_or_never();
                    let now = self.now();
                    let effects = match waiting {
                        Waiting::Approval(question, sender) => {
                            self.asking = Some(sender);
                            self.state.ask(question, now)
                        }
                        Waiting::Words(wanted, sender) => {
                            self.listening = Some(sender);
                            self.state.want(wanted)
                        }
                    };
                    self.perform(effects).await?;
                    self.draw()?;
                }
                more = happen(&mut self.live, &mut self.state, self.begun) => {
                    self.dirty = true;
                    match more {
                        Ok(true) => {}
                        Ok(false) => self.end().await?,
                        Err(problem) => {
                            self.state.tell(Style::Bad, &problem);
                            self.end().await?;
                        }
                    }
                    if self.drawn.is_none_or(|drawn| drawn.elapsed() >= FRAME) {
                        self.draw()?;
                    }
                }
                () = tokio::time::sleep(pause) => {
                    let now = self.now();
                    self.state.rest(now, HINT);
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
            (_, true, _) => BREATH,
            (_, _, true) => HINT,
            _ => return Duration::from_secs(3_600),
        };
        wanted.saturating_sub(passed).max(Duration::from_millis(1))
    }

    async fn input(&mut self, input: Input) -> Result<(), Failure> {
        let now = self.now();
        let effects = match input {
            Input::Key(key) if key.kind != KeyEventKind::Release => self.state.key(key, now),
            Input::Paste(text) => {
                self.state.paste(&text);
                Vec::new()
            }
            _ => Vec::new(),
        };
        if self.state.wants_offers() {
            self.state.offer(self.session.offers());
        }
        self.perform(effects).await
    }

    async fn perform(&mut self, effects: Vec<Effect>) -> Result<(), Failure> {
        let mut left: std::collections::VecDeque<Effect> = effects.into();
        while let Some(effect) = left.pop_front() {
            match effect {
                Effect::Begin(errand) => match self.session.begin(errand).await {
                    Ok(begun) => self.began(begun),
                    Err(failure) => {
                        self.failed(&failure);
                        left.extend(self.state.next());
                    }
                },
                Effect::Command(Slash::PlanEdit(None)) => self.edit_plan().await?,
                Effect::Command(slash) => self.command(&slash),
                Effect::StopTurn => {
                    // If no turn can be stopped, the run itself is cancelled.
                    if let Some(live) = self.live.as_ref().filter(|live| !live.turns.stop()) {
                        live.cancel.cancel();
                    }
                }
                Effect::Say(words) => {
                    let (words, problems) = mention::spoken(&words, self.session.directory());
                    problems.iter().for_each(|problem| self.state.tell(Style::Warning, problem));
                    if let Some(listening) = self.listening.take() {
                        // The receiver is gone if the task was cancelled meanwhile.
                        let _ = listening.send(words);
                    }
                }
                Effect::Cancel => {
                    if let Some(live) = &self.live {
                        live.cancel.cancel();
                    }
                }
                Effect::Answer(answer) => {
                    if let Some(asking) = self.asking.take() {
                        // The receiver is gone if the task was cancelled meanwhile.
                        let _ = asking.send(answer);
                    }
                }
                Effect::Keep(question) => {
                    if let Err(error) = self.session.keep(&question) {
                        let text = format!(
                            "cannot save the answer, so it applies to this conversation only: {error}"
                        );
                        self.state.tell(Style::Warning, &text);
                    }
                }
                Effect::Edit => self.edit().await?,
                Effect::Leave => self.leave = true,
            }
        }
        Ok(())
    }

    fn command(&mut self, slash: &Slash) {
        if let Slash::Resume(name) = slash {
            match self.session.resume(name.as_deref()) {
                Ok(Returned::Running(begun)) => self.began(*begun),
                Ok(Returned::Continues(run)) => {
                    self.state.tell(Style::Dim, &format!("the next message continues run {run}"));
                }
                Err(failure) => self.failed(&failure),
            }
            return;
        }
        if let Slash::Undo(name) = slash {
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
        let (columns, _) = size_of(io::stdout());
        match self.session.answer(slash, columns) {
            Ok(rows) => {
                self.state.print(rows);
                self.state.print(vec![Line::new()]);
            }
            Err(failure) => self.failed(&failure),
        }
        self.stand();
    }

    fn began(&mut self, begun: Begun) {
        let Begun { running, plan, problems } = begun;
        for problem in problems {
            self.state.tell(Style::Warning, &problem);
        }
        let (run, cancel, events) = (running.id().clone(), running.cancellation(), running.events());
        let turns = running.turn_stop();
        self.live = Some(Live { run, cancel, turns, events, outcome: Box::pin(running.outcome()) });
        let now = self.now();
        self.state.began(plan, now);
    }

    fn failed(&mut self, failure: &Failure) {
        let help = failure.help.as_deref().map(|help| format!("\n{help}")).unwrap_or_default();
        self.state.tell(Style::Bad, &format!("{}{help}", failure.message.trim_end()));
    }

    async fn end(&mut self) -> Result<(), Failure> {
        let Some(live) = self.live.take() else { return Ok(()) };
        let outcome = live.outcome.await;
        self.session.ended(&live.run, &outcome);
        (self.asking, self.listening) = (None, None);
        let (columns, _) = size_of(io::stdout());
        let effects = self.state.ended(columns);
        if let RunOutcome::Lost(cause) = &outcome {
            self.state.tell(Style::Bad, &format!("internal error: the run panicked: {cause}"));
        }
        self.perform(effects).await
    }

    async fn edit(&mut self) -> Result<(), Failure> {
        let typed = self.state.typed().to_owned();
        if let Some(text) = self.edited(typed).await? {
            self.state.retype(text.trim_end());
        }
        Ok(())
    }

    async fn edit_plan(&mut self) -> Result<(), Failure> {
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
        self.state.print(vec![Line::new()]);
        Ok(())
    }

    /// Opens a text in the user's editor and returns the result; `None` after a failure, which is reported.
    async fn edited(&mut self, text: String) -> Result<Option<String>, Failure> {
        let Some(program) = outside::editor(self.environment) else {
            self.state.tell(Style::Warning, "no editor configured; set EDITOR");
            return Ok(None);
        };
        let (columns, _) = size_of(io::stdout());
        self.screen.draw(&[], &[], columns).map_err(lost)?;
        // The task keeps running meanwhile; its events are queued.
        let edited = tokio::task::spawn_blocking(move || outside::edit(&program, &text)).await;
        match edited {
            Ok(Ok(text)) => return Ok(Some(text)),
            Ok(Err(error)) => self.state.tell(Style::Bad, &format!("the editor failed: {error}")),
            Err(_) => self.state.tell(Style::Bad, "the editor failed"),
        }
        Ok(None)
    }

    fn draw(&mut self) -> Result<(), Failure> {
        let (columns, rows) = size_of(io::stdout());
        let done = self.state.done(columns);
        let frame = frame::draw(&self.state, columns, rows, self.now());
        (self.dirty, self.drawn) = (false, Some(Instant::now()));
        self.screen.draw_with(&done, &frame.rows, columns, frame.cursor).map_err(lost)
    }

    /// Clears the redrawn area, so that only the scrollback is left on the screen.
    fn close(&mut self) -> Result<(), Failure> {
        if let Some(live) = &self.live {
            let text = format!("run {} is still open; start `fusee` again to resume it", live.run);
            self.state.tell(Style::Dim, &text);
        }
        let waiting = self.state.leave();
        if waiting > 0 {
            let waiting = words::count(waiting as u64, "message");
            let text = format!("{waiting} not sent; press up to recall what was typed");
            self.state.tell(Style::Dim, &text);
        }
        let (columns, _) = size_of(io::stdout());
        let done = self.state.done(columns);
        self.screen.draw(&done, &[], columns).map_err(lost)
    }
}

/// Feeds the run's events into the state; returns whether more can follow, or the error that ended the
/// stream.
async fn happen(live: &mut Option<Live>, state: &mut State, begun: Instant) -> Result<bool, String> {
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
        next = if taken < AT_ONCE { live.events.next().now_or_never() } else { None };
    }
    Ok(true)
}
