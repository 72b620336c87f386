//! Fusee as a library: LLM tasks that are journaled step by step, survive being killed, and can be replayed
//! without a model.
//!
//! The shortest entry point is [`embed::Task`]:
//!
//! ```no_run
//! use std::path::Path;
//!
//! # async fn work() -> Result<(), Box<dyn std::error::Error>> {
//! let task = fusee::embed::Task::new("Say what this project is about.", "ollama:qwen2.5-coder", Path::new("."));
//! let outcome = task.run(|event| println!("{}", event.seq)).await?;
//! println!("{}", outcome.answer);
//! # Ok(())
//! # }
//! ```
//!
//! The full API covers everything the command line does. [`run`] starts, resumes and replays runs:
//! [`run::start`] takes [`run::RunSpec`] and [`run::RunDeps`] and returns a [`run::RunHandle`], which
//! streams [`events`](run::RunHandle::events) and resolves to an [`outcome`](run::RunHandle::outcome). [`agent`]
//! is the agent loop and [`approval`] decides which calls need permission; [`model`] talks to models;
//! [`tools`] acts on a workspace; [`journal`] stores the run, including the [`event`](journal::event) stream
//! that every front end reads.
//!
//! A program whose tasks run commands must call [`tools::sandbox::init`] first thing in `main`, before it
//! starts any thread: it forks the server process that spawns commands and ends them when this process ends.
//!
//! ```no_run
//! use fusee::journal::{Journal, Options};
//! # struct Now;
//! # impl fusee::journal::Clock for Now { fn now_ms(&self) -> i64 { 0 } }
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let keeper = fusee::tools::sandbox::init()?;
//! let journal = Journal::open("journal.db".as_ref(), Options::default(), std::sync::Arc::new(Now))?;
//! # let _ = (keeper, journal);
//! # Ok(())
//! # }
//! ```
//!
//! The libraries print nothing, read no environment variables and know no home directory: clock, keys and
//! paths are passed in. The rest of the command line is private to the binary and not part of this API.

pub use fusee_engine::{agent, approval, journal, lang, model, prompt, run, text, tools, undo, workflow};
