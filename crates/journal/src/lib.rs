//! The journal: recorded steps, events and content, and the engine that runs a program on top of them.
//!
//! Everything nondeterministic enters a run through [`Engine`]. [`Embedded`] implements it on a SQLite file
//! ([`Journal`]) in the project. The crate knows nothing about models or tools: a step is a fingerprint and a
//! JSON value.

mod blob;
mod branch;
mod call;
mod clock;
mod collect;
mod divergence;
mod embedded;
mod engine;
mod error;
pub mod event;
mod follow;
mod hub;
mod journal;
mod lock;
mod reader;
mod rows;
mod run;
mod sqlite;
mod sum;
mod writer;

pub use branch::Branch;
pub use call::{Call, Kind, StepKey};
pub use clock::{Clock, FixedClock};
pub use collect::Collected;
pub use divergence::Divergence;
pub use embedded::{Embedded, Mode, Perform};
pub use engine::{Body, BoxFuture, Engine, Fault, Intend, Intention, Outcome, Recorded, Stop};
pub use error::JournalError;
pub use event::{Event, Stamped};
pub use follow::Events;
pub use journal::{Durability, Journal, Options, RunRow, StepRow};
pub use run::{RunId, RunStatus};
