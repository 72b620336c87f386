//! The chat as plain lines, for pipes, logs and screen readers: each line read is a message or a command,
//! answers go to stdout, everything else to stderr. `terminal` is the other UI.

mod keyboard;
mod showing;

use std::sync::Arc;
use std::time::{Duration, Instant};

use fusee_engine::run::{Exit, RunOutcome};
use tokio::signal::unix::{Signal, SignalKind, signal};

use self::keyboard::{Keyboard, Room};
use self::showing::Showing;
use super::commands::{PLAIN, Said, Slash, understand};
use super::session::{Begun, Returned, Session};
use crate::environment::Terminals;
use crate::face::{self, Plain, words};
use crate::failure::Failure;
use crate::output;

/// A second ctrl-c within this time exits at once.
const IMPATIENCE: Duration = Duration::from_secs(2);

/// Whether the chat continues.
enum Next {
    Line,
    Leave,
}

struct Conversation<'s, 'p> {
    session: &'s mut Session<'p>,
    keyboard: Arc<Keyboard>,
    signals: Signals,
    /// Whether stdin is a terminal: then there is a prompt, and the first ctrl-c only stops the turn.
    person: bool,
    exit: Exit,
}

/// Runs the chat until the end of the input. Returns the exit code of the last task.
pub(crate) async fn converse(session: &mut Session<'_>, terminals: Terminals) -> Result<Exit, Failure> {
    let room = Room {
        directory: session.directory().to_owned(),
        confined: session.confines(),
        approvals: session.approvals(),
    };
    let keyboard = Arc::new(Keyboard::listen(room)?);
    if terminals.stdin {
        session.ask(Arc::clone(&keyboard) as Arc<_>);
    }
    let signals = Signals::new()?;
    let mut conversation =
        Conversation { session, keyboard, signals, person: terminals.stdin, exit: Exit::Completed };
    conversation.greet().await?;
    conversation.hold().await?;
    Ok(conversation.exit)
}

impl Conversation<'_, '_> {
    async fn greet(&mut self) -> Result<(), Failure> {
        if !self.person {
            return Ok(());
        }
        output::error(&format!("model {}; /help lists commands, /quit exits\n", self.session.model()));
        let Some(left) = self.session.left_behind() else { return Ok(()) };
        let age = words::age(left.age_ms);
        if !left.open {
            output::error(&format!("last run here ({age}): {} · /resume continues it\n", left.title));
            return Ok(());
        }
        output::error(&format!("this run was interrupted ({age}): {}\nresume it? y or n: ", left.title));
        if self.keyboard.yes().await {
            self.command(Slash::Resume(Some(left.run.to_string()))).await?;
        }
        Ok(())
    }

    async fn hold(&mut self) -> Result<(), Failure> {
        loop {
            if self.person {
                output::error("> ");
            }
            let line = tokio::select! {
                line = self.keyboard.message() => line,
                _ = self.signals.any() => {
                    if !self.person {
                        self.exit = Exit::Cancelled;
                    }
                    None
                }
            };
            let Some(line) = line else { return Ok(()) };
            let next = match understand(&line) {
                Said::Nothing => Next::Line,
                Said::Errand(errand) => match self.session.begin(errand).await {
                    Ok(begun) => self.see_through(begun).await?,
                    Err(failure) => self.failed(failure),
                },
                Said::Command(slash) => self.command(slash).await?,
                Said::Unknown(problem) => self.failed(Failure::usage(problem)),
            };
            if matches!(next, Next::Leave) {
                return Ok(());
            }
        }
    }

    /// Reports an error; the chat continues.
    fn failed(&mut self, failure: Failure) -> Next {
        self.exit = failure.tell();
        Next::Line
    }

    async fn command(&mut self, slash: Slash) -> Result<Next, Failure> {
        match slash {
            Slash::Quit => Ok(Next::Leave),
            Slash::Resume(name) => match self.session.resume(name.as_deref()) {
                Ok(Returned::Running(begun)) => self.see_through(*begun).await,
                Ok(Returned::Continues(run)) => {
                    output::error(&format!("the next message continues run {run}\n"));
                    Ok(Next::Line)
                }
                Err(failure) => Ok(self.failed(failure)),
            },
            Slash::Undo(name) => self.undo(name.as_deref()).await,
            Slash::PlanEdit(None) => {
                let problem = "no editor in plain mode; /plan edit FILE reads the plan from a file";
                Ok(self.failed(Failure::usage(problem)))
            }
            slash => match self.session.answer(&slash, PLAIN) {
                Ok(rows) => {
                    let text: String = rows.iter().map(|row| row.paint(false) + "\n").collect();
                    output::print(&text).map(|()| Next::Line)
                }
                Err(failure) => Ok(self.failed(failure)),
            },
        }
    }

    /// Prints what would be undone, and asks for confirmation if there is a user.
    async fn undo(&mut self, name: Option<&str>) -> Result<Next, Failure> {
        let (run, rows) = match self.session.undo(name) {
            Ok(planned) => planned,
            Err(failure) => return Ok(self.failed(failure)),
        };
        let text: String = rows.iter().map(|row| row.paint(false) + "\n").collect();
        output::print(&text)?;
        let Some(run) = run else { return Ok(Next::Line) };
        if self.person {
            output::error("undo these changes? y or n: ");
            if !self.keyboard.yes().await {
                output::error("nothing was undone\n");
                return Ok(Next::Line);
            }
        }
        match self.session.answer(&Slash::UndoNow(run.to_string()), PLAIN) {
            Ok(rows) => {
                let text: String = rows.iter().map(|row| row.paint(false) + "\n").collect();
                output::print(&text).map(|()| Next::Line)
            }
            Err(failure) => Ok(self.failed(failure)),
        }
    }

    async fn see_through(&mut self, begun: Begun) -> Result<Next, Failure> {
        let Begun { running, plan, problems } = begun;
        for problem in problems {
            output::error(&format!("warning: {problem}\n"));
        }
        let (run, cancel, turns) = (running.id().clone(), running.cancellation(), running.turn_stop());
        let face = Plain::new(std::io::stdout(), std::io::BufWriter::new(std::io::stderr()), plan);
        let face = Showing { face, keyboard: Arc::clone(&self.keyboard) };
        let watching = face::watch(Box::new(face), running.events())?;
        let ended = async {
            let outcome = running.outcome().await;
            watching.ended().await.map(|()| outcome)
        };
        tokio::pin!(ended);
        let (mut stopped, mut cancelled): (Option<Instant>, Option<Instant>) = (None, None);
        let soon = |at: Option<Instant>| at.is_some_and(|at| at.elapsed() < IMPATIENCE);
        let outcome = loop {
            tokio::select! {
                outcome = &mut ended => break outcome?,
                asked = self.signals.any() => {
                    let key = self.person && asked == Asked::Interrupt;
                    if key && cancelled.is_none() && !soon(stopped.replace(Instant::now())) && turns.stop() {
                        continue;
                    }
                    if self.person && soon(cancelled) {
                        output::error(&format!("\nstopped immediately; run `fusee resume {run}` to continue\n"));
                        self.exit = Exit::Cancelled;
                        return Ok(Next::Leave);
                    }
                    cancel.cancel();
                    cancelled = Some(Instant::now());
                }
            }
        };
        self.session.ended(&run, &outcome);
        self.exit = outcome.exit();
        if let RunOutcome::Lost(cause) = &outcome {
            return Err(Failure::failed(format!("internal error: the run panicked: {cause}"))
                .help(format!("all committed steps are kept; run `fusee resume {run}` to continue")));
        }
        // Without a user, a signal is meant for the entire process.
        Ok(if cancelled.is_some() && !self.person { Next::Leave } else { Next::Line })
    }
}

/// Which signal asked the process to stop.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    Interrupt,
    Terminate,
}

/// Streams of the signals that stop the process.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn new() -> Result<Self, Failure> {
        let listen = |kind| {
            signal(kind).map_err(|error| Failure::failed(format!("cannot listen for signals: {error}")))
        };
        Ok(Self { interrupt: listen(SignalKind::interrupt())?, terminate: listen(SignalKind::terminate())? })
    }

    async fn any(&mut self) -> Asked {
        tokio::select! {
            _ = self.interrupt.recv() => Asked::Interrupt,
            _ = self.terminate.recv() => Asked::Terminate,
        }
    }
}
