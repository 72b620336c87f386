//! The fusee binary: parses the command line, runs the command, returns its exit code.
//!
//! [`cli`] parses the command line, [`command`] runs it with the values from [`crate::process::environment`] and
//! [`config`], and a [`ui`] displays progress. Everything a run consists of is in the library crates.

mod chat;
mod cli;
mod command;
mod config;
mod model_selection;
mod process;
mod project;
mod ui;

use std::process::ExitCode;

use crate::process::Process;
use crate::process::environment::Environment;
use crate::process::error::CliError;
use cli::Cli;
use command::ToolUse;
use fusee::engine::tools::sandbox;

fn main() -> ExitCode {
    let typed = match cli::read(std::env::args_os()) {
        Ok(typed) => typed,
        Err(answer) => return answer.print(),
    };
    let exit = perform(typed).unwrap_or_else(CliError::tell);
    ExitCode::from(exit as u8)
}

fn perform(typed: Cli) -> Result<fusee::engine::run::ExitStatus, CliError> {
    if typed.command.as_ref().is_some_and(|command| command.background_run().detached) {
        command::detach::leave_terminal()?;
    }
    let fork_server = match typed.tools() {
        ToolUse::None => None,
        // The fork server must be forked before the first thread starts.
        ToolUse::Run => {
            Some(sandbox::init().map_err(|error| CliError::failed(crate::process::error::chain(&error)))?)
        }
        ToolUse::Probed => sandbox::init().ok(),
    };
    sandbox::setup_process();
    let process = Process::new(Environment::of_this_process()?, fork_server);
    // One worker thread: a run spends most of its time waiting, and a second worker costs memory and start-up
    // time. The journal's writer and the output have threads of their own, so neither a slow disk nor a slow
    // terminal blocks it. The chat draws on this thread, so there the worker is a separate one;
    // and requests to a server must not wait for a run.
    let mut builder = match &typed.command {
        Some(command) if !command.serves() => tokio::runtime::Builder::new_current_thread(),
        _ => tokio::runtime::Builder::new_multi_thread(),
    };
    let runtime = builder
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|error| CliError::failed(format!("cannot start the async runtime: {error}")))?;
    let exit = runtime.block_on(async {
        let exit = Box::pin(typed.perform(&process)).await;
        process.mcp_sessions.ended().await;
        #[cfg(feature = "telemetry")]
        process.telemetry.flush().await;
        exit
    });
    // A tool that does not end must not keep a cancelled process alive.
    runtime.shutdown_background();
    exit
}
