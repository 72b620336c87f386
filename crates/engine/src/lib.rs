//! Running tasks: the agent loop, prompts, approvals, and runs as a whole.
//!
//! [`run`] is the door for faces: start, resume or replay a run, read its events, cancel it. [`agent`] drives
//! a model through one task. Models, tools and the journal are crates of their own and do not know each other.

pub mod agent;
pub mod approval;
pub mod prompt;
pub mod run;
