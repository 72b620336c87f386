//! Command execution: the processes that start and supervise commands, and the sandbox around them.
//!
//! A command involves three more processes. The fork server ([`Keeper`]) is forked first thing in
//! `main`, while the program is still small and has one thread; every command is forked from it and does not
//! pay for starting a large binary. A supervisor (`supervisor`) is forked from the fork server for each
//! command that finds no idle one (`crew`). It reaps everything the command leaves behind and kills all of it
//! when the command ends or when Fusee is gone. The command itself is the supervisor's child.
//!
//! A [`Policy`] describes as data what a command can reach. A [`Room`] (the namespace sandbox) implements it
//! with namespaces and a mount tree that the commands of a run share (`namespaces`, `view`); each command
//! joins it with a PID namespace of its own (`enter`), without privileges (`kernel`), behind a seccomp filter
//! (`filter`). Where namespaces are not available, a [`Fence`] (the Landlock sandbox) implements the policy
//! with Landlock (`landlock`) and gives weaker guarantees. [`probe`] reports what works on this machine. The
//! shell tool does the other half: the model's arguments and the tool result.

mod allowance;
mod child;
mod crew;
mod enter;
mod environment;
mod fault;
mod fence;
mod filter;
mod group;
mod guard;
mod keeper;
mod kernel;
mod landlock;
mod linked;
mod mounting;
mod namespaces;
mod policy;
mod probe;
mod report;
mod room;
mod running;
mod spec;
mod supervisor;
mod sweep;
mod system;
mod tree;
mod view;
mod withstand;

use std::sync::Arc;

pub use allowance::{Allowance, Exceeded};
pub use environment::{Environment, looks_secret};
pub use fence::Fence;
pub use group::Bounds;
pub use keeper::{Keeper, KeeperError, init};
pub use policy::{Guarded, Made, Network, Owner, Placed, Policy, PolicyError, Surroundings};
pub use probe::{Layer, Probe, Strength, probe};
pub use room::Room;
pub use running::{CommandFailure, CommandRequest, Ending, Finished};
pub use withstand::withstand_limits;

/// The sandbox that commands run in, chosen once per run.
#[derive(Clone, Debug, Default)]
pub enum Sandbox {
    /// No confinement. The supervisor still kills the command with everything it started.
    #[default]
    Off,
    /// The command sees and reaches only what the policy allows. If that cannot be set up, it does not run.
    Namespaces(Arc<Room>),
    /// The command sees the machine but is denied what the policy does not grant. If that cannot be
    /// set up, it does not run. Weaker guarantees, for systems without namespaces.
    Landlock(Arc<Fence>),
}

impl Sandbox {
    /// Creates a namespace sandbox with this policy.
    #[must_use]
    pub fn namespaces(policy: Policy) -> Self {
        Self::Namespaces(Arc::new(Room::new(policy)))
    }

    /// Creates a Landlock sandbox with this policy.
    #[must_use]
    pub fn landlock(policy: Policy) -> Self {
        Self::Landlock(Arc::new(Fence::new(policy)))
    }
}
