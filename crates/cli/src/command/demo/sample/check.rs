//! Runs the tests of the demo project, before and after, with the same tool the model uses.

use std::path::Path;
use std::sync::Arc;

use fusee::engine::model::CancellationToken;
use fusee::engine::tools::{CallContext, CallLimits, CommandSettings, ToolOutput, Toolbox, Workspace};
use serde_json::json;

use crate::process::error::{CliError, chain};

/// The command that runs the tests.
pub(crate) const COMMAND: &str = "python3 -m unittest";

/// Time limit in seconds; code written by a model may loop forever.
const LIMIT_S: u64 = 60;

/// Exit code of a shell if the command is not found.
const NOT_FOUND: i32 = 127;

/// Result of a test run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TestResults {
    /// Whether all tests passed.
    pub(crate) pass: bool,
    /// Number of tests; 0 if they could not be loaded.
    pub(crate) ran: u32,
    /// Number of tests that failed or errored.
    pub(crate) failed: u32,
}

impl TestResults {
    /// Parses the end of unittest's output: `Ran 10 tests in …`, and `FAILED (failures=3, errors=1)` or `OK`.
    fn read(exit_code: Option<i32>, output: &str) -> Self {
        let number =
            |text: &str| text.chars().take_while(char::is_ascii_digit).collect::<String>().parse().ok();
        let ran = output.lines().filter_map(|line| line.strip_prefix("Ran ").and_then(number)).next_back();
        let verdict =
            output.lines().filter_map(|line| line.strip_prefix("FAILED (")).next_back().unwrap_or_default();
        let counts = verdict.split(['(', ',', ')']).filter_map(|part| part.split_once('='));
        let failed = counts.filter(|(what, _)| matches!(what.trim(), "failures" | "errors"));
        let failed = failed.filter_map(|(_, count)| number(count)).sum();
        let ran = ran.unwrap_or_default();
        Self { pass: exit_code == Some(0) && ran > 0, ran, failed }
    }

    /// Description in the present tense.
    pub(crate) fn is(self) -> String {
        match self {
            Self { pass: true, ran, .. } => format!("all {ran} pass"),
            Self { ran: 0, .. } => "cannot be run".to_owned(),
            Self { ran, failed, .. } => format!("{failed} of {ran} fail"),
        }
    }

    /// Description in the past tense.
    pub(crate) fn past_tense(self) -> String {
        match self {
            Self { pass: true, ran, .. } => format!("all {ran} passed"),
            Self { ran: 0, .. } => "could not be run".to_owned(),
            Self { ran, failed, .. } => format!("{failed} of {ran} failed"),
        }
    }
}

/// Runs the tests.
pub(crate) async fn run(project: &Path, commands: CommandSettings) -> Result<TestResults, CliError> {
    let output = shell(project, commands).await?;
    if output.exit_code == Some(NOT_FOUND) {
        return Err(CliError::usage("the demo project needs Python, and python3 is not on the PATH")
            .help("install python3 (3.8 or newer), or start with your own project: fusee run --help"));
    }
    Ok(TestResults::read(output.exit_code, &output.content))
}

async fn shell(project: &Path, commands: CommandSettings) -> Result<ToolOutput, CliError> {
    let workspace = Workspace::open(project).map_err(|error| CliError::failed(chain(&error)))?;
    let toolbox = Toolbox::standard(commands);
    let shell =
        toolbox.find("shell").ok_or_else(|| CliError::failed("internal error: there is no shell tool"))?;
    let context = CallContext {
        workspace: Arc::new(workspace),
        call_id: "demo".to_owned(),
        cancel: CancellationToken::new(),
        progress: Arc::new(|_| {}),
        limits: CallLimits::default(),
        trace_parent: None,
    };
    let arguments = json!({ "command": COMMAND, "timeout": LIMIT_S });
    let prepared = shell.prepare(arguments, &context).await;
    Ok(match prepared {
        Ok(prepared) => shell.perform(prepared, &context).await,
        Err(answer) => answer,
    })
}

#[cfg(test)]
mod tests;
