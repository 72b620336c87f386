//! How the tests start the binary: the flags that every run here has, and settings that make failures quick.

use fusee_testkit::project::{Command, Project, Running};
use fusee_testkit::server::Server;
use rustix::process::{Pid, Signal, kill_process};

/// Every request here, for tests that do not care what it says.
pub(crate) const REQUEST: &str = "Do the work.";

/// A key that must never be seen again.
pub(crate) const KEY: &str = "sk-secret-0123456789abcdef";

/// What a keyboard sends for ctrl-c.
pub(crate) const CTRL_C: &str = "\u{3}";

/// The path of the binary under test.
pub(crate) fn binary() -> &'static str {
    env!("CARGO_BIN_EXE_fusee")
}

/// The binary in the project, without arguments.
pub(crate) fn fusee(project: &Project) -> Command<'_> {
    project.command(binary())
}

/// `fusee run` with a scripted model and no sandbox, so that commands run without a question.
pub(crate) fn run<'p>(project: &'p Project, model: &str) -> Command<'p> {
    fusee(project).args(["run", REQUEST, "--model", model, "--sandbox", "off"])
}

/// The same with its events on stdout.
pub(crate) fn run_json<'p>(project: &'p Project, model: &str) -> Command<'p> {
    run(project, model).args(["--json"])
}

/// `fusee run --json` against a chat-completions server.
pub(crate) fn run_http<'p>(project: &'p Project, base_url: &str) -> Command<'p> {
    with_key(run_json(project, "openai:scripted").args(["--api", "chat", "--base-url", base_url]))
}

/// The same against a scripted server.
pub(crate) fn run_on<'p>(project: &'p Project, server: &Server) -> Command<'p> {
    run_http(project, &server.base_url())
}

/// The command with a key in its environment, as resume needs it too: keys are never in the journal.
pub(crate) fn with_key(command: Command<'_>) -> Command<'_> {
    command.env("OPENAI_API_KEY", KEY)
}

/// Retries without long waits, and silence noticed within a second.
pub(crate) fn impatient() -> Project {
    Project::new().with("fusee.toml", "timeout_s = 1\n\n[retry_policy]\nmax_retries = 3\nbackoff_ms = 10\n")
}

/// The binary with these arguments, at a terminal: that of `script`, which passes keys on as a keyboard would.
pub(crate) fn at_terminal(project: &Project, line: &str) -> Running {
    // Without `exec` the shell between would report the signal as its own end.
    let line = format!("exec {} {line}", binary());
    project.command("script").args(["-qec", &line, "/dev/null"]).env("OPENAI_API_KEY", KEY).start()
}

/// Sends the process at a terminal a signal, past the keyboard.
pub(crate) fn signal_at_terminal(running: &Running, signal: Signal) {
    kill_process(Pid::from_raw(running.child().cast_signed()).unwrap(), signal).unwrap();
}

/// kill -9 of the process at a terminal, and the end of the terminal.
pub(crate) fn kill_at_terminal(running: Running) {
    signal_at_terminal(&running, Signal::KILL);
    running.wait();
}
