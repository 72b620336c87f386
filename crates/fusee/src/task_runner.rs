//! Runs tasks by submission: one session, one emitter, one [`AgentTask`] for each.

use fusee_engine::journal::RunId;

use crate::system::new_run_id;
use crate::{AgentTask, Error, EventEmitter, Outcome, ResponseItem, Session};

/// Input that a user submits to a session.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Submission {
    /// Id of the submission, which is the id of its run.
    pub id: RunId,
    /// The conversation that leads to the request, which is the last item.
    pub input: Vec<ResponseItem>,
    /// Whether the task only reads and explains, unless a call is approved.
    pub review_mode: bool,
}

impl Submission {
    /// A request in plain words, with a new id.
    pub fn new(request: impl Into<String>) -> Result<Self, Error> {
        let id = new_run_id().map_err(Error::RunId)?;
        let input = vec![ResponseItem::user(request)];
        Ok(Self { id, input, review_mode: false })
    }

    /// Sets the id.
    #[must_use]
    pub fn with_id(self, id: RunId) -> Self {
        Self { id, ..self }
    }

    /// Puts the task in review mode.
    #[must_use]
    pub fn review(self) -> Self {
        Self { review_mode: true, ..self }
    }
}

/// Runs the submissions to a session. Its emitter hears the events of all of them.
#[derive(Clone, Debug)]
pub struct TaskRunner {
    session: Session,
    events: EventEmitter,
}

impl TaskRunner {
    /// A runner for the tasks of a session.
    pub fn new(session: Session, events: EventEmitter) -> Self {
        Self { session, events }
    }

    /// The task of a submission, not yet running.
    pub fn task(&self, submission: Submission) -> AgentTask {
        let Submission { id, input, review_mode } = submission;
        AgentTask::new(self.session.clone(), id, input, self.events.clone(), review_mode)
    }

    /// Runs the task of a submission to its end.
    pub async fn run_task(&self, submission: Submission) -> Result<Outcome, Error> {
        self.task(submission).run().await
    }
}
