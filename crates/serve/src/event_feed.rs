//! The events of a run as server-sent events: from the journal, then live. A run of this process is followed with its
//! deltas; a run of another process is read from the journal whenever that changes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use fusee::engine::run::RunControl;
use fusee::journal::RunStatus;
use tokio::sync::{OwnedSemaphorePermit, watch};

use crate::event_hub::{EventHub, Following, encode};
use crate::journal_watch::JournalWatch;
use crate::problem::Problem;
use crate::site::{FoundRun, Site};

/// Events read from the journal at a time.
const PAGE: usize = 200;

/// Maximum number of events per second; a faster stream falls behind, and the reader gets a `gap`.
const EVENTS_PER_SECOND: u32 = 2_000;

/// Interval of comments on a quiet stream, so that a lost client is noticed.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// A stream of events.
pub(crate) struct EventFeed {
    site: Site,
    run: FoundRun,
    /// Number of the last event that was sent.
    cursor: u64,
    live: Option<LiveFeed>,
    watch: JournalWatch,
    pace: Pace,
    ended: bool,
    _slot: OwnedSemaphorePermit,
}

/// A run that this process works on.
struct LiveFeed {
    control: Arc<RunControl>,
    shared: Arc<EventHub>,
    newest: watch::Receiver<u64>,
}

/// Bytes to send.
struct Sending {
    events: u32,
    bytes: Bytes,
}

impl EventFeed {
    /// The events after number `cursor`.
    pub(crate) fn new(site: Site, run: FoundRun, cursor: u64, slot: OwnedSemaphorePermit) -> Self {
        let watch = site.watch(&run.journal);
        Self { site, run, cursor, live: None, watch, pace: Pace::default(), ended: false, _slot: slot }
    }

    /// The next bytes of the stream; `None` at its end.
    pub(crate) async fn next(&mut self) -> Option<Bytes> {
        loop {
            if self.ended {
                return None;
            }
            match tokio::time::timeout(KEEP_ALIVE, self.more()).await {
                Ok(Ok(None)) => {}
                Ok(Ok(Some(Sending { events, bytes }))) => {
                    self.pace.wait(events).await;
                    return Some(bytes);
                }
                Ok(Err(problem)) => {
                    self.ended = true;
                    let text = serde_json::to_string(&problem.message()).unwrap_or_default();
                    return Some(format!("event: failed\ndata: {text}\n\n").into());
                }
                Err(_) => return Some(Bytes::from_static(b":\n\n")),
            }
        }
    }

    /// Waits for events. `None` if it has to be asked again. Nothing is lost if it is dropped while it waits.
    async fn more(&mut self) -> Result<Option<Sending>, Problem> {
        if self.live.is_none()
            && let Some(control) = self.site.live.get(self.run.journal.path(), self.run.id())
        {
            let (run, source) = (self.run.clone(), Arc::clone(&control));
            let shared = self.site.read(move |site| site.event_hub(&run, &source)).await?;
            let newest = shared.subscribe();
            self.live = Some(LiveFeed { control, shared, newest });
        }
        match &mut self.live {
            None => self.recorded().await,
            Some(live) => {
                live.newest.mark_unchanged();
                match live.shared.following(self.cursor) {
                    Following::Chunk(chunk) => {
                        self.cursor = chunk.last;
                        Ok(Some(Sending { events: chunk.events, bytes: chunk.bytes }))
                    }
                    Following::Older(to) => self.older(to).await,
                    // The feed outlives its watchers, so that this cannot fail.
                    Following::Nothing => {
                        let _ = live.newest.changed().await;
                        Ok(None)
                    }
                    Following::Ended => {
                        self.live = None;
                        self.recorded().await
                    }
                }
            }
        }
    }

    /// Events up to number `to` of a run of this process, from its own subscription.
    async fn older(&mut self, to: u64) -> Result<Option<Sending>, Problem> {
        let Some(live) = &self.live else { return Ok(None) };
        let mut stream = live.control.events_after(self.cursor);
        let (mut text, mut events, mut cursor) = (String::new(), 0, self.cursor);
        while cursor < to && (events as usize) < PAGE {
            let Some(event) = stream.next().await? else { break };
            // The numbers that a subscription skips while it catches up are deltas, and were never sent.
            cursor = event.seq.max(cursor);
            events += 1;
            encode(&event, &mut text);
        }
        if events == 0 {
            self.live = None;
            return Ok(None);
        }
        self.cursor = cursor;
        Ok(Some(Sending { events, bytes: text.into() }))
    }

    /// Events of the journal.
    async fn recorded(&mut self) -> Result<Option<Sending>, Problem> {
        let (run, cursor) = (self.run.clone(), self.cursor);
        let (events, status) = self
            .site
            .read(move |_| {
                // Read before the events: a run that has ended gets no more of them.
                let status = run.journal.run(run.id().as_str())?.status;
                Ok((run.journal.events(run.id(), cursor, u64::MAX, PAGE)?, status))
            })
            .await?;
        if let Some(last) = events.last() {
            self.cursor = last.seq;
            let mut text = String::new();
            events.iter().for_each(|event| encode(event, &mut text));
            let events = u32::try_from(events.len()).unwrap_or(u32::MAX);
            return Ok(Some(Sending { events, bytes: text.into() }));
        }
        if status != RunStatus::Open {
            self.ended = true;
            return Ok(Some(Sending { events: 0, bytes: Bytes::from_static(b"event: end\ndata: {}\n\n") }));
        }
        self.watch.changed().await;
        Ok(None)
    }
}

/// Keeps a stream to a number of events per second.
#[derive(Default)]
struct Pace {
    window: Option<Instant>,
    sent: u32,
}

impl Pace {
    async fn wait(&mut self, events: u32) {
        let now = Instant::now();
        let started = *self.window.get_or_insert(now);
        self.sent += events;
        if started.elapsed() >= Duration::from_secs(1) {
            (self.window, self.sent) = (Some(now), events);
        } else if self.sent > EVENTS_PER_SECOND {
            tokio::time::sleep(Duration::from_secs(1).saturating_sub(started.elapsed())).await;
            (self.window, self.sent) = (None, 0);
        }
    }
}
