//! Dependencies of the command tools besides a workspace. [`super::Shell`] and the job tools share one copy.

use crate::redact::Secrets;
use crate::sandbox::{CommandEnvironment, CommandFailure, ForkServer, ResourceLimits, Sandbox};
use crate::tool::CommandSource;

/// Dependencies of the command tools besides a workspace.
#[derive(Clone, Debug, Default)]
pub struct CommandSettings {
    /// Starts and ends commands; without it every command fails.
    pub fork_server: Option<ForkServer>,
    /// Environment variables of commands.
    pub environment: CommandEnvironment,
    /// Sandbox in which commands run.
    pub sandbox: Sandbox,
    /// Sandbox for commands that an untrusted project configures, if the user turned the sandbox off for
    /// others; or why there is none, so that they are not run.
    pub project_sandbox: Option<Result<Sandbox, String>>,
    /// Resource limits of commands.
    pub limits: ResourceLimits,
    /// Secrets to redact from output.
    pub secrets: Secrets,
}

impl CommandSettings {
    /// The sandbox of a command; an error if it must not be run.
    pub(super) fn sandbox_for(&self, source: CommandSource) -> Result<&Sandbox, CommandFailure> {
        match (&self.project_sandbox, source) {
            (Some(Ok(sandbox)), CommandSource::Project) => Ok(sandbox),
            (Some(Err(reason)), CommandSource::Project) => Err(CommandFailure::NotConfined(reason.clone())),
            _ => Ok(&self.sandbox),
        }
    }
}
