//! The web page and HTTP API of Fusee. [`Server::bind`] opens the address, [`Server::run`] serves it.
//!
//! The server decides nothing about a task: runs start and resume through [`fusee::launch::Launcher`], their questions
//! are answered with the signals that every front end uses, and everything shown is read from the journal.
//!
//! `access` decides who may send a request, `connection` bounds what a client can hold, `api` has the routes,
//! `site` the runs behind them, and `page` the embedded page.

mod access;
mod action_sequence;
mod api;
mod bench_job;
mod connection;
mod event_feed;
mod event_filter;
mod event_hub;
mod journal_watch;
mod live_runs;
mod outline;
mod page;
mod problem;
mod question;
mod request_key;
mod server;
mod site;
mod span;

pub use access::AccessError;
pub use api::{MCP_PATH, openapi};
pub use server::{ServeError, ServeOptions, Server, ServerHandle};
