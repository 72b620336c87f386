//! Applies the Landlock sandbox to a process before it becomes a command.

use std::io;
use std::os::fd::BorrowedFd;
use std::path::Path;

use rustix::process::{Gid, Uid};

use crate::sandbox::error::{SandboxError, SetupStep};
use crate::sandbox::landlock;
use crate::sandbox::policy::{CreatedPathAction, Network, Owner};
use crate::sandbox::seccomp::{self, AllowedSockets};
use crate::sandbox::sys::namespaces;

/// How a command is confined with Landlock, decoded from its message.
#[derive(Debug)]
pub(crate) struct LandlockConfinement<'m> {
    pub(crate) network: Network,
    /// User and group to run as, if different from those of this process.
    pub(crate) owner: Option<Owner>,
    /// Paths in the workspace that the command may not change.
    pub(crate) guarded: Vec<(&'m Path, CreatedPathAction)>,
}

/// Confines this process with privileges dropped, Landlock and seccomp. This cannot be undone.
pub(crate) fn hold(
    confinement: &LandlockConfinement<'_>,
    ruleset: BorrowedFd<'_>,
) -> Result<(), SandboxError> {
    drop_privileges(confinement.owner).map_err(SetupStep::Privileges.failed())?;
    landlock::restrict(ruleset).map_err(SetupStep::Landlock.failed())?;
    let sockets = match confinement.network {
        Network::Own | Network::Hosts => AllowedSockets::Pairs,
        Network::Machine => AllowedSockets::PairsAndNetwork,
    };
    namespaces::install_seccomp_filter(&seccomp::filter(sockets)).map_err(SetupStep::Filter.failed())
}

fn drop_privileges(owner: Option<Owner>) -> io::Result<()> {
    // Dropping from the bounding set needs CAP_SETPCAP; without it, what follows is enough.
    match namespaces::bound_capabilities() {
        Err(error) if error.raw_os_error() != Some(libc::EPERM) => return Err(error),
        _ => {}
    }
    if let Some(Owner { user, group }) = owner {
        let (user, group) = (Uid::from_raw(user), Gid::from_raw(group));
        rustix::thread::set_thread_groups(&[])?;
        rustix::thread::set_thread_res_gid(group, group, group)?;
        rustix::thread::set_thread_res_uid(user, user, user)?;
    }
    namespaces::leave_keyring();
    rustix::thread::set_no_new_privs(true)?;
    namespaces::drop_capabilities()
}
