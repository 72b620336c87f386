//! The process as a command sees it: environment, fork server, clock and standard streams, and the errors
//! that end it.

pub(crate) mod clock;
pub(crate) mod environment;
pub(crate) mod error;
pub(crate) mod piped_input;
pub(crate) mod pool;
pub(crate) mod stdio;
#[cfg(feature = "telemetry")]
pub(crate) mod telemetry;

use fusee::engine::tools::ForkServer;
use fusee::engine::tools::mcp::OpenSessions;
use fusee::engine::tools::sandbox::CommandEnvironment;

use environment::Environment;
use pool::{OpenJournals, OpenModels};

/// Process-wide resources a command can use. Clones share them.
#[derive(Clone)]
pub(crate) struct Process {
    pub(crate) environment: Environment,
    /// Fork server that spawns commands for tools; `None` for commands that run no tools.
    pub(crate) fork_server: Option<ForkServer>,
    pub(crate) journals: OpenJournals,
    pub(crate) models: OpenModels,
    pub(crate) mcp_sessions: OpenSessions,
    #[cfg(feature = "telemetry")]
    pub(crate) telemetry: telemetry::Telemetry,
}

impl Process {
    /// A process without open journals and models.
    pub(crate) fn new(environment: Environment, fork_server: Option<ForkServer>) -> Self {
        let (journals, models) = (OpenJournals::default(), OpenModels::default());
        #[cfg(feature = "telemetry")]
        let telemetry = telemetry::Telemetry::from_environment(&environment);
        Self {
            environment,
            fork_server,
            journals,
            models,
            mcp_sessions: OpenSessions::default(),
            #[cfg(feature = "telemetry")]
            telemetry,
        }
    }

    /// The environment variables that the commands of a run see.
    pub(crate) fn command_environment(&self) -> CommandEnvironment {
        let variables = self.environment.variables().map(|(name, value)| (name.clone(), value.clone()));
        CommandEnvironment::allowed(variables)
    }
}
