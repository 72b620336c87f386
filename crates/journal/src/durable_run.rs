//! The engine trait: model replies, tool results, time and user answers enter a run only through it.
//! [`crate::SqliteRun`] implements it in one process; a distributed engine would be another implementation.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::event::EventDelta;
use crate::{Branch, Divergence, Event, JournalError, RunId, StepKey, StepRequest};

/// A boxed `Send` future.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Executes a step that is not in the journal yet. Infallible: a failure is a value too.
pub type StepBody<'a> = Box<dyn FnOnce() -> BoxFuture<'a, Value> + Send + 'a>;

/// Computes the intent of a `once` before it is recorded.
pub type IntentFn<'a> = Box<dyn FnOnce() -> BoxFuture<'a, Intention> + Send + 'a>;

/// Records one run and executes its steps.
///
/// Within a branch, requests are sequential and each future must be driven to completion. A step that is
/// dropped half-way may be followed by others on its branch only if a step recorded that it would be dropped.
pub trait DurableRun: Send + Sync {
    /// Id of the run.
    fn run(&self) -> &RunId;

    /// Runs a step that may be repeated until its result is durable; from then on the recorded result is
    /// returned. Callers use the typed [`step`](#method.step).
    fn record_step<'a>(
        &'a self,
        call: StepRequest,
        body: StepBody<'a>,
    ) -> BoxFuture<'a, Result<StepResult, RunAborted>>;

    /// Writes the intent first. An intent found without a result gives [`OnceOutcome::Interrupted`], never a
    /// second execution; the caller settles it and hands the result to [`DurableRun::conclude`].
    fn once<'a>(
        &'a self,
        call: StepRequest,
        intend: IntentFn<'a>,
        body: StepBody<'a>,
    ) -> BoxFuture<'a, Result<OnceOutcome, RunAborted>>;

    /// Records the result of an interrupted `once`, as settled by its caller.
    fn conclude<'a>(
        &'a self,
        key: StepKey,
        body: StepBody<'a>,
    ) -> BoxFuture<'a, Result<StepResult, RunAborted>>;

    /// Runs child branches in parallel, at most `limit` at once. The only parallelism within a run.
    fn fan_out<'a>(
        &'a self,
        branch: &'a Branch,
        calls: Vec<StepRequest>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Result<Value, ChildFailure>>, RunAborted>>;

    /// Waits for an external answer of this name for at most `limit`; `None` on timeout. Each answer is
    /// consumed by exactly one wait.
    fn wait<'a>(
        &'a self,
        branch: &'a Branch,
        name: &'a str,
        limit: Duration,
    ) -> BoxFuture<'a, Result<Option<Value>, RunAborted>>;

    /// Number of the next step on this branch.
    fn position(&self, branch: &Branch) -> u64;

    /// Emits a program event; it becomes visible once it is committed. Emitted while a step body of this
    /// branch is running, it is treated like [`DurableRun::note`], because a replay does not run bodies.
    fn emit(&self, task: &Branch, event: Event);

    /// Emits a runtime event such as `task_resumed`, which a replay of the program does not produce.
    fn note(&self, task: &Branch, event: Event);

    /// Publishes a fragment of work in progress. Never journaled; dropped for subscribers that cannot keep
    /// up.
    fn pass(&self, task: &Branch, delta: EventDelta);

    /// Waits until every step and event so far is committed.
    fn flush<'a>(&'a self) -> BoxFuture<'a, Result<(), RunAborted>>;
}

impl<'r> dyn DurableRun + 'r {
    /// Runs a step whose result is a `T`: `body` runs unless the journal holds the result already. The value
    /// returned is always read back from its JSON form, so a fresh run and a replay continue alike.
    pub async fn step<'a, T>(
        &'a self,
        request: StepRequest,
        body: impl Future<Output = T> + Send + 'a,
    ) -> Result<StepResult<T>, RunAborted>
    where
        T: Serialize + DeserializeOwned,
    {
        self.record_step(request, step_body(body)).await?.typed()
    }
}

/// Boxes a future as a step body. A value that cannot be serialized is recorded as `null`.
pub fn step_body<'a, T: Serialize>(body: impl Future<Output = T> + Send + 'a) -> StepBody<'a> {
    Box::new(move || Box::pin(async move { serde_json::to_value(body.await).unwrap_or_default() }))
}

/// Result of a step, fresh or read from the journal.
#[derive(Clone, Debug)]
pub struct StepResult<T = Value> {
    /// The result, as JSON unless the step is typed.
    pub value: T,
    /// When it was recorded, in milliseconds since the Unix epoch. This is the program's clock.
    pub at_ms: i64,
    /// Duration of the body in milliseconds.
    pub duration_ms: u64,
    /// Whether it was read from the journal.
    pub replayed: bool,
}

/// Time, duration and origin of a step, without its value.
pub type StepMeta = StepResult<()>;

impl StepResult {
    /// Deserializes the result. Fails if the journal was written by an incompatible program.
    pub fn typed<T: DeserializeOwned>(self) -> Result<StepResult<T>, RunAborted> {
        let Self { value, at_ms, duration_ms, replayed } = self;
        match serde_json::from_value(value) {
            Ok(value) => Ok(StepResult { value, at_ms, duration_ms, replayed }),
            Err(error) => Err(RunAborted::Unreadable(error.to_string())),
        }
    }

    /// The deserialized value alone.
    pub fn read<T: DeserializeOwned>(self) -> Result<T, RunAborted> {
        self.typed().map(|result| result.value)
    }
}

impl<T> StepResult<T> {
    /// Separates the value from what is known about the step.
    pub fn split(self) -> (T, StepMeta) {
        let Self { value, at_ms, duration_ms, replayed } = self;
        (value, StepResult { value: (), at_ms, duration_ms, replayed })
    }
}

/// Outcome of a `once`.
#[derive(Debug)]
pub enum OnceOutcome {
    /// It ran, now or in an earlier process.
    Done(StepResult),
    /// It was started and its result is unknown.
    Interrupted {
        /// The step to settle with [`DurableRun::conclude`].
        key: StepKey,
        /// The recorded intent.
        intent: Value,
    },
}

/// Result of [`IntentFn`].
#[derive(Debug)]
pub enum Intention {
    /// Proceed with this intent.
    Go(Value),
    /// There is nothing to execute; this is the result.
    Answer(Value),
}

/// Failure of a child branch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[error("{kind}: {message}")]
pub struct ChildFailure {
    /// Stable name of the failure kind.
    pub kind: String,
    /// Description of the failure.
    pub message: String,
}

/// Why a run cannot continue. Permanent: every later request on the run returns the same error.
#[derive(Clone, Debug, thiserror::Error)]
pub enum RunAborted {
    /// The program's requests do not match the journal.
    #[error("{0}")]
    Diverged(Box<Divergence>),
    /// A replay reached the end of the recording.
    #[error("the journal ends at {0}: the run was not finished")]
    EndOfJournal(StepKey),
    /// A recorded result cannot be deserialized by this program.
    #[error("a recorded step cannot be read back: {0}")]
    Unreadable(String),
    /// Reading or writing the journal failed.
    #[error(transparent)]
    Journal(#[from] JournalError),
}
