//! The service of the workers: a run is a workflow, keyed by its id.

use std::sync::Arc;
use std::time::Duration;

use fusee::engine::run::RunSpec;
use restate_sdk::prelude::*;
use tokio::sync::Mutex;

use crate::attempt::{Attempt, AttemptError};
use crate::log_entry::{EntryContent, LogEntry, PAGE, ReadEntries, promise_of};
use crate::question::GivenAnswer;
use crate::run_order::RunAbout;
use crate::scratch::WorkerParts;
use crate::{BlobHash, EngineError, RunOrder};

/// Name of the promise that cancels a run.
const CANCEL: &str = "cancel";

/// Key of the state that describes a run.
const ABOUT: &str = "about";

/// Key of the state that holds the settings of a run.
const SETTINGS: &str = "settings";

/// Key of the state that holds the files of the workspace after the last entry.
const FILES: &str = "files";

/// A worker without progress of an invocation is asked to suspend it after this time, which a run does not do while
/// a model or a command works.
const INACTIVITY: Duration = Duration::from_secs(60);

/// An invocation without progress is taken from its worker after this time: longer than any model call or command. A
/// worker that is gone is noticed much earlier, by its connection.
const ABORT: Duration = Duration::from_secs(24 * 3600);

/// The engine keeps an ended run this long.
const RETENTION: Duration = Duration::from_secs(7 * 24 * 3600);

pub(crate) struct FuseeRun {
    worker: Arc<WorkerParts>,
}

#[workflow]
impl FuseeRun {
    /// Works on a run until its end.
    #[handler]
    async fn run(&self, ctx: WorkflowContext<'_>, order: Json<RunOrder>) -> Result<(), HandlerError> {
        let Json(order) = order;
        let about =
            RunAbout { title: order.spec.title(), files: order.files.clone(), tenant: order.tenant.clone() };
        ctx.set(ABOUT, Json(about));
        ctx.set(SETTINGS, Json(order.spec.clone()));
        let attempt = Attempt::new(Arc::clone(&self.worker), ctx.key(), order)?;
        let attempt = Arc::new(Mutex::new(attempt));
        for n in 0.. {
            let name = promise_of(n);
            let producer = Arc::clone(&attempt);
            // Does not run for an entry that the engine has recorded.
            let produce = move || async move { Ok(Json(producer.lock_owned().await.next_entry().await?)) };
            let Json(entry) = ctx.run(produce).name(name.clone()).await?;
            ctx.resolve_promise(&name, Json(entry.clone()));
            if let EntryContent::End(_) = entry.content {
                break;
            }
            if let Some(files) = &entry.files {
                ctx.set(FILES, Json(files.clone()));
            }
            attempt.lock().await.recorded(&entry).await?;
        }
        // Whoever waits for a cancellation learns that there is none any more.
        ctx.resolve_promise(CANCEL, false);
        Ok(())
    }

    /// Returns entries of the run.
    #[handler]
    async fn read(
        &self,
        ctx: SharedWorkflowContext<'_>,
        request: Json<ReadEntries>,
    ) -> Result<Json<Vec<LogEntry>>, HandlerError> {
        let Json(ReadEntries { from, wait }) = request;
        let mut entries = Vec::new();
        for n in from..from + PAGE {
            let name = promise_of(n);
            match ctx.peek_promise::<Json<LogEntry>>(&name).await? {
                Some(Json(entry)) => entries.push(entry),
                None => break,
            }
        }
        if entries.is_empty() && wait {
            let name = promise_of(from);
            let Json(entry) = ctx.promise::<Json<LogEntry>>(&name).await?;
            entries.push(entry);
        }
        Ok(Json(entries))
    }

    /// What is known of the run from its start; nothing before a worker has begun with it.
    #[handler]
    async fn about(&self, ctx: SharedWorkflowContext<'_>) -> Result<Json<Option<RunAbout>>, HandlerError> {
        let about = ctx.get::<Json<RunAbout>>(ABOUT).await?;
        Ok(Json(about.map(|Json(about)| about)))
    }

    /// The settings of the run; nothing before a worker has begun with it.
    #[handler]
    async fn settings(&self, ctx: SharedWorkflowContext<'_>) -> Result<Json<Option<RunSpec>>, HandlerError> {
        let settings = ctx.get::<Json<RunSpec>>(SETTINGS).await?;
        Ok(Json(settings.map(|Json(settings)| settings)))
    }

    /// The files of the workspace after the last entry, if they have changed.
    #[handler]
    async fn files(&self, ctx: SharedWorkflowContext<'_>) -> Result<Json<Option<BlobHash>>, HandlerError> {
        let files = ctx.get::<Json<BlobHash>>(FILES).await?;
        Ok(Json(files.map(|Json(files)| files)))
    }

    /// Cancels the run.
    #[handler]
    async fn cancel(&self, ctx: SharedWorkflowContext<'_>) -> Result<(), HandlerError> {
        ctx.resolve_promise(CANCEL, true);
        Ok(())
    }

    /// Answers a question of the run; whether this answer is the one that counts.
    #[handler]
    async fn answer(
        &self,
        ctx: SharedWorkflowContext<'_>,
        given: Json<GivenAnswer>,
    ) -> Result<bool, HandlerError> {
        let Json(given) = given;
        if ctx.peek_promise::<Json<GivenAnswer>>(&given.promise).await?.is_none() {
            ctx.resolve_promise(&given.promise, Json(given.clone()));
        }
        let Json(first) = ctx.promise::<Json<GivenAnswer>>(&given.promise).await?;
        Ok(first.id == given.id)
    }

    /// Waits for the answer to a question; nothing if it is over without one.
    #[handler]
    async fn answered(
        &self,
        ctx: SharedWorkflowContext<'_>,
        promise: Json<String>,
    ) -> Result<Json<Option<serde_json::Value>>, HandlerError> {
        let Json(promise) = promise;
        let Json(given) = ctx.promise::<Json<GivenAnswer>>(&promise).await?;
        Ok(Json(given.value))
    }

    /// Waits until the run is cancelled or has ended; whether it was cancelled.
    #[handler]
    async fn cancelled(&self, ctx: SharedWorkflowContext<'_>) -> Result<bool, HandlerError> {
        Ok(ctx.promise::<bool>(CANCEL).await?)
    }
}

/// The endpoint that the engine calls.
pub(crate) fn endpoint(worker: Arc<WorkerParts>, keys: &[String]) -> Result<Endpoint, EngineError> {
    let options = ServiceOptions::new()
        .inactivity_timeout(INACTIVITY)
        .abort_timeout(ABORT)
        .journal_retention(RETENTION)
        .retry_policy_initial_interval(Duration::from_millis(200))
        .retry_policy_exponentiation_factor(2.0)
        .retry_policy_max_interval(Duration::from_secs(5))
        .retry_policy_max_attempts(u64::from(u32::MAX))
        .retry_policy_pause_on_max_attempts()
        .handler("run", HandlerOptions::new().workflow_retention(RETENTION));
    let mut endpoint =
        Endpoint::builder().bind(FuseeRun { worker }.into_service_definition().options(options));
    for key in keys {
        let invalid =
            |error: &dyn std::fmt::Display| EngineError::Key { key: key.clone(), cause: error.to_string() };
        endpoint = endpoint.identity_key(key).map_err(|error| invalid(&error))?;
    }
    Ok(endpoint.build())
}

impl From<AttemptError> for HandlerError {
    fn from(error: AttemptError) -> Self {
        match error {
            // Another attempt, perhaps on another worker, may succeed.
            AttemptError::Again(error) => HandlerError::from(error),
            AttemptError::Never(message) => TerminalError::new(message).into(),
        }
    }
}
