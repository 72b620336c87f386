//! Decides whether a task is done: verification, answer checks, edits taken from answers, and the final result.

pub(crate) mod answer_check;
pub(crate) mod finalize;
pub(crate) mod implement_nudge;
pub(crate) mod runtime_actions;
pub(crate) mod verification;
