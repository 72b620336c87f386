//! The language as a whole, from text to value, in one test program: the manual's examples, programs that are generated,
//! programs that are hostile, and drivers that stop anywhere.

#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]

mod checking;
mod drivers;
mod generated;
mod hostile;
mod manual;
mod naive;
mod resuming;
mod tables;
mod world;
