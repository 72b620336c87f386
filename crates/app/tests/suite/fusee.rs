//! How the tests start the binary: the flags that every run here has, and settings that make failures quick.

use fusee_testkit::project::{Command, Project};
use fusee_testkit::server::Server;

/// Every request here, for tests that do not care what it says.
pub(crate) const REQUEST: &str = "Do the work.";

/// A key that must never be seen again.
pub(crate) const KEY: &str = "sk-secret-0123456789abcdef";

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
