//! A session: the conversation that the tasks of an agent share, and what their turns are asked with.

use std::sync::Arc;

use fusee_engine::agent::{Limits, ReviewPolicy};
use fusee_engine::approval::ApprovalMode;
use fusee_engine::journal::RunId;
use fusee_engine::model::RequestOptions;
use fusee_engine::prompt::EnvironmentSnapshot;
use parking_lot::Mutex;

use crate::Agent;
use crate::system::SystemClock;

/// What the turns of a task are asked with.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct TurnContext {
    /// Limits on turns, tokens, cost and time of a task.
    pub limits: Limits,
    /// Options of each model request.
    pub options: RequestOptions,
    /// When a call waits for approval.
    pub approval: ApprovalMode,
    /// Restrictions of tasks in review mode.
    pub review: ReviewPolicy,
}

impl Default for TurnContext {
    /// The default limits; nothing asks, and what would need approval is refused.
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            options: RequestOptions::default(),
            approval: ApprovalMode::Never,
            review: ReviewPolicy::default(),
        }
    }
}

/// A conversation with an agent. Each task continues where the task before it ended. Cheap to clone; clones share
/// the conversation.
#[derive(Clone)]
pub struct Session {
    agent: Agent,
    state: Arc<Mutex<SessionState>>,
}

struct SessionState {
    context: TurnContext,
    /// The task that ended last.
    last: Option<RunId>,
}

impl Session {
    /// A new conversation, with the agent's own turn context.
    pub fn new(agent: Agent) -> Self {
        let state = SessionState { context: agent.turn_context().clone(), last: None };
        Self { agent, state: Arc::new(Mutex::new(state)) }
    }

    /// Model, tools and limits that all tasks of the session share.
    pub fn agent(&self) -> &Agent {
        &self.agent
    }

    /// What the turns of the next task are asked with.
    pub fn turn_context(&self) -> TurnContext {
        self.state.lock().context.clone()
    }

    /// Changes what the turns of later tasks are asked with; a task that runs keeps what it started with.
    pub fn set_turn_context(&self, context: TurnContext) {
        self.state.lock().context = context;
    }

    /// The environment as it is now: directory, platform, date, git branch, and the project's instructions.
    pub fn environment(&self) -> EnvironmentSnapshot {
        use fusee_engine::journal::Clock as _;
        EnvironmentSnapshot::capture(self.agent.workspace(), SystemClock.now_ms())
    }

    /// The task whose conversation the next one continues.
    pub fn last_task(&self) -> Option<RunId> {
        self.state.lock().last.clone()
    }

    pub(crate) fn ended(&self, task: RunId) {
        self.state.lock().last = Some(task);
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Session").field("agent", &self.agent).finish_non_exhaustive()
    }
}
