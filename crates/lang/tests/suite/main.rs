//! End-to-end tests of the language in one test binary: the examples of the manual, generated programs,
//! hostile programs, and drivers that stop at any point.

#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a panic fails the test")]

mod checking;
mod drivers;
mod generated;
mod hostile;
mod manual;
mod naive;
mod resuming;
mod tables;
mod world;
