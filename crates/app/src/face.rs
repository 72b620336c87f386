//! Faces: readers of a run's events that show them. They decide nothing about the run.
//!
//! A face has a thread of its own, so that a terminal or a pipe that stands still holds up nobody but itself.

mod json;
pub(crate) mod line;
mod log;
mod markdown;
mod phases;
mod plain;
#[cfg(test)]
pub(crate) mod scene;
mod show;
pub(crate) mod summary;
pub(crate) mod terminal;
mod transcript;
pub(crate) mod words;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Thread;
use std::time::{Duration, Instant};

use fusee_engine::journal::{Events, JournalError, Stamped};
use futures_util::FutureExt as _;
use tokio::sync::oneshot;

use crate::failure::Failure;

pub(crate) use json::Json;
pub(crate) use log::{Log, PhasePlace};
pub(crate) use plain::Plain;
#[cfg(test)]
pub(crate) use show::Wording;
pub(crate) use show::{Plan, Show, colour};
pub(crate) use terminal::columns_of_stdout;
pub(crate) use transcript::Transcript;

/// Shows events.
pub(crate) trait Face: Send {
    /// One more happened.
    fn show(&mut self, event: &Stamped) -> io::Result<()>;

    /// One that an earlier process showed: not to be told again, but to be known.
    fn recall(&mut self, _event: &Stamped) {}

    /// Nothing more is there to be shown for now: what was held back for a larger write goes out.
    fn rest(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// How long what happens may be gathered before it is shown together. The first after a pause is shown at once.
    fn breath(&self) -> Duration {
        Duration::ZERO
    }

    /// How often it wants to redraw while nothing happens.
    fn pace(&self) -> Option<Duration> {
        None
    }

    /// Time has passed.
    fn tick(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// All was shown, or nothing more can be: leaves the terminal as it was.
    fn close(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A face at work.
pub(crate) struct Watching {
    ended: oneshot::Receiver<Result<(), Failure>>,
    thread: Thread,
    hurry: Arc<AtomicBool>,
}

impl Watching {
    /// Waits until all events were shown.
    pub(crate) async fn ended(self) -> Result<(), Failure> {
        self.hurry.store(true, Ordering::Release);
        self.thread.unpark();
        self.ended.await.unwrap_or_else(|_| Err(Failure::failed("the output was lost to a fault in fusee")))
    }
}

/// Lets a face follow events to their end. A reader that goes away does not stop the run: it is in the journal.
pub(crate) fn watch(mut face: Box<dyn Face>, events: Events) -> Result<Watching, Failure> {
    let runtime = tokio::runtime::Handle::current();
    let (done, ended) = oneshot::channel();
    let hurry = Arc::new(AtomicBool::new(false));
    let breathing = Breathing { hurry: Arc::clone(&hurry), last: None };
    let follow = move || {
        let followed = runtime.block_on(follow(&mut *face, events, breathing));
        let closed = face.close().map_err(Lost::Output);
        let result = followed.and(closed).or_else(Lost::into_result);
        // Whoever waited may be gone.
        let _ = done.send(result);
    };
    let thread = std::thread::Builder::new()
        .name("face".to_owned())
        .spawn(follow)
        .map_err(|error| Failure::failed(format!("cannot start a thread: {error}")))?
        .thread()
        .clone();
    Ok(Watching { ended, thread, hurry })
}

/// The pauses of a face that shows several events at once, unless somebody waits for its end.
struct Breathing {
    hurry: Arc<AtomicBool>,
    last: Option<Instant>,
}

impl Breathing {
    /// Stands still until a breath has passed since the last one ended.
    fn pause(&mut self, breath: Duration) {
        let rest = self.last.map_or(Duration::ZERO, |last| breath.saturating_sub(last.elapsed()));
        if !rest.is_zero() && !self.hurry.load(Ordering::Acquire) {
            std::thread::park_timeout(rest);
        }
        self.last = Some(Instant::now());
    }
}

enum Lost {
    Output(io::Error),
    Journal(JournalError),
}

impl Lost {
    fn into_result(self) -> Result<(), Failure> {
        match self {
            Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            Self::Output(error) => Err(Failure::failed(format!("cannot write the output: {error}"))),
            Self::Journal(error) => Err(error.into()),
        }
    }
}

async fn follow(face: &mut dyn Face, mut events: Events, mut breathing: Breathing) -> Result<(), Lost> {
    loop {
        let next = match events.next().now_or_never() {
            Some(next) => next,
            None => {
                face.rest().map_err(Lost::Output)?;
                match face.pace() {
                    None => {
                        let next = events.next().await;
                        breathing.pause(face.breath());
                        next
                    }
                    Some(pace) => match tokio::time::timeout(pace, events.next()).await {
                        Ok(next) => next,
                        Err(_) => {
                            face.tick().map_err(Lost::Output)?;
                            continue;
                        }
                    },
                }
            }
        };
        match next.map_err(Lost::Journal)? {
            Some(event) => face.show(&event).map_err(Lost::Output)?,
            None => return Ok(()),
        }
    }
}
