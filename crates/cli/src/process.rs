//! The process as a command sees it: environment, fork server, clock and standard streams, and the errors
//! that end it.

pub(crate) mod clock;
pub(crate) mod environment;
pub(crate) mod error;
pub(crate) mod stdio;

use fusee::engine::tools::ForkServer;
use fusee::engine::tools::sandbox::CommandEnvironment;

use environment::Environment;

/// Process-wide resources a command can use.
pub(crate) struct Process {
    pub(crate) environment: Environment,
    /// Fork server that spawns commands for tools; `None` for commands that run no tools.
    pub(crate) fork_server: Option<ForkServer>,
}

impl Process {
    /// The environment variables that the commands of a run see.
    pub(crate) fn command_environment(&self) -> CommandEnvironment {
        let variables = self.environment.variables().map(|(name, value)| (name.clone(), value.clone()));
        CommandEnvironment::allowed(variables)
    }
}
