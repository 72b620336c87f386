//! Where commands run: the process that starts them, what they see and what holds them.
//!
//! Three processes stand between us and a command. The [`Keeper`] is forked first thing in `main`, while the
//! program is still small and has one thread; every command is forked from it and costs no start of a large binary.
//! A supervisor (`supervisor`) is forked from it for each command, reaps everything the command leaves behind and
//! ends all of it when the command ends or when we are gone. The command itself is the supervisor's child.
//! The shell tool does the other half: what a model asks for and what it is told.

mod child;
mod environment;
mod keeper;
mod running;
mod spec;
mod supervisor;
mod sweep;
mod system;

pub use environment::Environment;
pub use keeper::{Keeper, KeeperError, init};
pub use running::{CommandFailure, CommandRequest, Ending, Finished};

/// What holds a command, decided once for a run and carried to every command in its spec.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sandbox {
    /// Nothing but the supervisor, which ends it with everything it started.
    #[default]
    Off,
}
