//! Dependencies of the command tools besides a workspace. [`super::Shell`] and the job tools share one copy.

use crate::redact::Secrets;
use crate::sandbox::{CommandEnvironment, ForkServer, ResourceLimits, Sandbox};

/// Dependencies of the command tools besides a workspace.
#[derive(Clone, Debug, Default)]
pub struct CommandSettings {
    /// Starts and ends commands; without it every command fails.
    pub fork_server: Option<ForkServer>,
    /// Environment variables of commands.
    pub environment: CommandEnvironment,
    /// Sandbox in which commands run.
    pub sandbox: Sandbox,
    /// Resource limits of commands.
    pub allowance: ResourceLimits,
    /// Secrets to redact from output.
    pub secrets: Secrets,
}
