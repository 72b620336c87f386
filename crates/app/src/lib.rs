//! Fusee as a library: tasks for language models that are journaled step by step, survive being killed, and
//! can be replayed without a model.
//!
//! The short way in is [`embed::Task`]:
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
//! The long way has everything that the command line has. [`run`] starts, resumes and replays runs:
//! [`run::start`] with [`run::Settings`] and [`run::Resources`] gives a [`run::Running`], whose
//! [`events`](run::Running::events) tell what happens and whose [`outcome`](run::Running::outcome) is its end.
//! [`agent`] and [`approval`] are the loop and who may say no; [`model`] talks to models; [`tools`] acts on a
//! workspace; [`journal`] is what was written down, with the [`event`](journal::event) stream that every face reads.
//!
//! A program whose tasks run commands calls [`tools::sandbox::init`] first in its `main`, before any thread: it
//! forks the process that starts commands and ends them with us.
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
//! The libraries print nothing, read no environment and know no home directory: clock, keys and places are
//! handed in. What the command line adds to that is the binary's business and not part of this API.

pub use fusee_engine::{
    agent, approval, embed, journal, lang, model, prompt, run, text, tools, undo, workflow,
};
