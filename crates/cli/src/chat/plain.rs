//! The chat as plain lines, for pipes, logs and screen readers: each line read is a message or a command,
//! answers go to stdout, everything else to stderr. `terminal` is the other UI.

mod keyboard;
mod renderer;

use std::sync::Arc;
use std::time::{Duration, Instant};

use fusee::engine::run::{ExitStatus, RunOutcome};
use tokio::signal::unix::{Signal, SignalKind, signal};

use self::keyboard::{Keyboard, QuestionContext};
use self::renderer::PlainRenderer;
use super::commands::{InputLine, PLAIN, SlashCommand, parse_line_in};
use super::session::{Chat, ChatRun, ResumeOutcome};
use super::user_command::{CommandOutput, UserCommand};
use crate::command::run_setup::StartedRun;
use crate::process::environment::Terminals;
use crate::process::error::CliError;
use crate::process::stdio;
use crate::ui::{self, PlainUi, format};

/// A second ctrl-c within this time exits at once.
const DOUBLE_PRESS_WINDOW: Duration = Duration::from_secs(2);

/// Whether the chat continues.
enum ChatFlow {
    Continue,
    Exit,
}

struct PlainChat<'s, 'p> {
    session: &'s mut Chat<'p>,
    keyboard: Arc<Keyboard>,
    signals: Signals,
    /// Whether stdin is a terminal: then there is a prompt, and the first ctrl-c only stops the turn.
    interactive: bool,
    exit: ExitStatus,
}

/// Runs the chat until the end of the input. Returns the exit code of the last task.
pub(crate) async fn chat(session: &mut Chat<'_>, terminals: Terminals) -> Result<ExitStatus, CliError> {
    let context = QuestionContext {
        directory: session.directory().to_owned(),
        confined: session.sandbox_text(),
        approvals: session.approvals(),
    };
    let keyboard = Arc::new(Keyboard::listen(context)?);
    if terminals.stdin {
        session.ask(Arc::clone(&keyboard) as Arc<_>);
    }
    let signals = Signals::new()?;
    let mut conversation =
        PlainChat { session, keyboard, signals, interactive: terminals.stdin, exit: ExitStatus::Completed };
    conversation.show_greeting().await?;
    conversation.run_loop().await?;
    Ok(conversation.exit)
}

impl PlainChat<'_, '_> {
    async fn show_greeting(&mut self) -> Result<(), CliError> {
        if !self.interactive {
            return Ok(());
        }
        stdio::error(&format!("model {}; /help lists commands, /quit exits\n", self.session.model()));
        let Some(left) = self.session.resumable_run() else { return Ok(()) };
        let age = format::age(left.age_ms);
        if !left.open {
            stdio::error(&format!("last run here ({age}): {} · /resume continues it\n", left.title));
            return Ok(());
        }
        stdio::error(&format!("this run was interrupted ({age}): {}\nresume it? y or n: ", left.title));
        if self.keyboard.read_yes().await {
            self.command(SlashCommand::Resume(Some(left.run.to_string()))).await?;
        }
        Ok(())
    }

    async fn run_loop(&mut self) -> Result<(), CliError> {
        loop {
            if self.interactive {
                stdio::error("> ");
            }
            let line = tokio::select! {
                line = self.keyboard.message() => line,
                _ = self.signals.any() => {
                    if !self.interactive {
                        self.exit = ExitStatus::Cancelled;
                    }
                    None
                }
            };
            let Some(line) = line else { return Ok(()) };
            let next = match parse_line_in(&line, self.session.directory()) {
                InputLine::Nothing => ChatFlow::Continue,
                InputLine::Request(request) => match self.session.begin(request).await {
                    Ok(begun) => self.watch_run(begun).await?,
                    Err(failure) => self.failed(failure),
                },
                InputLine::Shell(line) => self.user_command(&line).await?,
                InputLine::Command(slash) => self.command(slash).await?,
                InputLine::Unknown(problem) => self.failed(CliError::usage(problem)),
            };
            if matches!(next, ChatFlow::Exit) {
                return Ok(());
            }
        }
    }

    /// Reports an error; the chat continues.
    fn failed(&mut self, failure: CliError) -> ChatFlow {
        self.exit = failure.tell();
        ChatFlow::Continue
    }

    async fn command(&mut self, slash: SlashCommand) -> Result<ChatFlow, CliError> {
        match slash {
            SlashCommand::Quit => Ok(ChatFlow::Exit),
            SlashCommand::Resume(name) => match self.session.resume(name.as_deref()) {
                Ok(ResumeOutcome::Running(begun)) => self.watch_run(*begun).await,
                Ok(ResumeOutcome::Continues(run)) => {
                    if self.interactive {
                        let rows = self.session.earlier(PLAIN)?;
                        stdio::error(&rows.iter().map(|row| row.paint(false) + "\n").collect::<String>());
                    }
                    stdio::error(&format!("the next message continues run {run}\n"));
                    Ok(ChatFlow::Continue)
                }
                Err(failure) => Ok(self.failed(failure)),
            },
            SlashCommand::Undo(name) => self.undo(name.as_deref()).await,
            SlashCommand::Background => {
                let problem = "no task is running; `fusee run --detach` starts one in the background";
                Ok(self.failed(CliError::usage(problem)))
            }
            SlashCommand::PlanEdit(None) => {
                let problem = "no editor in plain mode; /plan edit FILE reads the plan from a file";
                Ok(self.failed(CliError::usage(problem)))
            }
            slash => match self.session.answer(&slash, PLAIN) {
                Ok(rows) => {
                    let text: String = rows.iter().map(|row| row.paint(false) + "\n").collect();
                    stdio::print(&text).map(|()| ChatFlow::Continue)
                }
                Err(failure) => Ok(self.failed(failure)),
            },
        }
    }

    /// Runs a command of the user's; its output goes to stdout.
    async fn user_command(&mut self, line: &str) -> Result<ChatFlow, CliError> {
        let mut command = match UserCommand::start(line, self.session.directory()) {
            Ok(command) => command,
            Err(error) => return Ok(self.failed(CliError::failed(format!("cannot run `{line}`: {error}")))),
        };
        loop {
            tokio::select! {
                output = command.next() => match output {
                    CommandOutput::Line(text) => stdio::print(&format!("{text}\n"))?,
                    CommandOutput::Ended(end) => {
                        if !end.is_empty() {
                            stdio::error(&format!("{end}\n"));
                        }
                        self.session.note_command(command.for_model(&end));
                        return Ok(ChatFlow::Continue);
                    }
                },
                _ = self.signals.any() => command.stop(),
            }
        }
    }

    /// Prints what would be undone, and asks for confirmation if there is a user.
    async fn undo(&mut self, name: Option<&str>) -> Result<ChatFlow, CliError> {
        let (run, rows) = match self.session.undo(name) {
            Ok(planned) => planned,
            Err(failure) => return Ok(self.failed(failure)),
        };
        let text: String = rows.iter().map(|row| row.paint(false) + "\n").collect();
        stdio::print(&text)?;
        let Some(run) = run else { return Ok(ChatFlow::Continue) };
        if self.interactive {
            stdio::error("undo these changes? y or n: ");
            if !self.keyboard.read_yes().await {
                stdio::error("nothing was undone\n");
                return Ok(ChatFlow::Continue);
            }
        }
        match self.session.answer(&SlashCommand::UndoNow(run.to_string()), PLAIN) {
            Ok(rows) => {
                let text: String = rows.iter().map(|row| row.paint(false) + "\n").collect();
                stdio::print(&text).map(|()| ChatFlow::Continue)
            }
            Err(failure) => Ok(self.failed(failure)),
        }
    }

    async fn watch_run(&mut self, begun: ChatRun) -> Result<ChatFlow, CliError> {
        let ChatRun { started: StartedRun { running, header, .. }, problems } = begun;
        for problem in problems {
            stdio::error(&format!("warning: {problem}\n"));
        }
        let (run, cancel, turns) = (running.id().clone(), running.cancellation(), running.turn_stop());
        let ui = PlainUi::new(stdio::ExactStdout, std::io::BufWriter::new(std::io::stderr()), header);
        let ui = PlainRenderer { ui, keyboard: Arc::clone(&self.keyboard) };
        let watching = ui::watch(Box::new(ui), running.events())?;
        let ended = async {
            let outcome = running.outcome().await;
            watching.ended().await.map(|()| outcome)
        };
        tokio::pin!(ended);
        let (mut stopped, mut cancelled): (Option<Instant>, Option<Instant>) = (None, None);
        let soon = |at: Option<Instant>| at.is_some_and(|at| at.elapsed() < DOUBLE_PRESS_WINDOW);
        let outcome = loop {
            tokio::select! {
                outcome = &mut ended => break outcome?,
                asked = self.signals.any() => {
                    let key = self.interactive && asked == StopSignal::Interrupt;
                    if key && cancelled.is_none() && !soon(stopped.replace(Instant::now())) && turns.stop() {
                        continue;
                    }
                    if self.interactive && soon(cancelled) {
                        stdio::error(&format!("\nstopped immediately; run `fusee resume {run}` to continue\n"));
                        self.exit = ExitStatus::Cancelled;
                        return Ok(ChatFlow::Exit);
                    }
                    cancel.cancel();
                    cancelled = Some(Instant::now());
                }
            }
        };
        self.session.ended(&run, &outcome);
        self.exit = outcome.exit();
        if let RunOutcome::Lost(cause) = &outcome {
            return Err(CliError::failed(format!("internal error: the run panicked: {cause}"))
                .help(format!("all committed steps are kept; run `fusee resume {run}` to continue")));
        }
        // Without a user, a signal is meant for the entire process.
        Ok(if cancelled.is_some() && !self.interactive { ChatFlow::Exit } else { ChatFlow::Continue })
    }
}

/// Which signal asked the process to stop.
#[derive(Clone, Copy, PartialEq, Eq)]
enum StopSignal {
    Interrupt,
    Terminate,
}

/// Streams of the signals that stop the process.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn new() -> Result<Self, CliError> {
        let listen = |kind| {
            signal(kind).map_err(|error| CliError::failed(format!("cannot listen for signals: {error}")))
        };
        Ok(Self { interrupt: listen(SignalKind::interrupt())?, terminate: listen(SignalKind::terminate())? })
    }

    async fn any(&mut self) -> StopSignal {
        tokio::select! {
            _ = self.interrupt.recv() => StopSignal::Interrupt,
            _ = self.terminate.recv() => StopSignal::Terminate,
        }
    }
}
