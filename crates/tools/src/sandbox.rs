//! Where commands run: the process that starts them, what they see and what holds them.
//!
//! Three processes stand between us and a command. The [`Keeper`] is forked first thing in `main`, while the
//! program is still small and has one thread; every command is forked from it and costs no start of a large binary.
//! A supervisor (`supervisor`) is forked from it for each command that finds none free (`crew`), reaps everything the command leaves behind and
//! ends all of it when the command ends or when we are gone. The command itself is the supervisor's child.
//!
//! What a command can reach is a [`Policy`], as data. A [`Room`] is what is made of it: namespaces and a tree of mounts
//! that the commands of a run share (`namespaces`, `view`), which each command enters with processes of its own
//! (`enter`), without privileges (`kernel`), behind a filter of system calls (`filter`). Where there are no namespaces a
//! [`Fence`] is made of it instead (`landlock`), and promises less. [`probe`] tells what holds on this machine. The shell
//! tool does the other half: what a model asks for and what it is told.

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

/// What holds a command, decided once for a run.
#[derive(Clone, Debug, Default)]
pub enum Sandbox {
    /// Nothing but the supervisor, which ends it with everything it started.
    #[default]
    Off,
    /// It sees and reaches only what the room's policy says, or it does not run.
    Namespaces(Arc<Room>),
    /// It sees the machine and is refused what the fence's policy does not grant, or it does not run: the smaller promise,
    /// for where no namespaces can be had.
    Landlock(Arc<Fence>),
}

impl Sandbox {
    /// A sandbox as this policy says.
    #[must_use]
    pub fn namespaces(policy: Policy) -> Self {
        Self::Namespaces(Arc::new(Room::new(policy)))
    }

    /// The smaller one, as this policy says.
    #[must_use]
    pub fn landlock(policy: Policy) -> Self {
        Self::Landlock(Arc::new(Fence::new(policy)))
    }
}
