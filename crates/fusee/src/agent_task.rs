//! A task as the agent specification words it: run, cancel, status, turn index, token usage, and listeners by
//! event. `session.rs` is what its turns are asked with, `task_runner.rs` runs tasks by submission.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fusee_engine::agent::TaskProgress;
use fusee_engine::journal::event::{ErrorCode, ErrorDetail, Event, TaskComplete, TaskStatus};
use fusee_engine::journal::{Branch, RunId};
use fusee_engine::model::{CancellationToken, Usage};
use futures_util::StreamExt as _;
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::event_emitter::{EventEmitter, EventForwarder, TaskEvent};
use crate::{Error, Outcome, Session, Task};

/// An item of a task's input: a message of the user, a reply of the model, or the result of a tool call.
pub use fusee_engine::model::Message as ResponseItem;

/// State of a task, at any time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TaskState {
    /// It was not run yet.
    Pending,
    /// It is being worked on.
    Running,
    /// It ended with an answer.
    Completed,
    /// It ended without an answer.
    Failed,
    /// It was cancelled.
    Cancelled,
}

impl TaskState {
    /// Whether the task has ended.
    pub fn has_ended(self) -> bool {
        !matches!(self, Self::Pending | Self::Running)
    }
}

impl From<TaskStatus> for TaskState {
    fn from(status: TaskStatus) -> Self {
        match status {
            TaskStatus::Completed => Self::Completed,
            TaskStatus::Failed => Self::Failed,
            TaskStatus::Cancelled => Self::Cancelled,
        }
    }
}

/// Ends a task whose future was dropped.
struct EndOnDrop<'s>(&'s watch::Sender<TaskState>);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        replace_if(self.0, TaskState::Running, TaskState::Cancelled);
    }
}

fn replace_if(state: &watch::Sender<TaskState>, from: TaskState, to: TaskState) {
    state.send_if_modified(|state| *state == from && std::mem::replace(state, to) != to);
}

/// One task of a session: turns of a model and its tools, from the user's input to the answer. All methods take
/// `&self`, so that it can be cancelled and asked for its progress while it runs.
pub struct AgentTask {
    session: Session,
    id: RunId,
    task: Task,
    events: EventEmitter,
    listeners: EventEmitter,
    started: AtomicBool,
    cancel: CancellationToken,
    state: watch::Sender<TaskState>,
    progress: Mutex<Arc<TaskProgress>>,
}

impl AgentTask {
    /// A task of a session, not yet running. The submission id names its run in the journal; the last item of
    /// `input` is the user's request, and those before it are the conversation that leads to it. Its events go to
    /// `events`, which other tasks may share. In review mode it reads and explains; everything else needs
    /// approval.
    pub fn new(
        session: Session,
        submission_id: RunId,
        input: Vec<ResponseItem>,
        events: EventEmitter,
        review_mode: bool,
    ) -> Self {
        let task = Task::conversation(input);
        let task = if review_mode { task.review() } else { task };
        Self::from_parts(session, submission_id, task, events)
    }

    pub(crate) fn from_parts(session: Session, id: RunId, task: Task, events: EventEmitter) -> Self {
        Self {
            session,
            id,
            task,
            events,
            listeners: EventEmitter::new(),
            started: AtomicBool::new(false),
            cancel: CancellationToken::new(),
            state: watch::Sender::new(TaskState::Pending),
            progress: Mutex::default(),
        }
    }

    /// The submission id, which is the id of the run.
    pub fn submission_id(&self) -> &RunId {
        &self.id
    }

    /// Calls `listener` for every event of this kind of this task. Subtasks are tasks of their own.
    pub fn on<E: TaskEvent>(&self, event: E, listener: impl Fn(&E::Payload) + Send + Sync + 'static) {
        self.listeners.on(event, listener);
    }

    /// Runs the task to its end. A task runs once; a task that fails is not an error. If the future is dropped,
    /// the task is cancelled.
    pub async fn run(&self) -> Result<Outcome, Error> {
        if self.started.swap(true, Ordering::SeqCst) {
            return Err(Error::AlreadyRun(self.id.clone()));
        }
        self.state.send_replace(TaskState::Running);
        let _end = EndOnDrop(&self.state);
        let mut events = EventForwarder { emitters: [&self.events, &self.listeners], input_tokens: 0 };
        let result = self.work(&mut events).await;
        let state = match &result {
            Ok(outcome) => outcome.status.into(),
            Err(_) => TaskState::Failed,
        };
        if result.is_ok() {
            self.session.ended(self.id.clone());
        }
        self.state.send_replace(state);
        result
    }

    async fn work(&self, events: &mut EventForwarder<'_>) -> Result<Outcome, Error> {
        let context = self.session.turn_context();
        let mut task = self.task.clone().run_id(self.id.clone());
        if let (None, Some(last)) = (&task.continues, self.session.last_task()) {
            task = task.continues(&last);
        }
        let run = match self.session.agent().start_with(task, None, &context).await {
            Ok(run) => run,
            Err(error) => {
                self.fail(events, &error);
                return Err(error);
            }
        };
        *self.progress.lock() = run.progress();
        let _cancel_on_drop = run.cancellation().drop_guard();
        let mut records = pin!(run.records());
        let mut cancelled = false;
        loop {
            tokio::select! {
                record = records.next() => {
                    let Some(record) = record else { break };
                    let record = record?;
                    if record.task != Branch::main() {
                        continue;
                    }
                    if let Event::TaskComplete(complete) = &record.event {
                        self.state.send_replace(complete.status.into());
                    }
                    events.forward(&record.event);
                }
                () = self.cancel.cancelled(), if !cancelled => {
                    cancelled = true;
                    run.cancel();
                }
            }
        }
        run.outcome().await
    }

    /// Cancels the task: the model's stream ends, the running tool is stopped, and the calls that are open are
    /// answered as aborted. Returns once the task has ended. A task that was not run yet ends as soon as it is.
    pub async fn cancel(&self) {
        self.cancel.cancel();
        let mut state = self.state.subscribe();
        replace_if(&self.state, TaskState::Pending, TaskState::Cancelled);
        // The sender lives as long as the task.
        let _ = state.wait_for(|state| state.has_ended()).await;
    }

    /// Status of the task.
    pub fn status(&self) -> TaskState {
        *self.state.borrow()
    }

    /// Number of model replies so far.
    pub fn current_turn_index(&self) -> u32 {
        self.progress.lock().current_turn_index()
    }

    /// Reported token usage so far.
    pub fn token_usage(&self) -> Usage {
        self.progress.lock().token_usage()
    }

    /// Tells the listeners about a task that could not start, which has no events of its own.
    fn fail(&self, events: &mut EventForwarder<'_>, error: &Error) {
        self.state.send_replace(TaskState::Failed);
        let (code, message) = (ErrorCode::InitFailed, error.to_string());
        events.forward(&Event::Error { code, message: message.clone() });
        events.forward(&Event::TaskComplete(TaskComplete {
            submission_id: self.id.to_string(),
            total_turns: 0,
            total_tokens: 0,
            cached_tokens: 0,
            duration_ms: 0,
            status: TaskStatus::Failed,
            answer: String::new(),
            cost_usd: None,
            error: Some(ErrorDetail { code, reason: "configuration_error".to_owned(), message }),
        }));
    }
}
