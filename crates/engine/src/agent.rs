//! The agent loop: runs a model through one task, turn by turn.
//!
//! [`AgentTask`] is the task. `machine.rs` is a pure state machine that decides the next action, the [`TurnManager`]
//! performs it, and `tool_calls.rs` executes the tool calls. All input from outside goes through the journal's
//! engine, so a task is a pure function of its journal.

mod call_ids;
mod completion;
mod conventions;
mod conversation;
mod execution;
mod facts;
pub mod flow;
mod interrupt;
mod limits;
mod machine;
mod model_request;
mod phase_tracker;
mod plan;
mod review_policy;
mod session;
mod task;
mod task_hooks;
mod task_report;
mod tool_calls;
mod turn_manager;

pub use completion::answer_check::{AcceptedAnswer, AnswerCheck, JsonAnswer, json_wanted};
pub(crate) use completion::answer_handler::{AnswerHandler, Conclusion};
pub use conversation::carry_over::{CompactionSavings, PriorConversation};
pub(crate) use conversation::carry_over::{RANKING_ARGUMENT, STEP as EARLIER_STEP, is_reply, is_request};
pub use conversation::compaction::compact_by_rule;
pub(crate) use conversation::compaction::is_summary;
pub(crate) use conversation::compaction::validity::check_conversation;
pub(crate) use conversation::context_usage::size;
pub use conversation::sectioned_prompt::SectionedPrompt;
pub(crate) use facts::{Facts, ReportedEnd as FactsEnd, change_of};
pub use interrupt::TurnInterrupt;
pub use limits::budget::{Remaining, Spent};
pub use limits::cost::Charges;
pub use limits::policy_change::{PolicyChange, RunPolicy};
pub use limits::resource_metrics::ResourceMetrics;
pub use limits::{Limits, RankBy, SummaryBy};
pub(crate) use machine::DECLINED;
pub(crate) use model_request::RetryWait;
pub(crate) use model_request::attempt::{Attempt, AttemptResult, remember, within};
pub use plan::{Plan, PlanStatus, PlannedTask};
pub use review_policy::ReviewPolicy;
pub(crate) use review_policy::ReviewRuling;
pub use session::{PricedModel, Session};
pub(crate) use task::FinishedTask;
pub use task::{AgentTask, TaskOutcome, TaskProgress};
pub(crate) use tool_calls::call_hooks::{self, Admission};
pub(crate) use tool_calls::subtask_tool::{SPAWN_SUBTASK, SubtaskOutcome, SubtaskRunner};
pub(crate) use tool_calls::tool_executor::{CallRecord, ToolExecutor};
pub use turn_manager::TurnManager;

/// Names of the control tools.
pub(crate) fn control_names() -> impl Iterator<Item = String> {
    tool_calls::control_tools::definitions().iter().map(|definition| definition.name.to_string())
}

/// Definitions of the tools that this crate implements itself.
pub(crate) fn own_definitions() -> impl Iterator<Item = &'static fusee_tools::ToolDefinition> {
    tool_calls::control_tools::definitions().iter().chain(conversation::sectioned_prompt::definitions())
}

#[cfg(test)]
pub(crate) mod test_support;
#[cfg(test)]
mod tests;
