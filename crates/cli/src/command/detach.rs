//! `--detach`: starts the same command line once more as a process that survives the terminal, and relays what it says
//! until its run is recorded. [`announce`] is the other half, in that process.

use std::ffi::OsString;
use std::io::{self, BufRead as _, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Stdio};

use fusee::engine::journal::RunId;
use fusee::engine::run::{ExitStatus, RunHandle};
use tokio::signal::unix::{SignalKind, signal};

use crate::process::Process;
use crate::process::error::CliError;
use crate::process::stdio;

/// Begins the line that ends what is relayed; the id of the run follows. No text of ours contains this character.
const STARTED: &str = "\u{1e}started ";

/// Starts the command in the background and prints the id of its run. If it cannot start, the result is that of the
/// command.
pub(crate) async fn start(process: &Process) -> Result<ExitStatus, CliError> {
    let line = command_line(std::env::args_os());
    // Text that is piped in belongs to the run; the terminal does not.
    let stdin = if process.environment.terminals().stdin { Stdio::null() } else { Stdio::inherit() };
    let mut child = spawn(line, stdin)?;
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let relayed = async {
        let said = tokio::task::spawn_blocking(move || relay(err, io::stderr()));
        let run = tokio::task::spawn_blocking(move || relay(out, io::stdout())).await;
        let _ = said.await;
        run.ok().flatten()
    };
    let run = tokio::select! {
        run = relayed => run,
        _ = tokio::signal::ctrl_c() => {
            // Nothing is recorded yet that a kill could damage. A child that is gone needs none.
            let _ = child.kill();
            return Ok(ExitStatus::Cancelled);
        }
    };
    let Some(run) = run else { return exit_of(&mut child) };
    stdio::print(&format!("{run}\n"))?;
    stdio::error(&format!("running in the background; `fusee attach {run}` watches it\n"));
    Ok(ExitStatus::Completed)
}

/// Resumes a run in the background. The error is what the process said.
pub(crate) async fn resume(run: &RunId, directory: &Path) -> Result<(), String> {
    let words = ["resume", run.as_str(), "--detached", "-C"].map(OsString::from);
    let line = words.into_iter().chain([directory.as_os_str().to_owned()]).collect();
    let mut child = spawn(line, Stdio::null()).map_err(|error| error.message)?;
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let said = tokio::task::spawn_blocking(move || {
        let mut said = Vec::new();
        relay(err, &mut said);
        String::from_utf8_lossy(&said).into_owned()
    });
    let started = tokio::task::spawn_blocking(move || relay(out, io::sink())).await;
    let said = said.await.unwrap_or_default();
    match started.ok().flatten() {
        Some(_) => Ok(()),
        None => Err(said),
    }
}

/// The command line of the process in the background.
fn command_line(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut replaced = false;
    let word = |argument: OsString| {
        if !replaced && argument == "--detach" {
            replaced = true;
            return "--detached".into();
        }
        argument
    };
    arguments.skip(1).map(word).collect()
}

#[expect(
    clippy::disallowed_methods,
    reason = "a second fusee is not a command of a model: it has its own fork server and outlives this process"
)]
fn spawn(line: Vec<OsString>, stdin: Stdio) -> Result<Child, CliError> {
    let failed = |error: io::Error| CliError::failed(format!("cannot start another fusee: {error}"));
    let program = std::env::current_exe().map_err(failed)?;
    let mut command = std::process::Command::new(program);
    command.args(line).stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(failed)
}

/// Copies lines up to the one that says that the run has started; returns the run's id, or `None` at the end.
fn relay(from: Option<impl Read>, mut to: impl Write) -> Option<String> {
    let mut from = BufReader::new(from?);
    let mut line = Vec::new();
    loop {
        line.clear();
        if from.read_until(b'\n', &mut line).ok()? == 0 {
            return None;
        }
        if let Some(run) = line.strip_prefix(STARTED.as_bytes()) {
            return Some(String::from_utf8_lossy(run).trim_end().to_owned());
        }
        // A reader who is gone does not keep the run from starting.
        let _ = to.write_all(&line).and_then(|()| to.flush());
    }
}

/// The exit code of a process that ended without starting a run.
fn exit_of(child: &mut Child) -> Result<ExitStatus, CliError> {
    let status = child
        .wait()
        .map_err(|error| CliError::failed(format!("cannot wait for the run in the background: {error}")))?;
    let known = [
        ExitStatus::Completed,
        ExitStatus::Usage,
        ExitStatus::Limit,
        ExitStatus::Unreachable,
        ExitStatus::Findings,
        ExitStatus::Cancelled,
    ];
    let is_it = |exit: &ExitStatus| status.code() == Some(*exit as i32);
    Ok(known.into_iter().find(is_it).unwrap_or(ExitStatus::Failed))
}

/// Leaves the terminal's session, so that closing it does not end this process. Called before the first thread and the
/// fork server start.
pub(crate) fn leave_terminal() -> Result<(), CliError> {
    match rustix::process::setsid() {
        Ok(_) => Ok(()),
        // The process leads a group already: whoever started it has taken it out of the terminal's.
        Err(rustix::io::Errno::PERM) => Ok(()),
        Err(error) => Err(CliError::failed(format!("cannot detach from the terminal: {error}"))),
    }
}

/// Tells the waiting process that the run is recorded, and lets go of the streams it shares with it.
pub(crate) async fn announce(running: &RunHandle) -> Result<(), CliError> {
    // Listening replaces the default action, which ends the process.
    let hangup = signal(SignalKind::hangup())
        .map_err(|error| CliError::failed(format!("cannot ignore the hangup signal: {error}")))?;
    tokio::spawn(ignore(hangup));
    // Its first event is visible once the start of the run is committed.
    let _ = running.events().next().await?;
    let line = format!("{STARTED}{}\n", running.id());
    // The process that waits may have been killed; the run goes on.
    let _ = io::stderr().write_all(line.as_bytes());
    let _ = io::stdout().write_all(line.as_bytes()).and_then(|()| io::stdout().flush());
    let failed = |error: io::Error| CliError::failed(format!("cannot detach from the terminal: {error}"));
    let null = std::fs::File::options().read(true).write(true).open("/dev/null").map_err(failed)?;
    rustix::stdio::dup2_stdin(&null)
        .and_then(|()| rustix::stdio::dup2_stdout(&null))
        .and_then(|()| rustix::stdio::dup2_stderr(&null))
        .map_err(|error| failed(error.into()))
}

async fn ignore(mut hangup: tokio::signal::unix::Signal) {
    while hangup.recv().await.is_some() {}
}

#[cfg(test)]
mod tests;
