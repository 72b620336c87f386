//! Test environment for the tests and benches: everything outside `fusee` that it interacts with.
//!
//! [`server`] is a model server that misbehaves on request, [`kill_injection`] kills the real binary at a chosen
//! journal write, [`project`] creates workspaces and runs commands in them, [`events`] checks their event
//! streams against the schema and a task's lifecycle. Nothing here imitates our own code: the tests in
//! `crates/cli/tests` drive the unmodified binary.
#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test kit panics when misused, and does not go through the product's seams"
)]

pub mod events;
pub mod kill_injection;
pub mod peer;
pub mod project;
pub mod script;
mod secret_scan;
pub mod server;
pub mod soak;
