//! The fusee binary: parses the command line, runs the command, returns its exit code.
//!
//! [`arguments`] parses the command line, [`command`] runs it with the values from [`environment`] and
//! [`config`], and a [`face`] displays progress. Everything a run consists of is in the library crates.

mod approvals;
mod approver;
mod arguments;
mod benchmark;
mod choice;
mod clock;
mod command;
mod config;
mod demo;
mod discover;
mod environment;
mod face;
mod failure;
mod history;
mod mcp;
mod output;
mod ownership;
mod project;
mod reference;
mod registered;
mod selection;
mod sources;
mod templates;
mod trust;
mod tui;
mod work;

use std::process::ExitCode;

use arguments::Typed;
use command::{Process, Tools};
use environment::Environment;
use failure::Failure;
use fusee_engine::tools::sandbox;

fn main() -> ExitCode {
    let typed = match arguments::read(std::env::args_os()) {
        Ok(typed) => typed,
        Err(answer) => return answer.give(),
    };
    let exit = perform(typed).unwrap_or_else(Failure::tell);
    ExitCode::from(exit as u8)
}

fn perform(typed: Typed) -> Result<fusee_engine::run::Exit, Failure> {
    let keeper = match typed.tools() {
        Tools::None => None,
        // The fork server must be forked before the first thread starts.
        Tools::Run => Some(sandbox::init().map_err(|error| Failure::failed(failure::chain(&error)))?),
        Tools::Examined => sandbox::init().ok(),
    };
    sandbox::withstand_limits();
    let process = Process { environment: Environment::of_this_process()?, keeper };
    // One worker thread: a run spends most of its time waiting, and a second worker costs memory and start-up
    // time. The journal's writer and the output have threads of their own, so neither a slow disk nor a slow
    // terminal blocks it. The chat draws on this thread, so there the worker is a separate one.
    let mut builder = match typed.command {
        Some(_) => tokio::runtime::Builder::new_current_thread(),
        None => tokio::runtime::Builder::new_multi_thread(),
    };
    let runtime = builder
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|error| Failure::failed(format!("cannot start the async runtime: {error}")))?;
    let exit = runtime.block_on(command::perform(typed, &process));
    // A tool that does not end must not keep a cancelled process alive.
    runtime.shutdown_background();
    exit
}
