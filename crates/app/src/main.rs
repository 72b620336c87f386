//! The fusee binary: what was typed becomes a command, the command an exit code.
//!
//! [`arguments`] reads what was typed, [`command`] does it with what [`environment`] and [`config`] say, and a
//! [`face`] shows what happens. Everything a run consists of is in the library crates.

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
        // The keeper forks, so it comes before the first thread.
        Tools::Run => Some(sandbox::init().map_err(|error| Failure::failed(failure::chain(&error)))?),
        Tools::Examined => sandbox::init().ok(),
    };
    sandbox::withstand_limits();
    let process = Process { environment: Environment::of_this_process()?, keeper };
    // One thread works: a run waits most of its time, and a second worker costs memory and start-up. The
    // journal's writer and the face have threads of their own, so neither a disk nor a terminal holds it up. The face of a
    // conversation is this thread: there the one that works is another.
    let mut builder = match typed.command {
        Some(_) => tokio::runtime::Builder::new_current_thread(),
        None => tokio::runtime::Builder::new_multi_thread(),
    };
    let runtime = builder
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|error| Failure::failed(format!("cannot start: {error}")))?;
    let exit = runtime.block_on(command::perform(typed, &process));
    // A tool that does not end must not keep a cancelled process alive.
    runtime.shutdown_background();
    exit
}
