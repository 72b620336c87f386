//! A task as the agent specification words it: run, cancel, status, turn index, token usage, and listeners by
//! event.

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use fusee_engine::agent::TaskProgress;
use fusee_engine::journal::event::{Event, TaskStatus};
use fusee_engine::model::{CancellationToken, Usage};

use crate::{Agent, Error, Outcome, Task};

/// Events that an [`AgentTask`] tells its listeners.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TaskEvent {
    /// A request is about to be sent to the model.
    TurnStart,
    /// The reply and the results of its calls have arrived.
    TurnComplete,
    /// The task has ended.
    TaskComplete,
    /// Something failed.
    Error,
    /// The conversation was compacted.
    Compaction,
}

impl TaskEvent {
    fn is(self, event: &Event) -> bool {
        matches!(
            (self, event),
            (Self::TurnStart, Event::TurnStart { .. })
                | (Self::TurnComplete, Event::TurnComplete { .. })
                | (Self::TaskComplete, Event::TaskComplete(_))
                | (Self::Error, Event::Error { .. })
                | (Self::Compaction, Event::Compaction { .. })
        )
    }
}

type Listener = Box<dyn FnMut(&Event) + Send>;

/// One task of an agent, with listeners. All methods take `&self`, so that it can be cancelled and asked for its
/// progress while it runs.
pub struct AgentTask {
    agent: Agent,
    task: Task,
    cancel: CancellationToken,
    listeners: Mutex<Vec<(TaskEvent, Listener)>>,
    progress: Mutex<Arc<TaskProgress>>,
}

impl AgentTask {
    pub(crate) fn new(agent: Agent, task: Task) -> Self {
        let (listeners, progress) = (Mutex::default(), Mutex::default());
        Self { agent, task, cancel: CancellationToken::new(), listeners, progress }
    }

    /// Calls `listener` for every event of this kind.
    pub fn on(&self, event: TaskEvent, listener: impl FnMut(&Event) + Send + 'static) {
        lock(&self.listeners).push((event, Box::new(listener)));
    }

    /// Runs the task to its end. Each call is a run of its own.
    pub async fn run(&self) -> Result<Outcome, Error> {
        let mut run = self.agent.start(self.task.clone()).await?;
        *lock(&self.progress) = run.progress();
        let mut cancelled = false;
        loop {
            let event = tokio::select! {
                event = run.next() => event,
                () = self.cancel.cancelled(), if !cancelled => {
                    cancelled = true;
                    run.cancel();
                    continue;
                }
            };
            let Some(event) = event else { return run.outcome().await };
            let mut listeners = lock(&self.listeners);
            listeners
                .iter_mut()
                .filter(|(kind, _)| kind.is(&event))
                .for_each(|(_, listener)| listener(&event));
        }
    }

    /// Cancels the task.
    pub fn cancel(&self) {
        self.cancel.cancel();
    }

    /// Final status; `None` before the end.
    pub fn status(&self) -> Option<TaskStatus> {
        lock(&self.progress).status()
    }

    /// Number of model replies so far.
    pub fn current_turn_index(&self) -> u32 {
        lock(&self.progress).current_turn_index()
    }

    /// Reported token usage so far.
    pub fn token_usage(&self) -> Usage {
        lock(&self.progress).token_usage()
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock()
}
