//! The single writer of a journal, shared by all runs of a process. Events are published (`broadcast.rs`) once
//! committed.
//!
//! A run that is the only one writing commits on its own thread, because waking another thread and being
//! woken again takes longer than the commit. Concurrent runs queue, and the writer thread commits their
//! batches together. Anything slow happens on that thread: waiting for other processes, fsync, checkpoints,
//! jobs.

use std::collections::VecDeque;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};
use rusqlite::hooks::Wal;
use rusqlite::{Connection, ErrorCode};
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::broadcast::{Broadcast, RingEvent};
use crate::mark::Marks;
use crate::ops::{self, WriteOp};
use crate::schema::LOCK_TIMEOUT;
use crate::{Durability, JournalError};

/// Capacity of the request queue; a run that finds it full waits.
const QUEUE: usize = 256;

/// Maximum number of batches per transaction, which bounds how long the first waits for the last.
const TOGETHER: usize = 64;

/// Batches of different runs that arrive closer together than this are queued and committed together.
const CLOSE: Duration = Duration::from_micros(200);

/// WAL size in pages at which a checkpoint is due.
const LOG_PAGES: i32 = 1000;

/// WAL size in pages at which a checkpoint makes other processes wait. A passive one never gets to the end of
/// the log while several processes write, and the log then grows without bound.
const LARGE_LOG_PAGES: i32 = 4000;

/// How long such a checkpoint waits for readers and writers before it is tried again later.
const CHECKPOINT_TIMEOUT: Duration = Duration::from_secs(2);

/// The writes of one run that form one transaction.
pub(crate) struct Batch {
    pub(crate) ops: Vec<WriteOp>,
    pub(crate) commit: Commit,
}

/// A commit in flight. Dropping it unsettled counts as a failure.
pub(crate) struct Commit {
    broadcast: Arc<Broadcast>,
    events: Vec<RingEvent>,
    settled: bool,
}

impl Commit {
    pub(crate) fn new(broadcast: Arc<Broadcast>, events: Vec<RingEvent>) -> Self {
        Self { broadcast, events, settled: false }
    }

    pub(crate) fn complete(mut self, result: Result<(), JournalError>) {
        self.settled = true;
        self.broadcast.end_commit(std::mem::take(&mut self.events), result);
    }
}

impl Drop for Commit {
    fn drop(&mut self) {
        if !self.settled {
            self.broadcast.end_commit(Vec::new(), Err(self.broadcast.writer_gone()));
        }
    }
}

/// A job that needs the writing connection exclusively, such as starting a run or collecting garbage.
pub(crate) type ExclusiveJob = Box<dyn FnOnce(&mut Connection) + Send>;

enum Request {
    Batch(Batch),
    Job(ExclusiveJob),
    Checkpoint,
}

/// Owner of the writer thread. Dropping it commits everything submitted and joins the thread.
pub(crate) struct Writer {
    state: Arc<WriterState>,
    thread: Option<std::thread::JoinHandle<()>>,
}

/// State shared by the runs and the writer thread.
struct WriterState {
    path: PathBuf,
    durability: Durability,
    places: Semaphore,
    queue: Mutex<Queue>,
    more: Condvar,
    /// The holder writes. Locked before anything is taken from the queue, so that batches are committed in
    /// the order of their arrival.
    connection: Mutex<Connection>,
    log_pages: Arc<AtomicI32>,
    marks: Arc<Marks>,
    /// Device and inode of the file that is written to.
    identity: Option<(u64, u64)>,
    rescue: Option<PathBuf>,
}

#[derive(Default)]
struct Queue {
    requests: VecDeque<Request>,
    /// Run and time of the last batch.
    last: Option<(i64, Instant)>,
    closed: bool,
}

impl Queue {
    /// Whether no other run has written very recently; also records this write.
    fn is_quiet(&mut self, run: i64) -> bool {
        let now = Instant::now();
        let last = self.last.replace((run, now));
        self.requests.is_empty()
            && last.is_none_or(|(other, then)| other == run || now.duration_since(then) > CLOSE)
    }
}

impl Writer {
    pub(crate) fn start(
        path: &Path,
        mut connection: Connection,
        durability: Durability,
        marks: Arc<Marks>,
        rescue: Option<PathBuf>,
    ) -> Result<Self, JournalError> {
        let log_pages = Arc::new(AtomicI32::new(0));
        let pages = Arc::clone(&log_pages);
        let note = move |_: &mut Wal, now: i32| {
            pages.store(now, Ordering::Relaxed);
            Ok(())
        };
        connection.wal_hook(Some(note)).map_err(|error| JournalError::from_sqlite(path, &error))?;
        let state = Arc::new(WriterState {
            path: path.to_owned(),
            durability,
            places: Semaphore::new(QUEUE),
            queue: Mutex::default(),
            more: Condvar::new(),
            connection: Mutex::new(connection),
            log_pages,
            marks,
            identity: identity(path),
            rescue,
        });
        let theirs = Arc::clone(&state);
        let thread = std::thread::Builder::new()
            .name("journal".to_owned())
            .stack_size(512 * 1024)
            .spawn(move || WriterGuard(theirs).work())
            .map_err(|error| JournalError::from_io(path, &error))?;
        Ok(Self { state, thread: Some(thread) })
    }

    /// Waits for a queue slot. Submitting with the slot is then synchronous and cannot be cancelled half-way.
    pub(crate) async fn reserve_slot(&self) -> Result<QueueSlot<'_>, JournalError> {
        let state = &*self.state;
        match state.places.acquire().await {
            Ok(permit) => Ok(QueueSlot { state, permit }),
            Err(_) => Err(state.ended()),
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.state.queue.lock().closed = true;
        self.state.more.notify_one();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has nothing left to commit.
            let _ = thread.join();
        }
    }
}

/// A slot in the writer's queue.
pub(crate) struct QueueSlot<'a> {
    state: &'a WriterState,
    permit: SemaphorePermit<'a>,
}

impl<'a> QueueSlot<'a> {
    /// Submits a batch. It will be committed before everything submitted later. If the writer is idle, the
    /// caller gets a `CommitPermit` and must commit it after releasing its own locks.
    #[must_use]
    pub(crate) fn submit(self, batch: Batch) -> Option<CommitPermit<'a>> {
        let mut queue = self.state.queue.lock();
        if self.state.durability == Durability::Process
            && queue.is_quiet(batch.commit.broadcast.key)
            && let Some(connection) = self.state.connection.try_lock()
        {
            return Some(CommitPermit { place: self, connection, batch });
        }
        self.enter(&mut queue, Request::Batch(batch));
        None
    }

    /// Submits a batch and commits it on this thread if the writer is idle. The caller must hold no locks.
    pub(crate) fn commit(self, batch: Batch) {
        if let Some(turn) = self.submit(batch) {
            turn.commit();
        }
    }

    /// Submits a job to the writer thread.
    pub(crate) fn job(self, job: ExclusiveJob) {
        let mut queue = self.state.queue.lock();
        self.enter(&mut queue, Request::Job(job));
    }

    fn enter(self, queue: &mut Queue, request: Request) {
        // If closed, the request is dropped, which its sender observes as a failure.
        if !queue.closed {
            queue.requests.push_back(request);
            self.permit.forget();
            self.state.more.notify_one();
        }
    }
}

/// Permission and obligation to commit a batch on the calling thread.
pub(crate) struct CommitPermit<'a> {
    place: QueueSlot<'a>,
    connection: MutexGuard<'a, Connection>,
    batch: Batch,
}

impl CommitPermit<'_> {
    pub(crate) fn commit(self) {
        let Self { place, connection, batch } = self;
        let state = place.state;
        // This is an executor thread with other tasks to run: never block here on another process's write
        // lock.
        let _ = connection.busy_timeout(Duration::ZERO);
        let result = state.write_all(&connection, std::slice::from_ref(&batch));
        let _ = connection.busy_timeout(LOCK_TIMEOUT);
        let request = match result {
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => Request::Batch(batch),
            result => {
                batch.commit.complete(result.map_err(|error| JournalError::from_sqlite(&state.path, &error)));
                if !state.checkpoint_is_due() {
                    return;
                }
                Request::Checkpoint
            }
        };
        let mut queue = state.queue.lock();
        if !queue.closed {
            // Ahead of everything that arrived in the meantime.
            queue.requests.push_front(request);
            place.permit.forget();
            state.more.notify_one();
        }
    }
}

impl WriterState {
    fn checkpoint_is_due(&self) -> bool {
        self.log_pages.load(Ordering::Relaxed) >= LOG_PAGES
    }

    fn ended(&self) -> JournalError {
        JournalError::Failed { path: self.path.clone(), cause: "the writer thread has ended".to_owned() }
    }

    fn commit_together(&self, connection: &Connection, mut batches: Vec<Batch>) {
        batches.retain(|batch| batch.commit.broadcast.failed().is_none());
        if batches.is_empty() {
            return;
        }
        let result = self.write_all(connection, &batches);
        let apart = batches.len() > 1 && result.as_ref().is_err_and(concerns_one_batch);
        for batch in batches {
            let result = match batch.commit.broadcast.failed() {
                Some(error) => Err(error),
                None if apart => self
                    .write_all(connection, std::slice::from_ref(&batch))
                    .map_err(|error| JournalError::from_sqlite(&self.path, &error)),
                None => {
                    result.as_ref().copied().map_err(|error| JournalError::from_sqlite(&self.path, error))
                }
            };
            batch.commit.complete(result);
        }
    }

    /// Caches the transaction statements too: parsing them every time took a tenth of a turn's instructions.
    fn write_all(&self, connection: &Connection, batches: &[Batch]) -> rusqlite::Result<()> {
        connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        let written = write_ops(connection, batches)
            .and_then(|()| connection.prepare_cached("COMMIT")?.execute([]))
            .map(drop);
        if written.is_err() && !connection.is_autocommit() {
            connection.prepare_cached("ROLLBACK")?.execute([])?;
        }
        if written.is_ok() {
            batches.iter().for_each(|batch| self.marks.advance(batch.commit.broadcast.key, &batch.ops));
            self.check_in_place(connection)?;
        }
        written
    }

    /// Fails if the file was removed or replaced, because commits then go to a file without a name. Saves a copy
    /// first.
    fn check_in_place(&self, connection: &Connection) -> rusqlite::Result<()> {
        if identity(&self.path) == self.identity {
            return Ok(());
        }
        let message = match self.rescue.as_deref().map(|copy| (copy.display(), save_copy(connection, copy))) {
            Some((copy, Ok(()))) => format!("its content was saved to {copy}; move it back to resume"),
            Some((copy, Err(error))) => format!("saving its content to {copy} failed: {error}"),
            None => "its content is lost".to_owned(),
        };
        let moved = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_READONLY_DBMOVED);
        Err(rusqlite::Error::SqliteFailure(moved, Some(message)))
    }
}

/// Guard on the writer thread: when the thread ends for any reason, all waiters are released.
struct WriterGuard(Arc<WriterState>);

impl Drop for WriterGuard {
    fn drop(&mut self) {
        let left = {
            let mut queue = self.0.queue.lock();
            queue.closed = true;
            std::mem::take(&mut queue.requests)
        };
        drop(left);
        self.0.places.close();
    }
}

impl WriterGuard {
    fn work(self) {
        let state = &*self.0;
        loop {
            let idle = |queue: &mut Queue| queue.requests.is_empty() && !queue.closed;
            let mut queue = state.queue.lock();
            state.more.wait_while(&mut queue, idle);
            if queue.requests.is_empty() {
                return;
            }
            drop(queue);
            let mut connection = state.connection.lock();
            let (batches, job) = self.take_some();
            state.commit_together(&connection, batches);
            if let Some(job) = job {
                job(&mut connection);
            }
            if state.checkpoint_is_due() {
                let is_large = state.log_pages.swap(0, Ordering::Relaxed) >= LARGE_LOG_PAGES;
                // A checkpoint that cannot run now is due again after the next commit.
                let _ = checkpoint(&connection, is_large);
            }
        }
    }

    /// Takes batches up to the next job, and that job.
    fn take_some(&self) -> (Vec<Batch>, Option<ExclusiveJob>) {
        let mut queue = self.0.queue.lock();
        let (mut batches, mut job) = (Vec::new(), None);
        while job.is_none() && batches.len() < TOGETHER {
            match queue.requests.pop_front() {
                Some(Request::Batch(batch)) => batches.push(batch),
                Some(Request::Job(it)) => job = Some(it),
                Some(Request::Checkpoint) => {}
                None => break,
            }
            self.0.places.add_permits(1);
        }
        (batches, job)
    }
}

/// Whether the error concerns a single batch, so that the others can be committed without it.
fn concerns_one_batch(error: &rusqlite::Error) -> bool {
    use ErrorCode as Code;
    matches!(
        error.sqlite_error_code(),
        None | Some(Code::ConstraintViolation | Code::TooBig | Code::TypeMismatch)
    )
}

fn write_ops(connection: &Connection, batches: &[Batch]) -> rusqlite::Result<()> {
    for batch in batches {
        for op in &batch.ops {
            ops::write(connection, batch.commit.broadcast.key, op)?;
        }
    }
    Ok(())
}

/// Device and inode of a file.
fn identity(path: &Path) -> Option<(u64, u64)> {
    let found = std::fs::metadata(path).ok()?;
    Some((found.dev(), found.ino()))
}

/// Writes everything that is committed to a new file.
fn save_copy(connection: &Connection, copy: &Path) -> Result<(), String> {
    let directory = copy.parent().unwrap_or(Path::new("/"));
    std::fs::create_dir_all(directory).map_err(|error| error.to_string())?;
    let saved = connection.execute("VACUUM INTO ?", [copy.to_string_lossy()]);
    saved.map(drop).map_err(|error| error.to_string())
}

fn checkpoint(connection: &Connection, is_large: bool) -> rusqlite::Result<()> {
    if !is_large {
        return connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
    }
    connection.busy_timeout(CHECKPOINT_TIMEOUT)?;
    let done = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    connection.busy_timeout(LOCK_TIMEOUT)?;
    done
}
