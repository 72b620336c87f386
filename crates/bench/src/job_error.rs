//! Errors that keep a job from starting or continuing.

use fusee::launch::LaunchError;

use crate::suite::SuiteProblem;

/// Why a job cannot start or continue.
#[derive(Debug)]
pub enum JobError {
    /// The user asked for something that is not possible.
    Usage(String),
    /// The suite has no usable case; what is wrong with it.
    Suite(Vec<SuiteProblem>),
    /// A run cannot be started, for a reason that concerns all.
    Launch(LaunchError),
    /// Something else failed.
    Failed(String),
}
