//! The live events of one run, encoded once for all of its watchers. A task reads the run's subscription, encodes what
//! arrives within a short time as one chunk, and keeps the newest chunks. `event_feed` is one watcher: it takes whole
//! chunks, and reads for itself what is older than they are.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::ops::RangeInclusive;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use bytes::Bytes;
use fusee::journal::{EventRecord, EventStream};
use futures_util::FutureExt as _;
use parking_lot::Mutex;
use tokio::sync::watch;

/// Events within this time per watcher are sent together: a chunk costs a write for each of them, so that the writes per
/// second do not grow with their number.
const PER_WATCHER: Duration = Duration::from_millis(12);

/// Bounds of the time within which events are sent together.
const TOGETHER: RangeInclusive<Duration> = Duration::from_millis(25)..=Duration::from_millis(250);

/// Size in bytes at which a chunk is complete.
const CHUNK: usize = 64 << 10;

/// Chunks that are kept for watchers who are slightly behind.
const KEPT: usize = 64;

/// Bytes of all kept chunks; the newest is kept in any case.
const KEPT_BYTES: usize = 2 << 20;

/// Some events of a run, as server-sent events.
#[derive(Clone)]
pub(crate) struct Chunk {
    /// Number of the event before the first.
    after: u64,
    /// Number of the last event.
    pub(crate) last: u64,
    /// Number of events.
    pub(crate) events: u32,
    pub(crate) bytes: Bytes,
}

/// The newest live events of a run.
pub(crate) struct EventHub {
    chunks: Mutex<Chunks>,
    /// Number of the last event of the newest chunk.
    newest: watch::Sender<u64>,
}

#[derive(Default)]
struct Chunks {
    kept: VecDeque<Chunk>,
    bytes: usize,
    ended: bool,
}

/// What follows a watcher's last event.
pub(crate) enum Following {
    /// These events.
    Chunk(Chunk),
    /// Events up to this number, which the watcher reads for itself.
    Older(u64),
    /// Nothing yet.
    Nothing,
    /// Nothing: the run has left this process.
    Ended,
}

impl EventHub {
    /// Starts to read a subscription that begins after number `cursor`. Stops when the last watcher is gone.
    pub(crate) fn start(events: EventStream, cursor: u64) -> Arc<Self> {
        let feed = Arc::new(Self { chunks: Mutex::default(), newest: watch::Sender::new(cursor) });
        tokio::spawn(pump(Arc::downgrade(&feed), events, cursor));
        feed
    }

    /// A receiver that notices new chunks and the end.
    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.newest.subscribe()
    }

    /// What follows event number `cursor`.
    pub(crate) fn following(&self, cursor: u64) -> Following {
        let newest = *self.newest.borrow();
        let chunks = self.chunks.lock();
        let at = chunks.kept.partition_point(|chunk| chunk.last <= cursor);
        match chunks.kept.get(at) {
            Some(chunk) if chunk.after == cursor => Following::Chunk(chunk.clone()),
            // Older than the oldest chunk, or in the middle of one.
            Some(chunk) if chunk.after > cursor => Following::Older(chunk.after),
            Some(chunk) => Following::Older(chunk.last),
            None if cursor < newest => Following::Older(newest),
            None if chunks.ended => Following::Ended,
            None => Following::Nothing,
        }
    }

    /// The time within which events are sent together.
    fn interval(&self) -> Duration {
        let watchers = u32::try_from(self.newest.receiver_count()).unwrap_or(u32::MAX);
        PER_WATCHER.saturating_mul(watchers).clamp(*TOGETHER.start(), *TOGETHER.end())
    }

    fn add(&self, chunk: Chunk) {
        let last = chunk.last;
        let mut chunks = self.chunks.lock();
        chunks.bytes += chunk.bytes.len();
        chunks.kept.push_back(chunk);
        while chunks.kept.len() > KEPT || (chunks.bytes > KEPT_BYTES && chunks.kept.len() > 1) {
            let old = chunks.kept.pop_front().map_or(0, |old| old.bytes.len());
            chunks.bytes -= old;
        }
        drop(chunks);
        self.newest.send_replace(last);
    }

    fn end(&self) {
        self.chunks.lock().ended = true;
        self.newest.send_modify(|_| {});
    }
}

async fn pump(feed: Weak<EventHub>, mut events: EventStream, mut cursor: u64) {
    let mut sent = Instant::now();
    let mut text = String::new();
    loop {
        // A journal that cannot be read ends the feed; its watchers then read it themselves and report why.
        let Ok(Some(event)) = events.next().await else { break };
        let after = cursor;
        let mut count = 1;
        cursor = event.seq.max(cursor);
        encode(&event, &mut text);
        // What arrives shortly after goes along: a fast run costs its watchers few wake-ups.
        let Some(interval) = feed.upgrade().map(|feed| feed.interval()) else { return };
        tokio::time::sleep(interval.saturating_sub(sent.elapsed())).await;
        let mut ended = false;
        while text.len() < CHUNK
            && let Some(next) = events.next().now_or_never()
        {
            let Ok(Some(event)) = next else {
                ended = true;
                break;
            };
            cursor = event.seq.max(cursor);
            count += 1;
            encode(&event, &mut text);
        }
        let Some(feed) = feed.upgrade() else { return };
        let bytes = Bytes::copy_from_slice(text.as_bytes());
        text.clear();
        feed.add(Chunk { after, last: cursor, events: count, bytes });
        sent = Instant::now();
        if ended {
            break;
        }
    }
    if let Some(feed) = feed.upgrade() {
        feed.end();
    }
}

/// Appends an event as a server-sent event.
pub(crate) fn encode(event: &EventRecord, text: &mut String) {
    // One line: JSON has no bare line ends.
    let json = serde_json::to_string(event).unwrap_or_default();
    let _ = write!(text, "id: {}\ndata: {json}\n\n", event.seq);
}
