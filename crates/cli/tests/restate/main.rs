//! Runs on a real Restate server. `cargo xtask suites restate` installs it and runs these tests; a plain test run lists
//! them as ignored.
#![expect(
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "a test panics when it fails, and does not go through the product's seams"
)]

mod campaign;
mod engine;
mod errors;
mod kills;
mod moves;
mod questions;
mod runs;
mod s3;
mod safety;
