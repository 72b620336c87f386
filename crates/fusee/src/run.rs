//! A run in progress, as its program sees it: a stream of events that can be cancelled and answered.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use fusee_engine::agent::TaskProgress;
use fusee_engine::approval::{ApprovalAnswer, OutsideAnswer};
use fusee_engine::journal::event::Event;
use fusee_engine::journal::{EventRecord, EventStream, JournalError, RunId};
use fusee_engine::model::{CancellationToken, Usage};
use fusee_engine::run::{RunHandle, RunOutcome};
use futures_util::Stream;

use crate::{Error, Outcome, TaskState};

type Records = Pin<Box<dyn Stream<Item = Result<Arc<EventRecord>, JournalError>> + Send>>;

/// A run in progress: a [`Stream`] of its [`Event`]s that ends with the run. It goes on whether or not they are
/// read; dropping it does not cancel the run.
pub struct Run {
    handle: RunHandle,
    records: Records,
    /// Why the events ended early.
    failure: Option<JournalError>,
}

impl Run {
    pub(crate) fn new(handle: RunHandle) -> Self {
        let records = Box::pin(records(handle.events()));
        Self { handle, records, failure: None }
    }

    /// The id of the run, for [`Agent::resume`](crate::Agent::resume).
    pub fn id(&self) -> &RunId {
        self.handle.id()
    }

    /// The next event; `None` once the run has ended.
    pub async fn next(&mut self) -> Option<Event> {
        std::future::poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await
    }

    /// Another subscription to the events, with their numbers, times and tasks.
    pub fn records(&self) -> impl Stream<Item = Result<Arc<EventRecord>, JournalError>> + Send + use<> {
        records(self.handle.events())
    }

    /// Waits for the run to end.
    pub async fn outcome(self) -> Result<Outcome, Error> {
        if let Some(failure) = self.failure {
            return Err(failure.into());
        }
        ended(self.handle.outcome().await)
    }

    /// Cancels the run: the model's stream ends, a running tool is stopped. The run ends as cancelled.
    pub fn cancel(&self) {
        self.handle.cancel();
    }

    /// Approves the call of an [`Event::ApprovalRequested`]. Calls ask only if
    /// [`AgentBuilder::approval`](crate::AgentBuilder::approval) allows it.
    pub fn approve(&self, call_id: &str) {
        self.handle.answer(Some(call_id), &OutsideAnswer::Approval(ApprovalAnswer::yes()));
    }

    /// Refuses the call of an [`Event::ApprovalRequested`]; the model is told the reason.
    pub fn deny(&self, call_id: &str, reason: impl Into<String>) {
        self.handle.answer(Some(call_id), &OutsideAnswer::Approval(ApprovalAnswer::no(reason)));
    }

    /// Answers the oldest open question of the model, which is an [`Event::ApprovalRequested`] of the tool
    /// `ask_user`.
    pub fn answer(&self, text: impl Into<String>) {
        self.handle.answer(None, &OutsideAnswer::Text(text.into()));
    }

    /// Status of the run.
    pub fn status(&self) -> TaskState {
        self.handle.progress().status().map_or(TaskState::Running, TaskState::from)
    }

    /// Number of model replies so far.
    pub fn current_turn_index(&self) -> u32 {
        self.handle.progress().current_turn_index()
    }

    /// Reported token usage so far.
    pub fn token_usage(&self) -> Usage {
        self.handle.progress().token_usage()
    }

    pub(crate) fn cancellation(&self) -> CancellationToken {
        self.handle.cancellation()
    }

    pub(crate) fn progress(&self) -> Arc<TaskProgress> {
        Arc::clone(self.handle.progress())
    }
}

impl Stream for Run {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Event>> {
        self.records.as_mut().poll_next(context).map(|next| match next? {
            Ok(record) => Some(record.event.clone()),
            Err(failure) => {
                self.failure = Some(failure);
                None
            }
        })
    }
}

impl std::fmt::Debug for Run {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Run").field("id", self.id()).finish_non_exhaustive()
    }
}

/// The outcome of a run that ended.
pub(crate) fn ended(outcome: RunOutcome) -> Result<Outcome, Error> {
    match outcome {
        RunOutcome::Ended(outcome) => Ok(outcome),
        RunOutcome::Stopped(stop) => Err(Error::Stopped(stop)),
        RunOutcome::Lost(cause) => Err(Error::Panicked(cause)),
    }
}

fn records(events: EventStream) -> impl Stream<Item = Result<Arc<EventRecord>, JournalError>> + Send {
    futures_util::stream::unfold(Some(events), |events| async {
        let mut events = events?;
        match events.next().await {
            Ok(Some(record)) => Some((Ok(record), Some(events))),
            Ok(None) => None,
            Err(error) => Some((Err(error), None)),
        }
    })
}
