//! Command execution: the processes that start and supervise commands, and the sandbox around them.
//!
//! A command involves three more processes. The fork server ([`ForkServer`]) is forked first thing in
//! `main`, while the program is still small and has one thread; every command is forked from it and does not
//! pay for starting a large binary. A supervisor (`supervisor`) is forked from the fork server for each
//! command that finds no idle one (`supervisor_pool`). It reaps everything the command leaves behind and kills all of it
//! when the command ends or when Fusee is gone. The command itself is the supervisor's child.
//!
//! A [`Policy`] describes as data what a command can reach. A [`NamespaceSandbox`] (the namespace sandbox) implements it
//! with namespaces and a mount tree that the commands of a run share (`namespaces`, `rootfs`); each command
//! joins it with a PID namespace of its own (`join`), without privileges (`namespaces`), behind a seccomp filter
//! (`seccomp`). Where namespaces are not available, a [`LandlockSandbox`] (the Landlock sandbox) implements the policy
//! with Landlock (`landlock`) and gives weaker guarantees. [`probe()`] reports what works on this machine. The
//! shell tool does the other half: the model's arguments and the tool result.
//!
//! All of this is Linux. Elsewhere (`other_systems`) a command is a process group without a sandbox.

#[cfg(target_os = "linux")]
mod cgroup;
mod command;
#[cfg(target_os = "linux")]
mod command_handle;
mod environment;
#[cfg(target_os = "linux")]
mod error;
#[cfg(target_os = "linux")]
mod fork_server;
#[cfg(target_os = "linux")]
mod landlock;
mod limits;
#[cfg(target_os = "linux")]
mod namespaces;
#[cfg(not(target_os = "linux"))]
mod other_systems;
mod policy;
mod probe;
mod protected_paths;
#[cfg(target_os = "linux")]
mod seccomp;
mod separate_streams;
#[cfg(target_os = "linux")]
pub(crate) mod sys;

use std::sync::Arc;

use crate::host_proxy::HostProxy;
#[cfg(target_os = "linux")]
pub use crate::sandbox::landlock::sandbox::LandlockSandbox;
#[cfg(target_os = "linux")]
pub use crate::sandbox::namespaces::sandbox::NamespaceSandbox;
#[cfg(target_os = "linux")]
pub use crate::sandbox::sys::process_setup::setup_process;
pub use command::{CommandEnd, CommandFailure, CommandRequest, FinishedCommand};
pub use environment::{CommandEnvironment, looks_secret};
#[cfg(target_os = "linux")]
pub use fork_server::{ForkServer, ForkServerError, init};
pub use limits::{CgroupLimits, ExceededLimit, ResourceLimits};
#[cfg(not(target_os = "linux"))]
pub use other_systems::{
    ForkServer, ForkServerError, LandlockSandbox, NamespaceSandbox, init, probe, setup_process,
};
pub use policy::{
    CreatedPathAction, MovedFolder, Network, Owner, PlacedFile, Policy, PolicyError, ProtectedPath,
    SandboxInputs, Substitute, SubstituteSource,
};
#[cfg(target_os = "linux")]
pub use probe::probe;
pub use probe::{SandboxLayer, SandboxProbe, SandboxStrength};
#[doc(hidden)] // for its fuzz target
pub use protected_paths::has_only_safe_git_settings;
pub use protected_paths::report::ProtectionReport;

/// The sandbox that commands run in, chosen once per run.
#[derive(Clone, Debug, Default)]
pub enum Sandbox {
    /// No confinement. The supervisor still kills the command with everything it started.
    #[default]
    Off,
    /// The command sees and reaches only what the policy allows. If that cannot be set up, it does not run.
    Namespaces(Arc<NamespaceSandbox>),
    /// The command sees the machine but is denied what the policy does not grant. If that cannot be
    /// set up, it does not run. Weaker guarantees, for systems without namespaces.
    Landlock(Arc<LandlockSandbox>),
}

impl Sandbox {
    /// What commands can reach of the network.
    pub fn network(&self) -> Network {
        match self {
            Self::Off => Network::Machine,
            Self::Namespaces(sandbox) => sandbox.policy().network,
            Self::Landlock(sandbox) if sandbox.policy().network.is_own() => Network::Own,
            Self::Landlock(_) => Network::Machine,
        }
    }

    /// The proxy through which commands reach named hosts, if there is one.
    pub fn proxy(&self) -> Option<&Arc<HostProxy>> {
        match self {
            Self::Namespaces(sandbox) => sandbox.proxy(),
            Self::Off | Self::Landlock(_) => None,
        }
    }

    /// Creates a namespace sandbox with this policy.
    #[must_use]
    pub fn namespaces(policy: Policy) -> Self {
        Self::Namespaces(Arc::new(NamespaceSandbox::new(policy)))
    }

    /// Creates a namespace sandbox in which hosts are reached through a proxy.
    #[must_use]
    pub fn with_proxy(policy: Policy, proxy: HostProxy) -> Self {
        Self::Namespaces(Arc::new(NamespaceSandbox::new(policy).with_proxy(Arc::new(proxy))))
    }

    /// Watches for repositories in the workspace; `None` without a sandbox.
    #[cfg(target_os = "linux")]
    fn repositories(&self) -> Option<&Arc<protected_paths::repository_watch::RepositoryWatch>> {
        match self {
            Self::Off => None,
            Self::Namespaces(sandbox) => sandbox.repositories(),
            Self::Landlock(sandbox) => sandbox.repositories(),
        }
    }

    /// Creates a Landlock sandbox with this policy.
    #[must_use]
    pub fn landlock(policy: Policy) -> Self {
        Self::Landlock(Arc::new(LandlockSandbox::new(policy)))
    }
}
