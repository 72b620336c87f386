//! The outside world of the tests and benches: everything `fusee` meets that is not `fusee`.
//!
//! [`server`] is a model server that misbehaves on request, [`kill`] ends the real binary at a chosen
//! journal write, [`project`] builds workspaces and runs commands in them, [`events`] reads what they print and
//! holds it to the schema and to the order of a task's life. Nothing here imitates our own code: the tests
//! in `crates/app/tests` drive the unmodified binary, and this crate is what surrounds it.
#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test kit stops the test that misuses it, and stands outside the seams of the product"
)]

pub mod events;
pub mod kill;
mod leaks;
pub mod project;
pub mod script;
pub mod server;
pub mod soak;
