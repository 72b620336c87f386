//! The journal: recorded steps, events and content, and the engine that runs a program on top of them.
//!
//! Everything nondeterministic enters a run through [`DurableRun`]. [`SqliteRun`] implements it on a SQLite file
//! ([`Journal`]) in the project. The crate knows nothing about models or tools: a step is a fingerprint and a
//! JSON value.

mod blob;
mod branch;
mod broadcast;
mod checksum;
mod clock;
mod divergence;
mod durable_run;
mod error;
pub mod event;
mod gc;
mod journal;
mod lock;
mod mark;
mod ops;
mod owner;
mod reader;
mod relay;
mod run;
mod schema;
mod sqlite_run;
mod step;
mod subscription;
mod tail;
mod writer;

pub use branch::Branch;
pub use clock::{Clock, FixedClock};
pub use divergence::Divergence;
pub use durable_run::{
    BoxFuture, ChildBody, ChildEnd, DurableRun, FanOutEnd, IntentFn, Intention, OnceOutcome, RunAborted,
    StepBody, StepMeta, StepResult, WaitRequest, step_body,
};
pub use error::JournalError;
pub use event::{Event, EventRecord};
pub use gc::GcReport;
pub use journal::{Durability, EventIndex, Journal, JournalOptions, RunRow, SignalId, StepRow};
pub use owner::{OwnerKey, Ownership};
pub use relay::{OutgoingBatch, Relay};
pub use run::{RunId, RunStatus};
pub use sqlite_run::{OpenWait, RunCopy, RunMode, SqliteRun};
pub use step::{StepKey, StepKind, StepRequest};
pub use subscription::EventStream;
pub use tail::EventTail;
