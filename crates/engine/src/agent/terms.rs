//! What a task may do and use up, and what a resume changed of that.
//!
//! A change holds from the step on that was the next one when the run was resumed. That place is written down with
//! it, so a later resume or a replay sees each change exactly where it happened.

use std::collections::BTreeMap;

use fusee_journal::Branch;
use serde::{Deserialize, Serialize};

use super::limits::Limits;
use crate::approval::Approve;

/// What holds for the calls and requests of a task.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Terms {
    /// How much it may use up.
    pub limits: Limits,
    /// When a person is asked.
    pub approve: Approve,
    /// Whether commands are confined, or free by the user's word.
    pub commands_settled: bool,
}

/// New terms, and where they begin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Amendment {
    /// The steps that each branch had by then; a branch that is not named had none.
    pub after: BTreeMap<Branch, u64>,
    /// What holds from there on.
    pub terms: Terms,
}

/// The terms that hold at a place: those of the last amendment made before it.
pub(crate) fn at(first: Terms, amendments: &[Amendment], branch: &Branch, next_step: u64) -> Terms {
    let made = |amendment: &&Amendment| next_step >= amendment.after.get(branch).copied().unwrap_or_default();
    amendments.iter().rev().find(made).map_or(first, |amendment| amendment.terms)
}

#[cfg(test)]
mod tests;
