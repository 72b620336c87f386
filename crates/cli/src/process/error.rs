//! Errors that stop a command before or outside its run: exit code, message, and a hint. Failures of the task
//! itself are in its events and its outcome.

use fusee::engine::journal::JournalError;
use fusee::engine::model::OpenError;
use fusee::engine::run::{ExitStatus, StartError};

use crate::process::stdio;

/// An error that ends a command.
#[derive(Debug)]
pub(crate) struct CliError {
    pub(crate) exit: ExitStatus,
    pub(crate) message: String,
    pub(crate) help: Option<String>,
    /// Whether the message is already fully rendered, such as a list of diagnostics; it gets no `error:`
    /// prefix.
    pub(crate) rendered: bool,
    /// Reason in the events, if it is not the usual one of the exit code.
    pub(crate) reason: Option<&'static str>,
    /// Message in the events, if it is not the whole message.
    pub(crate) headline: Option<String>,
    /// Whether a run had started, which reports its own end.
    pub(crate) run_started: bool,
}

impl CliError {
    /// A usage error: wrong flags, files or configuration (exit code 2).
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(ExitStatus::Usage, message.into())
    }

    /// Any other failure (exit code 1).
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self::new(ExitStatus::Failed, message.into())
    }

    fn new(exit: ExitStatus, message: String) -> Self {
        Self { exit, message, help: None, rendered: false, reason: None, headline: None, run_started: false }
    }

    /// A usage error whose text is already rendered.
    pub(crate) fn rendered(text: String) -> Self {
        Self { rendered: true, ..Self::usage(text) }
    }

    /// Marks an error that came up after the run had started.
    #[must_use]
    pub(crate) fn after_start(self) -> Self {
        Self { run_started: true, ..self }
    }

    /// Adds a hint about what to do next.
    #[must_use]
    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Prints the error to stderr and returns the exit code.
    pub(crate) fn tell(self) -> ExitStatus {
        let word = if self.rendered { "" } else { "error: " };
        let mut text = format!("{word}{}\n", self.message.trim_end());
        if let Some(help) = &self.help {
            for (index, line) in help.lines().enumerate() {
                text.push_str(if index == 0 { "  help: " } else { "        " });
                text.push_str(line);
                text.push('\n');
            }
        }
        stdio::error(&text);
        self.exit
    }
}

#[cfg(feature = "restate")]
impl From<fusee_restate::EngineError> for CliError {
    fn from(error: fusee_restate::EngineError) -> Self {
        use fusee_restate::EngineError as Cause;
        let message = error.to_string();
        match error {
            Cause::Unreachable { .. } => {
                Self::new(ExitStatus::Unreachable, message).help("`fusee dev-engine` starts an engine on this machine")
            }
            Cause::NotAnEngine { .. } => Self::usage(message)
                .help("--engine takes the URL of the admin API, which listens on port 9070 unless configured otherwise"),
            Cause::NoWorker { url } => Self::new(ExitStatus::Unreachable, message)
                .help(format!("start one with `fusee worker --engine {url} --listen ADDR`")),
            Cause::NoSuchRun { .. } => Self::usage(message).help("`fusee runs --engine URL` lists the runs that it knows"),
            Cause::Old { .. } | Cause::Key { .. } | Cause::RunExists { .. } | Cause::TooLarge { .. } | Cause::Listen { .. } => {
                Self::usage(message)
            }
            // The engine quotes the answer of the worker that it tried.
            Cause::Refused { .. } if message.contains("401") => Self::failed(message).help(
                "--identity-key must be the public key that the engine logs when it starts; an engine without \
                 request-identity-private-key-pem-file signs nothing",
            ),
            _ => Self::failed(message),
        }
    }
}

/// An error and its causes on one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let inner_text = inner.to_string();
        // Some errors already quote their cause.
        if !text.ends_with(&inner_text) {
            text = format!("{text}: {inner_text}");
        }
        cause = inner.source();
    }
    text
}

impl From<JournalError> for CliError {
    fn from(error: JournalError) -> Self {
        // User mistakes are usage errors, environment problems are failures.
        let (usage, failed) = (Self::usage(error.to_string()), Self::failed(error.to_string()));
        match &error {
            JournalError::NoSuchRun { nearest, .. } if nearest.is_empty() => {
                usage.help("run `fusee runs` to list the runs")
            }
            JournalError::RunExists(run) => {
                usage.help(format!("choose another id, or run `fusee resume {run}`"))
            }
            JournalError::Locked { run, .. } => {
                usage.help(format!("`fusee attach {run}` watches it, `fusee cancel {run}` ends it"))
            }
            JournalError::NoSuchRun { .. } => usage,
            JournalError::Full { .. } => failed.help("free some space, then run `fusee resume`"),
            JournalError::Corrupt { .. } => {
                failed.help("undamaged parts can still be read with `fusee show`")
            }
            JournalError::Open { .. }
            | JournalError::ReadOnly { .. }
            | JournalError::NoHeader { .. }
            | JournalError::Removed { .. }
            | JournalError::UnsupportedFormat { .. }
            | JournalError::Relay { .. }
            | JournalError::Failed { .. } => failed,
        }
    }
}

impl From<StartError> for CliError {
    fn from(error: StartError) -> Self {
        match error {
            StartError::Journal(error) => error.into(),
            StartError::Workspace(message) | StartError::Prompt(message) => Self::usage(message),
            StartError::NoSettings { .. } => Self::usage(error.to_string()),
            StartError::NotEnded { ref run } => {
                let help = format!("run `fusee resume {run}` first");
                Self::usage(error.to_string()).help(help)
            }
            StartError::Unreadable { .. } => Self::failed(error.to_string()),
        }
    }
}

impl From<OpenError> for CliError {
    fn from(error: OpenError) -> Self {
        Self::usage(chain(&error))
    }
}
