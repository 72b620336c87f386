//! Fusee as a library: tasks for language models that are journaled step by step, survive being killed, and
//! can be replayed without a model.
//!
//! This crate re-exports the public API of the crates it is made of, each under the noun it is about:
//! [`run`] starts, resumes and replays runs; [`agent`] and [`approval`] are the loop and who may say no;
//! [`model`] talks to models; [`tools`] acts on a workspace; [`journal`] is what was written down, with the
//! [`event`](journal::event) stream that every face reads.
//!
//! ```no_run
//! use fusee::journal::{Durability, Journal, Options};
//! # struct Now;
//! # impl fusee::journal::Clock for Now { fn now_ms(&self) -> i64 { 0 } }
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // First in `main`, before any thread: it forks the process that starts commands and ends them with us.
//! let keeper = fusee::tools::sandbox::init()?;
//! let options = Options { durability: Durability::Process, ..Options::default() };
//! let journal = Journal::open("journal.db".as_ref(), options, std::sync::Arc::new(Now))?;
//! # let _ = (keeper, journal);
//! # Ok(())
//! # }
//! ```
//!
//! Then `fusee::run::start` with [`run::Settings`] and [`run::Resources`] gives a [`run::Running`], whose
//! [`events`](run::Running::events) tell what happens and whose [`outcome`](run::Running::outcome) is its end.
//! The libraries print nothing, read no environment and know no home directory: clock, keys and places are
//! handed in. What the command line adds to that is the binary's business and not part of this API.

pub use fusee_engine::journal;
pub use fusee_engine::model;
pub use fusee_engine::text;
pub use fusee_engine::tools;
pub use fusee_engine::{agent, approval, prompt, run};
