//! The one writer of a journal, for all runs of a process. Events are shown (`hub.rs`) when they are committed.
//!
//! A run that is the only one to write commits on its own thread: waking another for it and being woken again takes
//! longer than the commit. Where several write they queue, and a thread commits what has come together.
//! All that may take long is the thread's: waiting for other processes, fsync, checkpoints, jobs.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use rusqlite::hooks::Wal;
use rusqlite::{Connection, ErrorCode};
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::hub::{Hub, Kept};
use crate::rows::{self, Op};
use crate::sqlite::PATIENCE;
use crate::{Durability, JournalError};

/// Requests waiting for the writer; a run that finds it full waits its turn.
const QUEUE: usize = 256;

/// Batches committed together at most, so that the first does not wait long for the last.
const TOGETHER: usize = 64;

/// Runs whose batches come closer than this do better to be committed together.
const CLOSE: Duration = Duration::from_micros(200);

/// Pages in the log that make a checkpoint due.
const LOG_PAGES: i32 = 1000;

/// What one run wants written in one transaction.
pub(crate) struct Batch {
    pub(crate) ops: Vec<Op>,
    pub(crate) commit: Commit,
}

/// A commit under way. One that is dropped has failed.
pub(crate) struct Commit {
    hub: Arc<Hub>,
    events: Vec<Kept>,
    settled: bool,
}

impl Commit {
    pub(crate) fn new(hub: Arc<Hub>, events: Vec<Kept>) -> Self {
        Self { hub, events, settled: false }
    }

    fn settle(mut self, result: Result<(), JournalError>) {
        self.settled = true;
        self.hub.settle(std::mem::take(&mut self.events), result);
    }
}

impl Drop for Commit {
    fn drop(&mut self) {
        if !self.settled {
            self.hub.settle(Vec::new(), Err(self.hub.writer_gone()));
        }
    }
}

/// A job that needs the writing connection for itself, such as beginning a run or collecting garbage.
pub(crate) type Job = Box<dyn FnOnce(&mut Connection) + Send>;

enum Request {
    Batch(Batch),
    Job(Job),
    Checkpoint,
}

/// Dropped, it commits what was handed over and ends.
pub(crate) struct Writer {
    desk: Arc<Desk>,
    thread: Option<std::thread::JoinHandle<()>>,
}

/// What runs and the thread share.
struct Desk {
    path: PathBuf,
    durability: Durability,
    places: Semaphore,
    queue: Mutex<Queue>,
    more: Condvar,
    /// Whoever holds it writes. It is taken before anything is taken from the queue, so that batches are
    /// committed in the order in which they came.
    connection: Mutex<Connection>,
    log_pages: Arc<AtomicI32>,
}

#[derive(Default)]
struct Queue {
    requests: VecDeque<Request>,
    /// Whose batch came last, and when.
    last: Option<(i64, Instant)>,
    closed: bool,
}

impl Queue {
    /// Whether nobody but this run has written just now.
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
    ) -> Result<Self, JournalError> {
        let log_pages = Arc::new(AtomicI32::new(0));
        let pages = Arc::clone(&log_pages);
        let note = move |_: &mut Wal, now: i32| {
            pages.store(now, Ordering::Relaxed);
            Ok(())
        };
        connection.wal_hook(Some(note)).map_err(|error| JournalError::from_sqlite(path, &error))?;
        let desk = Arc::new(Desk {
            path: path.to_owned(),
            durability,
            places: Semaphore::new(QUEUE),
            queue: Mutex::default(),
            more: Condvar::new(),
            connection: Mutex::new(connection),
            log_pages,
        });
        let theirs = Arc::clone(&desk);
        let thread = std::thread::Builder::new()
            .name("journal".to_owned())
            .stack_size(512 * 1024)
            .spawn(move || Attended(theirs).work())
            .map_err(|error| JournalError::from_io(path, &error))?;
        Ok(Self { desk, thread: Some(thread) })
    }

    /// Waits for a place in the queue, so that handing something over then cannot be interrupted half-way.
    pub(crate) async fn place(&self) -> Result<Place<'_>, JournalError> {
        let desk = &*self.desk;
        match desk.places.acquire().await {
            Ok(permit) => Ok(Place { desk, permit }),
            Err(_) => Err(desk.ended()),
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.desk.queue().closed = true;
        self.desk.more.notify_one();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has nothing left to commit.
            let _ = thread.join();
        }
    }
}

/// A place in the writer's queue.
pub(crate) struct Place<'a> {
    desk: &'a Desk,
    permit: SemaphorePermit<'a>,
}

impl<'a> Place<'a> {
    /// Hands a batch over. From here on it will be committed before all that is handed over later; where nobody is
    /// writing the caller is asked to do it, when it has let go of its own locks.
    #[must_use]
    pub(crate) fn hand_over(self, batch: Batch) -> Option<Turn<'a>> {
        let mut queue = self.desk.queue();
        if self.desk.durability == Durability::Process
            && queue.is_quiet(batch.commit.hub.key)
            && let Some(connection) = self.desk.try_connection()
        {
            return Some(Turn { place: self, connection, batch });
        }
        self.enter(&mut queue, Request::Batch(batch));
        None
    }

    /// Hands a job to the thread.
    pub(crate) fn job(self, job: Job) {
        let mut queue = self.desk.queue();
        self.enter(&mut queue, Request::Job(job));
    }

    fn enter(self, queue: &mut Queue, request: Request) {
        // Otherwise it is dropped, which is an answer too.
        if !queue.closed {
            queue.requests.push_back(request);
            self.permit.forget();
            self.desk.more.notify_one();
        }
    }
}

/// The right, and the duty, to commit a batch now.
pub(crate) struct Turn<'a> {
    place: Place<'a>,
    connection: MutexGuard<'a, Connection>,
    batch: Batch,
}

impl Turn<'_> {
    pub(crate) fn commit(self) {
        let Self { place, connection, batch } = self;
        let desk = place.desk;
        // This thread has other tasks to run: if another process is writing, waiting for it is not its business.
        let _ = connection.busy_timeout(Duration::ZERO);
        let result = write_all(&connection, std::slice::from_ref(&batch));
        let _ = connection.busy_timeout(PATIENCE);
        let request = match result {
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => Request::Batch(batch),
            result => {
                batch.commit.settle(result.map_err(|error| JournalError::from_sqlite(&desk.path, &error)));
                if !desk.checkpoint_is_due() {
                    return;
                }
                Request::Checkpoint
            }
        };
        let mut queue = desk.queue();
        if !queue.closed {
            // Before all that came meanwhile.
            queue.requests.push_front(request);
            place.permit.forget();
            desk.more.notify_one();
        }
    }
}

impl Desk {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn try_connection(&self) -> Option<MutexGuard<'_, Connection>> {
        match self.connection.try_lock() {
            Ok(connection) => Some(connection),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    fn checkpoint_is_due(&self) -> bool {
        self.log_pages.load(Ordering::Relaxed) >= LOG_PAGES
    }

    fn ended(&self) -> JournalError {
        JournalError::Failed { path: self.path.clone(), cause: "its writer has ended".to_owned() }
    }
}

/// The desk while the thread is at it. Whatever ends the thread, nobody is left waiting.
struct Attended(Arc<Desk>);

impl Drop for Attended {
    fn drop(&mut self) {
        let left = {
            let mut queue = self.0.queue();
            queue.closed = true;
            std::mem::take(&mut queue.requests)
        };
        drop(left);
        self.0.places.close();
    }
}

impl Attended {
    fn work(self) {
        let desk = &*self.0;
        loop {
            let idle = |queue: &mut Queue| queue.requests.is_empty() && !queue.closed;
            let queue = desk.more.wait_while(desk.queue(), idle).unwrap_or_else(PoisonError::into_inner);
            if queue.requests.is_empty() {
                return;
            }
            drop(queue);
            let mut connection = desk.connection.lock().unwrap_or_else(PoisonError::into_inner);
            let (batches, job) = self.take_some();
            commit_together(&desk.path, &connection, batches);
            if let Some(job) = job {
                job(&mut connection);
            }
            if desk.checkpoint_is_due() {
                desk.log_pages.store(0, Ordering::Relaxed);
                // One that cannot be done now is due again after the next commit.
                let _ = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
            }
        }
    }

    /// Batches up to the next job, and that.
    fn take_some(&self) -> (Vec<Batch>, Option<Job>) {
        let mut queue = self.0.queue();
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

fn commit_together(path: &Path, connection: &Connection, mut batches: Vec<Batch>) {
    batches.retain(|batch| batch.commit.hub.failed().is_none());
    if batches.is_empty() {
        return;
    }
    let result = write_all(connection, &batches);
    let apart = batches.len() > 1 && result.as_ref().is_err_and(concerns_one_batch);
    for batch in batches {
        let result = match batch.commit.hub.failed() {
            Some(error) => Err(error),
            None if apart => write_all(connection, std::slice::from_ref(&batch))
                .map_err(|error| JournalError::from_sqlite(path, &error)),
            None => result.as_ref().copied().map_err(|error| JournalError::from_sqlite(path, error)),
        };
        batch.commit.settle(result);
    }
}

/// Whether the others that were to be committed with it can do without the one that failed.
fn concerns_one_batch(error: &rusqlite::Error) -> bool {
    use ErrorCode as Code;
    matches!(
        error.sqlite_error_code(),
        None | Some(Code::ConstraintViolation | Code::TooBig | Code::TypeMismatch)
    )
}

/// The words around a transaction are prepared once: parsing them anew took a tenth of a turn's instructions.
fn write_all(connection: &Connection, batches: &[Batch]) -> rusqlite::Result<()> {
    connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
    let written = write_ops(connection, batches)
        .and_then(|()| connection.prepare_cached("COMMIT")?.execute([]))
        .map(drop);
    if written.is_err() && !connection.is_autocommit() {
        connection.prepare_cached("ROLLBACK")?.execute([])?;
    }
    written
}

fn write_ops(connection: &Connection, batches: &[Batch]) -> rusqlite::Result<()> {
    for batch in batches {
        for op in &batch.ops {
            rows::write(connection, batch.commit.hub.key, op)?;
        }
    }
    Ok(())
}
