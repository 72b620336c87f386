//! A run on the engine as a client sees it: its entries are read into a journal of the client, which gives the events
//! and, at the end, the outcome.

use std::path::Path;
use std::sync::Arc;

use fusee::Event;
use fusee::engine::agent::{Spent, TaskOutcome};
use fusee::engine::run::{RunBuilder, RunHandle, RunOutcome};
use fusee::journal::event::{ErrorCode, ErrorDetail, TaskComplete, TaskStatus};
use fusee::journal::{Branch, Journal, JournalError, RunAborted, RunId, SqliteRun};
use tokio_util::sync::CancellationToken;

use crate::log_entry::{EntryContent, RunEnd};
use crate::workspace::FileTree;
use crate::{BlobHash, BlobStore, Engine, EngineError, RunOrder};

/// A run on the engine.
#[derive(Clone)]
pub struct RemoteRun {
    /// Connection to the Restate server.
    pub engine: Engine,
    /// The blob store that all workers and clients share.
    pub blobs: BlobStore,
    /// Id of the run.
    pub run: RunId,
}

/// Hands a run to the engine. A worker works on it from now on, whether somebody follows it or not.
pub async fn submit(remote: &RemoteRun, order: &RunOrder) -> Result<(), EngineError> {
    remote.engine.start(&remote.run, order).await
}

/// Follows a run from its beginning; `journal` gets a copy of it. Cancelling the handle cancels the run on the engine.
pub async fn follow(remote: RemoteRun, journal: &Journal, title: &str) -> Result<RunHandle, EngineError> {
    let copy = SqliteRun::begin(journal, &remote.run, title).await?;
    let cancel = CancellationToken::new();
    let work = work(remote, journal.clone(), Arc::clone(&copy), cancel.clone());
    Ok(RunHandle::followed(copy, cancel, tokio::spawn(work)))
}

impl RemoteRun {
    /// The files of the workspace before the run and after its last recorded entry. Does not wait for the run.
    pub async fn files(&self) -> Result<(FileTree, FileTree), EngineError> {
        let Some(about) = self.engine.about(&self.run).await? else {
            return Err(EngineError::NoSuchRun { run: self.run.to_string() });
        };
        let last = self.engine.last_files(&self.run).await?.unwrap_or_else(|| about.files.clone());
        let read = async |hash: &BlobHash| FileTree::read(hash, &self.blobs).await;
        Ok((read(&about.files).await?, read(&last).await?))
    }

    /// Copies all entries that are recorded now into a journal.
    pub async fn copy(&self, journal: &Journal, title: &str) -> Result<(), EngineError> {
        let copy = SqliteRun::begin(journal, &self.run, title).await?;
        for entry in self.engine.recorded(&self.run).await? {
            if let Some(rows) = entry.rows(&self.blobs).await? {
                copy.apply(&rows).await?;
            }
        }
        copy.close();
        Ok(())
    }

    /// Stores the files of a directory, which the run starts with.
    pub async fn store(&self, directory: &Path) -> Result<BlobHash, EngineError> {
        crate::store(directory, &self.blobs).await
    }
}

async fn work(
    remote: RemoteRun,
    journal: Journal,
    copy: Arc<SqliteRun>,
    cancel: CancellationToken,
) -> Result<TaskOutcome, RunAborted> {
    let mut canceller = tokio::spawn(pass_cancellation(remote.clone(), cancel));
    let end = follow_entries(&remote, &copy).await;
    canceller.abort();
    let _ = (&mut canceller).await;
    match end {
        Ok(RunEnd { last: None, .. }) => {
            copy.close();
            outcome(&journal, &remote.run).await
        }
        Ok(RunEnd { last: Some(Event::TaskComplete(last)), unreachable }) => {
            let outcome = outcome_of(&last, unreachable);
            copy.abandon(&Branch::main(), Event::TaskComplete(last));
            Ok(outcome)
        }
        Ok(RunEnd { last: Some(_), .. }) => {
            let problem = EngineError::Unreadable("the last event is not the end of a task".to_owned());
            Err(lost(&copy, &remote, &problem))
        }
        Err(error) => Err(lost(&copy, &remote, &error)),
    }
}

/// Cancels the run on the engine when the token is cancelled here.
async fn pass_cancellation(remote: RemoteRun, cancel: CancellationToken) {
    cancel.cancelled().await;
    while let Err(EngineError::Unreachable { .. }) = remote.engine.cancel(&remote.run).await {
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    }
}

/// Copies entries until the last one.
async fn follow_entries(remote: &RemoteRun, copy: &SqliteRun) -> Result<RunEnd, EngineError> {
    let mut next = 0;
    loop {
        for entry in remote.engine.read(&remote.run, next).await? {
            next += 1;
            if let Some(rows) = entry.rows(&remote.blobs).await? {
                copy.apply(&rows).await?;
            } else if let EntryContent::End(end) = entry.content {
                return Ok(*end);
            }
        }
    }
}

/// The outcome of a run that has ended, from its journal.
async fn outcome(journal: &Journal, run: &RunId) -> Result<TaskOutcome, RunAborted> {
    let unreadable = |error: &dyn std::fmt::Display| RunAborted::Unreadable(error.to_string());
    let recorded = RunBuilder::recorded(journal, run).map_err(|error| unreadable(&error))?;
    match recorded.replay(run).await.map_err(|error| unreadable(&error))? {
        RunOutcome::Ended(outcome) => Ok(outcome),
        RunOutcome::Stopped(stop) => Err(stop),
        RunOutcome::Lost(cause) => Err(unreadable(&cause)),
    }
}

/// The outcome according to the last event.
fn outcome_of(last: &TaskComplete, unreachable: bool) -> TaskOutcome {
    TaskOutcome {
        status: last.status,
        answer: last.answer.clone(),
        fails_run: false,
        error: last.error.clone(),
        unreachable,
        spent: Spent::default(),
        accepted_tokens: None,
        result: None,
    }
}

/// Ends the events of a run that this client can no longer follow. The run itself continues.
fn lost(copy: &SqliteRun, remote: &RemoteRun, error: &EngineError) -> RunAborted {
    let message = error.to_string();
    let detail = ErrorDetail {
        code: ErrorCode::TurnFailed,
        reason: "unexpected_error".to_owned(),
        message: message.clone(),
    };
    let last = TaskComplete {
        submission_id: remote.run.to_string(),
        total_turns: 0,
        total_tokens: 0,
        cached_tokens: 0,
        duration_ms: 0,
        status: TaskStatus::Failed,
        answer: String::new(),
        cost_usd: None,
        error: Some(detail),
    };
    copy.abandon(&Branch::main(), Event::TaskComplete(last));
    JournalError::Relay { cause: message }.into()
}
