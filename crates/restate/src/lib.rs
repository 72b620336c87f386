//! Fusee runs on Restate, a durable-execution engine: a worker that dies is replaced by another, which continues its
//! runs after their last recorded step.
//!
//! A run is a workflow of the service [`SERVICE`], keyed by the run's id. The program of the run works on a journal
//! of its own, in a scratch folder of the worker. Every batch of that journal (steps, intents, events) is recorded as
//! one entry of the workflow before it is committed (`attempt.rs`), so no effect happens that the engine does not
//! know about. A worker that takes the run over applies the recorded entries to an empty journal and resumes it there, as
//! after a kill on one machine. Clients (`client.rs`) read the same entries into a journal of their own, which is
//! where the events they show come from.
//!
//! Batches that are long, and the files of a workspace, are kept in a blob store (`blob_store.rs`) that workers and
//! clients share.

mod attempt;
mod blob_store;
mod client;
mod engine;
mod error;
mod log_entry;
mod question;
mod run_order;
mod scratch;
mod service;
mod takeover;
mod tenant;
mod worker;
mod workspace;

pub use blob_store::{BlobHash, BlobStore};
pub use client::{RemoteRun, follow, submit};
pub use engine::{Engine, ListedRun};
pub use error::EngineError;
pub use question::{QuestionList, RemoteQuestion};
pub use run_order::{RunHost, RunOrder, SERVICE, WorkerLaunch};
pub use worker::{Worker, WorkerOptions};
pub use workspace::{FileTree, PullError, TreeChange, changes, restore, store, write_changes};
