//! Starts the binary under test: flags common to all runs, and settings that make failures fast.

use fusee_testkit::project::{Command, Project, Running};
use fusee_testkit::server::Server;
use rustix::process::{Pid, Signal, kill_process};

/// Request for tests that do not depend on its text.
pub(crate) const REQUEST: &str = "Do the work.";

/// An API key that must never appear in any output.
pub(crate) const KEY: &str = "sk-secret-0123456789abcdef";

/// The byte a keyboard sends for ctrl-c.
pub(crate) const CTRL_C: &str = "\u{3}";

/// Path of the binary under test.
pub(crate) fn binary() -> &'static str {
    env!("CARGO_BIN_EXE_fusee")
}

/// The binary in the project, without arguments.
pub(crate) fn fusee(project: &Project) -> Command<'_> {
    project.command(binary())
}

/// `fusee run` with a scripted model and no sandbox, so that commands run without approval.
pub(crate) fn run<'p>(project: &'p Project, model: &str) -> Command<'p> {
    fusee(project).args(["run", REQUEST, "--model", model, "--sandbox", "off"])
}

/// Like `run`, with events on stdout.
pub(crate) fn run_json<'p>(project: &'p Project, model: &str) -> Command<'p> {
    run(project, model).args(["--json"])
}

/// `fusee run --json` against a chat-completions server.
pub(crate) fn run_http<'p>(project: &'p Project, base_url: &str) -> Command<'p> {
    with_key(run_json(project, "openai:scripted").args(["--api", "chat", "--base-url", base_url]))
}

/// Like `run_http`, against a scripted server.
pub(crate) fn run_on<'p>(project: &'p Project, server: &Server) -> Command<'p> {
    run_http(project, &server.base_url())
}

/// Adds an API key to the environment. Resume needs it too, because keys are never journaled.
pub(crate) fn with_key(command: Command<'_>) -> Command<'_> {
    command.env("OPENAI_API_KEY", KEY)
}

/// Project with short retry delays and a one-second timeout for silence.
pub(crate) fn impatient() -> Project {
    Project::new().with("fusee.toml", "timeout_s = 1\n\n[retry_policy]\nmax_retries = 3\nbackoff_ms = 10\n")
}

/// Starts the binary in a terminal provided by `script`, which passes keys on like a keyboard.
pub(crate) fn at_terminal(project: &Project, line: &str) -> Running {
    // Without `exec`, the intermediate shell would report the signal as its own exit.
    let line = format!("exec {} {line}", binary());
    project.command("script").args(["-qec", &line, "/dev/null"]).env("OPENAI_API_KEY", KEY).start()
}

/// Sends a signal to the process in a terminal, bypassing the keyboard.
pub(crate) fn signal_at_terminal(running: &Running, signal: Signal) {
    kill_process(Pid::from_raw(running.child().cast_signed()).unwrap(), signal).unwrap();
}

/// Kills the process in a terminal with SIGKILL and waits for the terminal to end.
pub(crate) fn kill_at_terminal(running: Running) {
    signal_at_terminal(&running, Signal::KILL);
    running.wait();
}
