//! The agent loop: runs a model through one task, turn by turn.
//!
//! [`AgentTask`] is the task. `turns.rs` is a pure state machine that decides the next action, `driver.rs`
//! performs it, and `tool_calls.rs` executes the tool calls. All input from outside goes through the journal's
//! engine, so a task is a pure function of its journal.

mod tool_calls;

mod runner;

mod facts;

mod limits;

mod model_request;
mod plan;

mod review_policy;
mod task_context;

mod interrupt;

mod task;

mod machine;

pub use crate::agent::completion::answer_check::{AcceptedAnswer, AnswerCheck, JsonAnswer, json_wanted};
pub(crate) use crate::agent::completion::finalize::{AnswerHandler, Conclusion};
pub(crate) use crate::agent::conversation::carry_over::STEP as EARLIER_STEP;
pub use crate::agent::conversation::carry_over::{CompactionSavings, PriorConversation};
pub use crate::agent::conversation::compaction::compact_by_rule;
pub(crate) use crate::agent::conversation::compaction::is_summary;
pub(crate) use crate::agent::conversation::context_usage::size;
pub use crate::agent::conversation::sectioned_prompt::SectionedPrompt;
pub use crate::agent::limits::policy_change::{PolicyChange, RunPolicy};
pub(crate) use crate::agent::model_request::attempt::{Attempt, AttemptResult, remember, within};
pub use crate::agent::tool_calls::subtask_tool::Remaining;
pub(crate) use crate::agent::tool_calls::subtask_tool::{
    SPAWN_SUBTASK, Spent, SubtaskOutcome, SubtaskRunner,
};
pub(crate) use crate::agent::tool_calls::tool_executor::{CallRecord, ToolExecutor, UNANSWERED_ADVICE};
pub(crate) use facts::{Facts, ReportedEnd as FactsEnd, change_of};
pub use interrupt::TurnInterrupt;
pub use limits::{Limits, RankBy, SummaryBy};
pub use plan::{Plan, PlanStatus, PlannedTask};
pub use review_policy::ReviewPolicy;
pub(crate) use task::FinishedTask;
pub use task::{AgentTask, TaskOutcome, TaskProgress};
pub use task_context::TaskContext;

/// Names of the control tools.
pub(crate) fn control_names() -> impl Iterator<Item = String> {
    crate::agent::tool_calls::control_tools::definitions()
        .iter()
        .map(|definition| definition.name.to_string())
}

/// Definitions of the tools that this crate implements itself.
pub(crate) fn own_definitions() -> impl Iterator<Item = &'static fusee_tools::ToolDefinition> {
    crate::agent::tool_calls::control_tools::definitions()
        .iter()
        .chain(crate::agent::conversation::sectioned_prompt::definitions())
}

pub(crate) mod completion;
pub(crate) mod conversation;
pub mod flow;
pub(crate) mod task_report;
#[cfg(test)]
mod tests;
