//! One attempt of a worker to work on a run. Entries that the engine has recorded are applied to an empty journal;
//! from the first one that it has not, the program of the run continues on this journal and produces them.

use std::path::PathBuf;
use std::sync::Arc;

use fusee::Event;
use fusee::engine::run::{RunControl, RunHandle, RunOutcome};
use fusee::journal::event::{ErrorCode, ErrorDetail, TaskComplete, TaskStatus};
use fusee::journal::{BoxFuture, Journal, JournalOptions, OutgoingBatch, Relay, RunId, RunStatus, SqliteRun};
use fusee::launch::{LaunchError, LaunchErrorKind};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::log_entry::{EntryContent, LogEntry, RunEnd};
use crate::question::fetch_answers;
use crate::scratch::{RunFolder, WorkerParts};
use crate::tenant::TenantPlace;
use crate::workspace::{FileTree, Scan, restore};
use crate::{BlobHash, EngineError, RunOrder, WorkerLaunch};

/// Why an attempt failed.
#[derive(Debug)]
pub(crate) enum AttemptError {
    /// Another attempt may succeed.
    Again(EngineError),
    /// No attempt can succeed.
    Never(String),
}

impl From<EngineError> for AttemptError {
    fn from(error: EngineError) -> Self {
        Self::Again(error)
    }
}

impl From<fusee::journal::JournalError> for AttemptError {
    fn from(error: fusee::journal::JournalError) -> Self {
        Self::Again(error.into())
    }
}

/// One attempt.
pub(crate) struct Attempt {
    worker: Arc<WorkerParts>,
    run: RunId,
    order: RunOrder,
    /// Files after the last recorded entry.
    files: BlobHash,
    state: AttemptState,
}

enum AttemptState {
    /// Nothing has been recorded yet.
    Empty,
    /// Recorded entries are being applied.
    Applying(Box<Copy>),
    /// The program works.
    Working(Box<Work>),
}

/// A journal to which recorded entries are applied.
struct Copy {
    run: Arc<SqliteRun>,
    folder: RunFolder,
    batches: mpsc::Receiver<OutgoingBatch>,
    journal: Journal,
}

/// The program of the run, at work. Dropping it stops the program.
struct Work {
    journal: Journal,
    batches: mpsc::Receiver<OutgoingBatch>,
    /// The batch that the engine is recording.
    pending: Option<OutgoingBatch>,
    scan: Scan,
    control: RunControl,
    outcome: JoinHandle<RunOutcome>,
    cancellation: JoinHandle<()>,
    answers: JoinHandle<()>,
    folder: RunFolder,
    /// Counts the run among those of its tenant.
    place: Option<TenantPlace>,
}

impl Drop for Work {
    fn drop(&mut self) {
        // Nothing can be recorded any more, so nothing can be started. What runs is stopped.
        self.batches.close();
        self.control.cancel();
        self.cancellation.abort();
        self.answers.abort();
    }
}

impl Attempt {
    pub(crate) fn new(worker: Arc<WorkerParts>, key: &str, order: RunOrder) -> Result<Self, AttemptError> {
        let run: RunId = key.parse().map_err(AttemptError::Never)?;
        if !order.spec.hooks.is_empty() {
            // Hooks run outside the sandbox, and a client must not choose programs for the worker's machine.
            return Err(AttemptError::Never("a worker does not run hooks of a client".to_owned()));
        }
        let files = order.files.clone();
        Ok(Self { worker, run, order, files, state: AttemptState::Empty })
    }

    /// Produces the next entry, which the engine records before [`Self::recorded`] is called with it.
    pub(crate) fn next_entry(&mut self) -> BoxFuture<'_, Result<LogEntry, AttemptError>> {
        Box::pin(self.produce())
    }

    async fn produce(&mut self) -> Result<LogEntry, AttemptError> {
        let place = if let AttemptState::Working(_) = self.state { None } else { self.admitted().await };
        if !matches!(self.state, AttemptState::Working(_)) && place.is_none() {
            return Ok(cancelled_before(&self.run));
        }
        let work = match std::mem::replace(&mut self.state, AttemptState::Empty) {
            AttemptState::Working(work) => Ok(work),
            AttemptState::Applying(copy) => {
                // Releases the lock of the run.
                copy.run.close();
                let Copy { run, folder, batches, journal } = *copy;
                drop(run);
                self.launch(folder, journal, batches, true).await?
            }
            AttemptState::Empty => {
                let (folder, journal, batches) = self.open().await?;
                self.launch(folder, journal, batches, false).await?
            }
        };
        let mut work = match work {
            Ok(work) => work,
            Err(error) => return Ok(not_started(&self.run, error)),
        };
        if place.is_some() {
            work.place = place;
        }
        let entry = tokio::select! {
            biased;
            Some(batch) = work.batches.recv() => {
                let files = work.scan.store(&work.folder.files(), &self.worker.blobs).await?;
                let files = (files != self.files).then_some(files);
                let entry = LogEntry::batch(batch.encode(), files, &self.worker.blobs).await?;
                work.pending = Some(batch);
                entry
            }
            outcome = &mut work.outcome => {
                let outcome = outcome.unwrap_or_else(|lost| RunOutcome::Lost(lost.to_string()));
                let is_open = work.journal.run(self.run.as_str())?.status == RunStatus::Open;
                let end = if is_open { end_of_open(&self.run, outcome) } else { RunEnd::default() };
                LogEntry { content: EntryContent::End(Box::new(end)), files: None }
            }
        };
        self.state = AttemptState::Working(work);
        Ok(entry)
    }

    /// Waits until this worker may work on a run of the tenant; `None` if the run is cancelled first.
    async fn admitted(&self) -> Option<TenantPlace> {
        let place = self.worker.tenants.enter(self.order.tenant.as_deref());
        let mut place = std::pin::pin!(place);
        tokio::select! {
            biased;
            place = &mut place => Some(place),
            is_cancelled = self.worker.engine.cancelled(&self.run) => {
                if is_cancelled { None } else { Some(place.await) }
            }
        }
    }

    /// Commits an entry that the engine has recorded.
    pub(crate) async fn recorded(&mut self, entry: &LogEntry) -> Result<(), AttemptError> {
        if let Some(files) = &entry.files {
            self.files = files.clone();
        }
        if let AttemptState::Working(work) = &mut self.state {
            return match work.pending.take() {
                Some(batch) => Ok(work.journal.commit_relayed(batch).await?),
                None => Err(AttemptError::Never("an entry was recorded twice".to_owned())),
            };
        }
        if let AttemptState::Empty = &self.state {
            let (folder, journal, batches) = self.open().await?;
            let run = SqliteRun::begin(&journal, &self.run, &self.order.spec.title()).await?;
            self.state = AttemptState::Applying(Box::new(Copy { run, folder, batches, journal }));
        }
        if let AttemptState::Applying(copy) = &self.state
            && let Some(rows) = entry.rows(&self.worker.blobs).await?
        {
            copy.run.apply(&rows).await?;
        }
        Ok(())
    }

    /// An empty journal in a separate folder.
    async fn open(&self) -> Result<(RunFolder, Journal, mpsc::Receiver<OutgoingBatch>), AttemptError> {
        let folder = self.worker.folder(&self.run).await?;
        let (relay, batches) = Relay::new();
        let options = JournalOptions { relay: Some(relay), ..JournalOptions::default() };
        let journal = Journal::open(&folder.journal(), options, Arc::clone(&self.worker.clock))?;
        Ok((folder, journal, batches))
    }

    /// Restores the workspace and starts the program; an inner error if the run cannot be started here.
    async fn launch(
        &self,
        folder: RunFolder,
        journal: Journal,
        batches: mpsc::Receiver<OutgoingBatch>,
        resumes: bool,
    ) -> Result<Result<Box<Work>, LaunchError>, AttemptError> {
        let files: PathBuf = folder.files();
        let tree = FileTree::read(&self.files, &self.worker.blobs).await?;
        restore(&tree, &files, &self.worker.blobs).await?;
        let scan = Scan::of_restored(&files, &tree).await?;
        let mut spec = self.order.spec.clone();
        spec.workspace = files;
        spec.sandbox_options.workspace_at.get_or_insert_with(|| self.order.directory.clone());
        let launch = WorkerLaunch { run: self.run.clone(), spec, journal: journal.clone(), resumes };
        let handle: RunHandle = match self.worker.host.launch(launch).await {
            Ok(handle) => handle,
            Err(error) => return Ok(Err(error)),
        };
        let control = handle.control();
        let cancellation =
            tokio::spawn(cancelled(Arc::clone(&self.worker), self.run.clone(), control.clone()));
        let answers =
            tokio::spawn(fetch_answers(self.worker.engine.clone(), journal.clone(), control.clone()));
        let outcome = tokio::spawn(handle.outcome());
        let pending = None;
        Ok(Ok(Box::new(Work {
            journal,
            batches,
            pending,
            scan,
            control,
            outcome,
            cancellation,
            answers,
            folder,
            place: None,
        })))
    }
}

/// Cancels the program when the run is cancelled on the engine.
async fn cancelled(worker: Arc<WorkerParts>, run: RunId, control: RunControl) {
    if worker.engine.cancelled(&run).await {
        control.cancel();
    }
}

/// The end of a run that stays open: its last event is not in the journal.
fn end_of_open(run: &RunId, outcome: RunOutcome) -> RunEnd {
    let (status, error, answer) = match outcome {
        RunOutcome::Ended(outcome) => (outcome.status, outcome.error, outcome.answer),
        RunOutcome::Stopped(stop) => (TaskStatus::Failed, failed(stop.to_string()), String::new()),
        RunOutcome::Lost(cause) => {
            let message = format!("internal error: the run panicked: {cause}");
            (TaskStatus::Failed, failed(message), String::new())
        }
    };
    RunEnd { last: Some(last_event(run, status, error, answer)), unreachable: false }
}

fn failed(message: String) -> Option<ErrorDetail> {
    Some(ErrorDetail { code: ErrorCode::TurnFailed, reason: "unexpected_error".to_owned(), message })
}

/// The end of a run that was cancelled while it waited for its tenant's limit.
fn cancelled_before(run: &RunId) -> LogEntry {
    let last = Some(last_event(run, TaskStatus::Cancelled, None, String::new()));
    LogEntry { content: EntryContent::End(Box::new(RunEnd { last, unreachable: false })), files: None }
}

/// The end of a run that this worker cannot start.
fn not_started(run: &RunId, error: LaunchError) -> LogEntry {
    let code = match error.kind {
        LaunchErrorKind::Usage => ErrorCode::InitFailed,
        LaunchErrorKind::Unreachable | LaunchErrorKind::Failed => ErrorCode::TurnFailed,
    };
    let message = format!("the worker cannot start the run: {error}");
    let detail = ErrorDetail { code, reason: "not_started".to_owned(), message };
    let end = RunEnd {
        last: Some(last_event(run, TaskStatus::Failed, Some(detail), String::new())),
        unreachable: error.kind == LaunchErrorKind::Unreachable,
    };
    LogEntry { content: EntryContent::End(Box::new(end)), files: None }
}

fn last_event(run: &RunId, status: TaskStatus, error: Option<ErrorDetail>, answer: String) -> Event {
    Event::TaskComplete(TaskComplete {
        submission_id: run.to_string(),
        total_turns: 0,
        total_tokens: 0,
        cached_tokens: 0,
        duration_ms: 0,
        status,
        answer,
        cost_usd: None,
        error,
    })
}
