//! The chat: a sequence of messages, each of them a run that continues the previous one.
//!
//! [`session`] drives the engine, [`commands`] is the table of slash commands, and there are two UIs:
//! [`terminal`] (its [`state`] is a value, its [`frame`] a function of that) and [`plain`]. The runs
//! themselves belong to the engine.

pub(crate) mod commands;
mod complete;
mod editor;
pub(crate) mod entry;
mod frame;
mod history_search;
mod input_history;
pub(crate) mod plain;
mod question_queue;
pub(crate) mod session;
mod session_picker;
mod state;
pub(crate) mod terminal;
mod user_command;
