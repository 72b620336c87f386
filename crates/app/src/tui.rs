//! The conversation: messages, each of them a run that continues the one before.
//!
//! [`session`] drives the engine, [`commands`] is the table of what begins with a slash, and [`plain`] shows it as
//! lines. What a run is and how it goes is the engine's.

pub(crate) mod change;
pub(crate) mod commands;
mod mention;
pub(crate) mod plain;
pub(crate) mod session;
