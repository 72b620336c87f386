//! The conversation as plain lines: what is read is a message or a command, answers go to stdout, the rest to stderr.
//! For pipes, logs and screen readers. `terminal` is the other face.

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

/// A second ctrl-c within this time leaves at once.
const IMPATIENCE: Duration = Duration::from_secs(2);

/// Whether the conversation goes on.
enum Next {
    Line,
    Leave,
}

struct Conversation<'s, 'p> {
    session: &'s mut Session<'p>,
    keyboard: Arc<Keyboard>,
    signals: Signals,
    /// Whether a person types: then there is a prompt, and a first ctrl-c only stops the turn.
    person: bool,
    exit: Exit,
}

/// Holds the conversation until there is nothing more to read. The exit code is that of the last task.
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
        output::error(&format!("{} answers; /help lists commands, /quit leaves\n", self.session.model()));
        let Some(left) = self.session.left_behind() else { return Ok(()) };
        let age = words::age(left.age_ms);
        if !left.open {
            output::error(&format!("last here ({age}): {} · /resume goes on with it\n", left.title));
            return Ok(());
        }
        output::error(&format!("this was cut off ({age}): {}\ngo on with it? y or n: ", left.title));
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

    /// What could not be done is told, and the conversation goes on.
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
                    output::error(&format!("the next message goes on with run {run}\n"));
                    Ok(Next::Line)
                }
                Err(failure) => Ok(self.failed(failure)),
            },
            Slash::Undo(name) => self.undo(name.as_deref()).await,
            Slash::PlanEdit(None) => {
                let problem = "in plain lines there is no editor: /plan edit FILE takes the plan from a file";
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

    /// Says what would be taken back; a person is asked before it is.
    async fn undo(&mut self, name: Option<&str>) -> Result<Next, Failure> {
        let (run, rows) = match self.session.undo(name) {
            Ok(planned) => planned,
            Err(failure) => return Ok(self.failed(failure)),
        };
        let text: String = rows.iter().map(|row| row.paint(false) + "\n").collect();
        output::print(&text)?;
        let Some(run) = run else { return Ok(Next::Line) };
        if self.person {
            output::error("take this back? y or n: ");
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
                        output::error(&format!("\nstopped at once; `fusee resume {run}` goes on\n"));
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
            return Err(Failure::failed(format!("the run was lost to a fault in fusee: {cause}"))
                .help(format!("what was committed is kept: fusee resume {run}")));
        }
        // Without a person a signal means the whole process.
        Ok(if cancelled.is_some() && !self.person { Next::Leave } else { Next::Line })
    }
}

/// How we are asked to stop.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    Interrupt,
    Terminate,
}

/// What asks us to stop.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn new() -> Result<Self, Failure> {
        let listen = |kind| signal(kind).map_err(|error| Failure::failed(format!("no signals: {error}")));
        Ok(Self { interrupt: listen(SignalKind::interrupt())?, terminate: listen(SignalKind::terminate())? })
    }

    async fn any(&mut self) -> Asked {
        tokio::select! {
            _ = self.interrupt.recv() => Asked::Interrupt,
            _ = self.terminate.recv() => Asked::Terminate,
        }
    }
}
