//! The conversation: messages, each of them a run that continues the one before.
//!
//! [`session`] drives the engine, [`commands`] is the table of what begins with a slash, and two faces show it:
//! [`terminal`] (its [`state`] is a value, its [`frame`] a function of that) and [`plain`]. What a run is and how it
//! goes is the engine's.

pub(crate) mod change;
pub(crate) mod commands;
mod complete;
mod desk;
mod editor;
mod frame;
mod mention;
mod past;
pub(crate) mod plain;
pub(crate) mod session;
mod state;
pub(crate) mod terminal;
