//! The engine: the one door through which a model's reply, a tool's result, the time and a person's answer
//! enter a run. [`crate::Embedded`] is its form in one process; a distributed engine would be another.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::event::Delta;
use crate::{Branch, Call, Divergence, Event, JournalError, RunId, StepKey};

/// A future that can be sent between threads.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What a step does when the journal does not hold it yet. It cannot fail: a failure is a value too.
pub type Body<'a> = Box<dyn FnOnce() -> BoxFuture<'a, Value> + Send + 'a>;

/// Works out what a `once` is about to do, before it is written down.
pub type Intend<'a> = Box<dyn FnOnce() -> BoxFuture<'a, Intention> + Send + 'a>;

/// Keeps the journal of one run and executes its steps.
///
/// Within a branch one thing is asked after the other, each future driven to its end: a step that is dropped
/// half-way may only be followed by others on its branch if a step recorded that it would be.
pub trait Engine: Send + Sync {
    /// The run.
    fn run(&self) -> &RunId;

    /// May be repeated until its result is durable; from then on the result is read back.
    fn step<'a>(&'a self, call: Call, body: Body<'a>) -> BoxFuture<'a, Result<Recorded, Stop>>;

    /// Writes the intent first. An intent found without a result gives [`Outcome::Interrupted`], never a
    /// second execution; the caller settles it and hands the result to [`Engine::conclude`].
    fn once<'a>(
        &'a self,
        call: Call,
        intend: Intend<'a>,
        body: Body<'a>,
    ) -> BoxFuture<'a, Result<Outcome, Stop>>;

    /// Writes the result of an interrupted `once`, as its caller settled it.
    fn conclude<'a>(&'a self, key: StepKey, body: Body<'a>) -> BoxFuture<'a, Result<Recorded, Stop>>;

    /// Runs child branches side by side, at most `limit` at once. The only parallelism of a run.
    fn fan_out<'a>(
        &'a self,
        branch: &'a Branch,
        calls: Vec<Call>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Result<Value, Fault>>, Stop>>;

    /// Waits for an answer from outside under this name, at most `limit` long; `None` when the time is over.
    /// An answer is taken by one wait.
    fn wait<'a>(
        &'a self,
        branch: &'a Branch,
        name: &'a str,
        limit: Duration,
    ) -> BoxFuture<'a, Result<Option<Value>, Stop>>;

    /// The number of the next step of this branch.
    fn position(&self, branch: &Branch) -> u64;

    /// Adds an event of the program. It becomes visible when the journal holds it. Made while a step of this
    /// branch runs its body it is a [`Engine::note`], since a second run of the program does not run bodies.
    fn emit(&self, task: &Branch, event: Event);

    /// Adds an event of the runtime, such as `task_resumed`: one that a second run of the program does not make.
    fn note(&self, task: &Branch, event: Event);

    /// Shows a piece of something under way. Never journaled, dropped when nobody keeps up.
    fn pass(&self, task: &Branch, delta: Delta);

    /// Waits until all that was asked and emitted so far is in the journal.
    fn flush<'a>(&'a self) -> BoxFuture<'a, Result<(), Stop>>;
}

/// The result of a step, fresh or read back.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// The result.
    pub value: Value,
    /// When it was recorded, in milliseconds since the epoch. The program's clock.
    pub at_ms: i64,
    /// How long the body took.
    pub duration_ms: u64,
    /// Whether it came from the journal.
    pub replayed: bool,
}

impl Recorded {
    /// The result as a type. A journal that does not fit was written by another program.
    pub fn read<T: DeserializeOwned>(self) -> Result<T, Stop> {
        serde_json::from_value(self.value).map_err(|error| Stop::Unreadable(error.to_string()))
    }
}

/// How a `once` ended.
#[derive(Debug)]
pub enum Outcome {
    /// It ran, now or then.
    Done(Recorded),
    /// It was begun and its end is not known.
    Interrupted {
        /// Where it stands.
        key: StepKey,
        /// What it was about to do.
        intent: Value,
    },
}

/// What [`Intend`] found.
#[derive(Debug)]
pub enum Intention {
    /// Go on: this is about to happen.
    Go(Value),
    /// Nothing is going to happen; this is the result.
    Answer(Value),
}

/// A child branch that failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[error("{kind}: {message}")]
pub struct Fault {
    /// The sort of failure.
    pub kind: String,
    /// What happened.
    pub message: String,
}

/// Why a run cannot go on at all. It is final: all that is asked of the run from then on gives the same.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Stop {
    /// The program asks for something else than the journal holds.
    #[error("{0}")]
    Diverged(Box<Divergence>),
    /// A replay came to the end of what was recorded.
    #[error("the journal ends at {0}: the run was not finished")]
    EndOfJournal(StepKey),
    /// A recorded result is not one this program understands.
    #[error("a recorded step cannot be read back: {0}")]
    Unreadable(String),
    /// The journal itself failed.
    #[error(transparent)]
    Journal(#[from] JournalError),
}
