//! The agent loop: runs a model through one task, turn by turn.
//!
//! [`AgentTask`] is the task. `turns.rs` is a pure state machine that decides the next action, `driver.rs`
//! performs it, and `calls.rs` executes the tool calls. All input from outside goes through the journal's
//! engine, so a task is a pure function of its journal.

mod acts;
mod answer;
mod asking;
mod attempt;
mod calling;
mod calls;
mod compaction;
mod conclude;
mod context;
mod control;
mod course;
mod disclosure;
mod driver;
mod earlier;
mod facts;
mod guard;
mod leading;
mod limits;
mod meanwhile;
mod money;
mod nameable;
mod occupancy;
mod perform;
mod phasing;
mod plan;
mod request;
mod rereads;
mod review;
mod session;
mod spawn;
mod stopping;
mod summarising;
mod task;
mod terms;
mod turns;
mod waiting;

pub use answer::{Accepted, AnswerCheck, JsonAnswer, json_wanted};
pub(crate) use attempt::{Attempt, AttemptResult, remember, within};
pub(crate) use calling::{Called, Calling, UNANSWERED_ADVICE};
pub use compaction::compact_by_rule;
pub(crate) use compaction::is_summary;
pub(crate) use conclude::{Conclude, Conclusion};
pub use disclosure::Disclosure;
pub(crate) use earlier::STEP as EARLIER_STEP;
pub use earlier::{Earlier, Shorter};
pub(crate) use facts::{End as FactsEnd, Facts, change_of};
pub use limits::{Limits, RankBy, SummaryBy};
pub(crate) use occupancy::size;
pub use plan::{Plan, PlanStatus, PlannedTask};
pub use review::Restrictions;
pub use session::Session;
pub use spawn::Left;
pub(crate) use spawn::{SPAWN_SUBTASK, Spawn, Spawned, Spent};
pub use stopping::TurnStop;
pub(crate) use task::Worked;
pub use task::{AgentTask, Progress, TaskOutcome};
pub use terms::{Amendment, Terms};

/// Names of the control tools.
pub(crate) fn control_names() -> impl Iterator<Item = String> {
    control::definitions().iter().map(|definition| definition.name.to_string())
}

/// Definitions of the tools that this crate implements itself.
pub(crate) fn own_definitions() -> impl Iterator<Item = &'static fusee_tools::Definition> {
    control::definitions().iter().chain(disclosure::definitions())
}

#[cfg(test)]
mod tests;
