//! The trait [`DurableRun`]: model replies, tool results, time and user answers enter a run only through it.
//! [`crate::SqliteRun`] implements it in one process; a distributed engine would be another implementation.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::event::EventDelta;
use crate::{Branch, Divergence, Event, JournalError, RunId, StepKey, StepRequest};

/// A boxed `Send` future.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Executes a step that is not in the journal yet. Infallible: a failure is a value too.
pub type StepBody<'a> = Box<dyn FnOnce() -> BoxFuture<'a, Value> + Send + 'a>;

/// Runs one child of a fan-out until it ends, or until the token stops it.
pub type ChildBody<'a> =
    Box<dyn FnOnce(CancellationToken) -> BoxFuture<'a, Result<ChildEnd, RunAborted>> + Send + 'a>;

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

    /// Runs children in parallel, at most `limit` at once, each on a branch of its own: the only parallelism
    /// within a run. The first child that fails stops the others, and so does `cancel`.
    ///
    /// The step records how the children ended, not what they computed: a result that is `replayed` says that
    /// they did not run here, and the caller runs those it needs again, answered by their branches. A
    /// distributed engine runs each child in an invocation of its own, which replays the program up to this
    /// request and then runs that one child.
    fn fan_out<'a>(
        &'a self,
        call: StepRequest,
        children: Vec<ChildBody<'a>>,
        limit: usize,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<StepResult<FanOutEnd>, RunAborted>>;

    /// Waits for an answer: from `ask`, which puts the question to whoever this process can reach, or left from
    /// outside as a signal. Callers use the typed [`wait`](#method.wait).
    fn record_wait<'a>(
        &'a self,
        wait: WaitRequest,
        ask: StepBody<'a>,
    ) -> BoxFuture<'a, Result<StepResult, RunAborted>>;

    /// Number of the next step on this branch.
    fn position(&self, branch: &Branch) -> u64;

    /// Emits a program event; it becomes visible once it is committed. Emitted while a step body of this
    /// branch is running, it is treated like [`DurableRun::note`], because a replay does not run bodies.
    fn emit(&self, task: &Branch, event: Event);

    /// Emits a runtime event such as `task_resumed`, which a replay of the program does not produce.
    fn note(&self, task: &Branch, event: Event);

    /// Publishes a fragment of work in progress. Never journaled; dropped for subscribers that cannot keep
    /// up.
    fn publish_delta(&self, task: &Branch, delta: EventDelta);

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

    /// Waits for an answer that is a `T`: from `ask`, or from outside as a signal of this name; `timeout_value` if
    /// neither came within `limit`. Signals that are not a `T` are ignored.
    pub async fn wait<'a, T>(
        &'a self,
        request: StepRequest,
        signal: String,
        (limit, timeout_value): (Duration, T),
        ask: impl Future<Output = T> + Send + 'a,
    ) -> Result<StepResult<T>, RunAborted>
    where
        T: Serialize + DeserializeOwned,
    {
        let timeout_value = serde_json::to_value(timeout_value).unwrap_or_default();
        let accepts = |answer: &Value| T::deserialize(answer).is_ok();
        let wait = WaitRequest { call: request, signal, limit, timeout_value, accepts };
        self.record_wait(wait, step_body(ask)).await?.typed()
    }
}

/// A question that can be answered from outside.
pub struct WaitRequest {
    /// The step that records the answer.
    pub call: StepRequest,
    /// Name under which an answer can be left, unique among the questions of a run.
    pub signal: String,
    /// How long to wait.
    pub limit: Duration,
    /// The result if no answer came in time.
    pub timeout_value: Value,
    /// Whether an answer from outside has the right form; others are ignored.
    pub accepts: fn(&Value) -> bool,
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

/// Whether a step that must not repeat has run.
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
    Proceed(Value),
    /// There is nothing to execute; this is the result.
    Resolved(Value),
}

/// How a child of a fan-out ended, with what it reports for the record.
#[derive(Clone, Debug, PartialEq)]
pub enum ChildEnd {
    /// It ended.
    Done(Value),
    /// It failed, which stops the others.
    Failed(Value),
    /// It was stopped.
    Stopped(Value),
}

/// How a fan-out ended, as recorded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FanOutEnd {
    /// The child that failed first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<usize>,
    /// Report of each child that was started, in the order of the children.
    #[serde(rename = "effects")]
    pub reports: Vec<Value>,
    /// Children that were stopped before their end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stopped: Vec<usize>,
    /// Whether the fan-out was cancelled from outside.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cancelled: bool,
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
    /// The process released the run so that another can resume it.
    #[error("the run was handed over to another process")]
    HandedOver,
    /// A recorded result cannot be deserialized by this program.
    #[error("a recorded step cannot be read back: {0}")]
    Unreadable(String),
    /// Files of the workspace are not in the state that the journal asks for; a resume tries again.
    #[error("the files could not be restored: {0}")]
    NotRestored(String),
    /// Reading or writing the journal failed.
    #[error(transparent)]
    Journal(#[from] JournalError),
}
