//! The events of a run as server-sent events: from the journal, then live. A run of this process is followed with its
//! deltas; a run of another process is read from the journal whenever that changes.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use bytes::Bytes;
use fusee::journal::{EventRecord, EventStream, RunStatus};
use futures_util::FutureExt as _;
use tokio::sync::OwnedSemaphorePermit;

use crate::journal_watch::JournalWatch;
use crate::problem::Problem;
use crate::site::{FoundRun, Site};

/// Events read from the journal at a time.
const PAGE: usize = 200;

/// Maximum number of events per second; a reader that wants more falls behind and is told so.
const EVENTS_PER_SECOND: u32 = 2_000;

/// Interval of comments on a quiet stream, so that a lost client is noticed.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// Events within this time are sent together.
const TOGETHER: Duration = Duration::from_millis(25);

/// Bytes of one chunk, approximately.
const CHUNK: usize = 64 << 10;

/// A stream of events.
pub(crate) struct EventFeed {
    site: Site,
    run: FoundRun,
    /// Number of the last event that was sent.
    cursor: u64,
    live: Option<EventStream>,
    watch: JournalWatch,
    ready: VecDeque<String>,
    pace: Pace,
    /// When the newest chunk was sent.
    sent: Instant,
    ended: bool,
    _slot: OwnedSemaphorePermit,
}

impl EventFeed {
    /// The events after number `cursor`.
    pub(crate) fn new(site: Site, run: FoundRun, cursor: u64, slot: OwnedSemaphorePermit) -> Self {
        let watch = site.watch(&run.journal);
        let (ready, pace, sent) = (VecDeque::new(), Pace::default(), Instant::now());
        Self { site, run, cursor, live: None, watch, ready, pace, sent, ended: false, _slot: slot }
    }

    /// The next bytes of the stream; `None` at its end.
    pub(crate) async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(chunk) = self.chunk().await {
                return Some(chunk);
            }
            if self.ended {
                return None;
            }
            let wait = tokio::time::timeout(KEEP_ALIVE, self.more());
            match wait.await {
                Ok(Ok(())) => {}
                Ok(Err(problem)) => {
                    self.ended = true;
                    let text = serde_json::to_string(&problem.message()).unwrap_or_default();
                    self.ready.push_back(format!("event: failed\ndata: {text}\n\n"));
                }
                Err(_) => return Some(Bytes::from_static(b":\n\n")),
            }
        }
    }

    /// What is ready, as one chunk.
    async fn chunk(&mut self) -> Option<Bytes> {
        let mut chunk = self.ready.pop_front()?;
        let mut events = 1;
        while chunk.len() < CHUNK
            && let Some(next) = self.ready.pop_front()
        {
            chunk.push_str(&next);
            events += 1;
        }
        self.pace.wait(events).await;
        self.sent = Instant::now();
        Some(chunk.into())
    }

    /// Waits for events and makes them ready.
    async fn more(&mut self) -> Result<(), Problem> {
        if self.live.is_none() {
            let handle = self.site.live.get(self.run.journal.path(), self.run.id());
            self.live = handle.map(|handle| handle.events_after(self.cursor));
        }
        if let Some(live) = &mut self.live {
            let Some(event) = live.next().await? else {
                self.live = None;
                return Ok(());
            };
            push(&event, &mut self.cursor, &mut self.ready);
            // What arrives shortly after goes along, so that many watchers of a fast run cost it little.
            tokio::time::sleep(TOGETHER.saturating_sub(self.sent.elapsed())).await;
            while self.ready.len() < PAGE
                && let Some(next) = live.next().now_or_never()
            {
                match next? {
                    Some(event) => push(&event, &mut self.cursor, &mut self.ready),
                    None => break,
                }
            }
            return Ok(());
        }
        let (run, cursor) = (self.run.clone(), self.cursor);
        let (events, status) = self
            .site
            .read(move |_| {
                // Read before the events: a run that has ended gets no more of them.
                let status = run.journal.run(run.id().as_str())?.status;
                Ok((run.journal.events(run.id(), cursor, u64::MAX, PAGE)?, status))
            })
            .await?;
        events.iter().for_each(|event| push(event, &mut self.cursor, &mut self.ready));
        if events.is_empty() && status != RunStatus::Open {
            self.ended = true;
            self.ready.push_back("event: end\ndata: {}\n\n".to_owned());
        } else if events.is_empty() {
            self.watch.changed().await;
        }
        Ok(())
    }
}

/// Makes an event ready to be sent.
fn push(event: &EventRecord, cursor: &mut u64, ready: &mut VecDeque<String>) {
    // The numbers that a live stream skips while it catches up are deltas, and were never sent.
    *cursor = event.seq.max(*cursor);
    let mut text = format!("id: {}\ndata: ", event.seq);
    // One line: JSON has no bare line ends.
    let _ = writeln!(text, "{}\n", serde_json::to_string(event).unwrap_or_default());
    ready.push_back(text);
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
