//! Decides whether the work of a task is done: verification, answer checks, edits taken from answers, and the
//! final result. The turn machine decides what follows from it.

pub(crate) mod answer_check;
pub(crate) mod answer_handler;
pub(crate) mod candidate;
pub(crate) mod implement_nudge;
pub(crate) mod runtime_actions;
pub(crate) mod verification;
