//! The guarantees of the journal, grouped by behaviour and tested on real files, processes and disks.
//!
//! A single binary, so that it links only once. `kit.rs` holds the shared helpers.

#![expect(clippy::expect_used, clippy::panic, reason = "tests panic on failure")]

mod collecting;
mod commits;
mod content;
mod damage;
mod disk;
mod fan_out;
mod handles;
mod handover;
mod kit;
mod locking;
mod many_runs;
mod numbers;
mod ownership;
mod readers;
mod relay;
mod replaying;
mod resuming;
mod schema;
mod steps;
mod waiting;
