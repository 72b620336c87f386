//! User interfaces: readers that render a run's event stream. They never influence the run.
//!
//! Each one runs on its own thread, so a blocked terminal or pipe stalls only its own output.

pub(crate) mod activity;
pub(crate) mod approval_prompt;
pub(crate) mod benchmark;
pub(crate) mod call_diff;
pub(crate) mod event_pages;
pub(crate) mod format;
mod json;
pub(crate) mod line;
mod log;
pub(crate) mod markdown;
pub(crate) mod notifier;
mod options;
mod phases;
mod plain;
pub(crate) mod stdin_approver;
pub(crate) mod summary;
pub(crate) mod terminal;
mod transcript;

#[cfg(test)]
pub(crate) mod fixtures;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Thread;
use std::time::{Duration, Instant};

use fusee::engine::journal::{EventRecord, EventStream, EventTail, JournalError};
use futures_util::FutureExt as _;
use tokio::sync::oneshot;

use crate::process::error::CliError;

pub(crate) use json::JsonLines;
pub(crate) use log::{Log, PhaseLogTarget};
#[cfg(test)]
pub(crate) use options::AnswerStyle;
pub(crate) use options::{RunHeader, UiOptions, colour};
pub(crate) use plain::PlainUi;
pub(crate) use terminal::columns_of_stdout;
pub(crate) use transcript::Transcript;

/// Renders the events of a run.
pub(crate) trait Ui: Send {
    /// Renders one event.
    fn show(&mut self, event: &EventRecord) -> io::Result<()>;

    /// Takes note of an event that an earlier process already rendered, without rendering it again.
    fn note_rendered(&mut self, _event: &EventRecord) {}

    /// Called when no further event is ready: flushes output that was buffered for a larger write.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// How long events may be batched before they are rendered. The first event after a pause is rendered at
    /// once.
    fn batch_delay(&self) -> Duration {
        Duration::ZERO
    }

    /// Redraw interval while no events arrive; `None` if no redraw is needed.
    fn redraw_interval(&self) -> Option<Duration> {
        None
    }

    /// Called when the interval from [`redraw_interval`](Self::pace) has elapsed.
    fn tick(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Called after the last event, or after an error: restores the terminal.
    fn close(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Events of a run in their order: of this process, or of another one.
pub(crate) trait EventSource: Send + 'static {
    /// Waits for the next event; `None` at the end. A caller may give up waiting and call it again.
    fn next(&mut self) -> impl Future<Output = Result<Option<Arc<EventRecord>>, JournalError>> + Send;
}

impl EventSource for EventStream {
    async fn next(&mut self) -> Result<Option<Arc<EventRecord>>, JournalError> {
        Self::next(self).await
    }
}

impl EventSource for EventTail {
    async fn next(&mut self) -> Result<Option<Arc<EventRecord>>, JournalError> {
        Self::next(self).await
    }
}

/// Maximum time that [`UiThread::stop`] waits.
const STOP_TIME: Duration = Duration::from_secs(1);

/// Handle to a UI thread started by [`watch`].
pub(crate) struct UiThread {
    ended: oneshot::Receiver<Result<(), CliError>>,
    stop: oneshot::Sender<()>,
    thread: Thread,
    skip_delay: Arc<AtomicBool>,
}

impl UiThread {
    /// Waits until all events have been rendered.
    pub(crate) async fn ended(mut self) -> Result<(), CliError> {
        self.until_ended().await
    }

    /// Waits until all events have been rendered; a caller may give up waiting, and then has to [`stop`](Self::stop) it.
    pub(crate) async fn until_ended(&mut self) -> Result<(), CliError> {
        self.skip_delay.store(true, Ordering::Release);
        self.thread.unpark();
        (&mut self.ended)
            .await
            .unwrap_or_else(|_| Err(CliError::failed("internal error: the output thread panicked")))
    }
}

impl UiThread {
    /// Leaves the remaining events out. Waits for the thread, which uses the runtime, unless its output is stuck.
    pub(crate) async fn stop(self) {
        // It may have ended by itself.
        let _ = self.stop.send(());
        self.thread.unpark();
        let _ = tokio::time::timeout(STOP_TIME, self.ended).await;
    }
}

/// Completes when a [`UiThread`] is stopped, and never if it is dropped.
async fn stopped(stop: oneshot::Receiver<()>) {
    if stop.await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Starts a thread that renders `events` to their end. A closed output does not stop the run, which is
/// journaled.
pub(crate) fn watch(mut ui: Box<dyn Ui>, events: impl EventSource) -> Result<UiThread, CliError> {
    let runtime = tokio::runtime::Handle::current();
    let (done, ended) = oneshot::channel();
    let (stop, stop_received) = oneshot::channel();
    let skip_delay = Arc::new(AtomicBool::new(false));
    let breathing = BatchDelay { skip_delay: Arc::clone(&skip_delay), last: None };
    let follow = move || {
        let followed = runtime.block_on(async {
            tokio::select! {
                followed = follow(&mut *ui, events, breathing) => followed,
                () = stopped(stop_received) => Ok(()),
            }
        });
        let closed = ui.close().map_err(LostOutput::Output);
        let result = followed.and(closed).or_else(LostOutput::into_result);
        // The receiver may have been dropped.
        let _ = done.send(result);
    };
    let thread = std::thread::Builder::new()
        .name("face".to_owned())
        .spawn(follow)
        .map_err(|error| CliError::failed(format!("cannot start a thread: {error}")))?
        .thread()
        .clone();
    Ok(UiThread { ended, stop, thread, skip_delay })
}

/// Batching delay between reads of the event stream; skipped once a caller waits for the end.
struct BatchDelay {
    skip_delay: Arc<AtomicBool>,
    last: Option<Instant>,
}

impl BatchDelay {
    /// Sleeps until `batch_delay` has passed since the end of the previous pause.
    fn pause(&mut self, breath: Duration) {
        let rest = self.last.map_or(Duration::ZERO, |last| breath.saturating_sub(last.elapsed()));
        if !rest.is_zero() && !self.skip_delay.load(Ordering::Acquire) {
            std::thread::park_timeout(rest);
        }
        self.last = Some(Instant::now());
    }
}

enum LostOutput {
    Output(io::Error),
    Journal(JournalError),
}

impl LostOutput {
    fn into_result(self) -> Result<(), CliError> {
        match self {
            Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            Self::Output(error) => Err(CliError::failed(format!("cannot write the output: {error}"))),
            Self::Journal(error) => Err(error.into()),
        }
    }
}

async fn follow(
    ui: &mut dyn Ui,
    mut events: impl EventSource,
    mut breathing: BatchDelay,
) -> Result<(), LostOutput> {
    loop {
        let next = match events.next().now_or_never() {
            Some(next) => next,
            None => {
                ui.flush().map_err(LostOutput::Output)?;
                match ui.redraw_interval() {
                    None => {
                        let next = events.next().await;
                        breathing.pause(ui.batch_delay());
                        next
                    }
                    Some(pace) => match tokio::time::timeout(pace, events.next()).await {
                        Ok(next) => next,
                        Err(_) => {
                            ui.tick().map_err(LostOutput::Output)?;
                            continue;
                        }
                    },
                }
            }
        };
        match next.map_err(LostOutput::Journal)? {
            Some(event) => ui.show(&event).map_err(LostOutput::Output)?,
            None => return Ok(()),
        }
    }
}
