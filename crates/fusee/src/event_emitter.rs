//! Listeners for the events of tasks, by event.

use std::any::{Any, TypeId};
use std::sync::Arc;

use fusee_engine::journal::event::{ErrorCode, Event};
use parking_lot::Mutex;

/// An event that can be listened to. The types of [`task_event`] are the five that there are.
pub trait TaskEvent: 'static {
    /// What the listeners are given.
    type Payload: 'static;
}

/// The events of an [`AgentTask`](crate::AgentTask).
pub mod task_event {
    use super::{CompactionEvent, TaskError, TaskEvent, Turn};

    macro_rules! events {
        ($($(#[$doc:meta])* $name:ident: $payload:ty;)*) => {$(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug)]
            pub struct $name;

            impl TaskEvent for $name {
                type Payload = $payload;
            }
        )*};
    }

    events! {
        /// A request is about to be sent to the model.
        TurnStart: Turn;
        /// The reply and the results of its calls have arrived.
        TurnComplete: Turn;
        /// The task has ended. Every task that was run tells this exactly once.
        TaskComplete: fusee_engine::journal::event::TaskComplete;
        /// The task failed; `TaskComplete` follows.
        Error: TaskError;
        /// The conversation was compacted.
        Compaction: CompactionEvent;
    }
}

/// One request to the model, its reply and the calls in it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Turn {
    /// Index of the turn, from 0.
    pub turn_index: u32,
    /// Id of the turn, unique within its task.
    pub turn_id: String,
    /// Estimated number of tokens in the request.
    pub input_tokens: u64,
    /// Tokens in the reply; 0 at the start.
    pub output_tokens: u64,
    /// Number of tool calls in the reply; 0 at the start.
    pub tool_calls: u32,
    /// Duration of the request and the calls, in milliseconds; 0 at the start.
    pub duration_ms: u64,
}

/// Why a task failed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskError {
    /// Kind of failure.
    pub code: ErrorCode,
    /// Description of the failure.
    pub message: String,
}

/// A compaction of the conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompactionEvent {
    /// Milliseconds since the Unix epoch.
    pub timestamp: i64,
    /// Turn before which it happened.
    pub turn_index: u32,
    /// Context usage before, in tokens.
    pub tokens_before: u64,
    /// Context usage after, in tokens.
    pub tokens_after: u64,
    /// Number of messages removed or shortened.
    pub items_removed: u32,
}

type Listener = Arc<dyn Fn(&dyn Any) + Send + Sync>;

/// Tells listeners about events. Clones share their listeners; any number of tasks may use one.
#[derive(Clone, Default)]
pub struct EventEmitter {
    listeners: Arc<Mutex<Vec<(TypeId, Listener)>>>,
}

impl EventEmitter {
    /// An emitter without listeners.
    pub fn new() -> Self {
        Self::default()
    }

    /// Calls `listener` for every event of this kind. A slow listener delays the events after it, not the task.
    pub fn on<E: TaskEvent>(&self, _event: E, listener: impl Fn(&E::Payload) + Send + Sync + 'static) {
        let listener = move |payload: &dyn Any| {
            if let Some(payload) = payload.downcast_ref() {
                listener(payload);
            }
        };
        self.listeners.lock().push((TypeId::of::<E>(), Arc::new(listener)));
    }

    /// Calls the listeners of an event. They may add listeners themselves, which hear the next one.
    pub fn emit<E: TaskEvent>(&self, _event: E, payload: &E::Payload) {
        let listeners = self.listeners.lock().clone();
        listeners
            .iter()
            .filter(|(event, _)| *event == TypeId::of::<E>())
            .for_each(|(_, listener)| listener(payload));
    }
}

impl std::fmt::Debug for EventEmitter {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("EventEmitter").finish_non_exhaustive()
    }
}

/// Tells several emitters about the events of one run.
pub(crate) struct EventForwarder<'e> {
    pub(crate) emitters: [&'e EventEmitter; 2],
    /// Size of the current request, which the end of its turn tells too.
    pub(crate) input_tokens: u64,
}

impl EventForwarder<'_> {
    pub(crate) fn forward(&mut self, event: &Event) {
        match event.clone() {
            Event::TurnStart { turn_index, turn_id, input_tokens } => {
                self.input_tokens = input_tokens;
                let (output_tokens, tool_calls, duration_ms) = (0, 0, 0);
                let turn = Turn { turn_index, turn_id, input_tokens, output_tokens, tool_calls, duration_ms };
                self.emit(task_event::TurnStart, &turn);
            }
            Event::TurnComplete { turn_index, turn_id, output_tokens, tool_calls, duration_ms, .. } => {
                let input_tokens = self.input_tokens;
                let turn = Turn { turn_index, turn_id, input_tokens, output_tokens, tool_calls, duration_ms };
                self.emit(task_event::TurnComplete, &turn);
            }
            Event::Compaction { timestamp, turn_index, tokens_before, tokens_after, items_removed } => {
                let event =
                    CompactionEvent { timestamp, turn_index, tokens_before, tokens_after, items_removed };
                self.emit(task_event::Compaction, &event);
            }
            Event::Error { code, message } => self.emit(task_event::Error, &TaskError { code, message }),
            Event::TaskComplete(complete) => self.emit(task_event::TaskComplete, &complete),
            _ => {}
        }
    }

    fn emit<E: TaskEvent + Copy>(&self, event: E, payload: &E::Payload) {
        self.emitters.iter().for_each(|emitter| emitter.emit(event, payload));
    }
}
