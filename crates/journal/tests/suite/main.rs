//! What the journal promises, told by behaviour and held against the real file, real processes and real disks.
//!
//! One program, so that it links once. `kit.rs` is what the chapters share.

#![expect(clippy::expect_used, clippy::panic, reason = "a test that finds something else stops")]

mod collecting;
mod commits;
mod content;
mod damage;
mod disk;
mod fan_out;
mod handles;
mod kit;
mod locking;
mod many_runs;
mod numbers;
mod readers;
mod replaying;
mod resuming;
mod schema;
mod steps;
mod waiting;
