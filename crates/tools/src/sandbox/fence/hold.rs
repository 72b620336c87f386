//! Behind a fence: what a process gives up before it becomes a command, and who puts settings back after it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::process::{Gid, Uid, WaitOptions};

use super::kept::Kept;
use crate::sandbox::fault::{Fault, Step};
use crate::sandbox::filter::{self, Sockets};
use crate::sandbox::guard::Undone;
use crate::sandbox::policy::{Made, Network, Owner};
use crate::sandbox::{kernel, landlock, system};

/// How a command is fenced, from its message.
#[derive(Debug)]
pub(in crate::sandbox) struct Fencing<'m> {
    pub(in crate::sandbox) network: Network,
    /// Whom it runs as, where that is not who we are.
    pub(in crate::sandbox) owner: Option<Owner>,
    /// Paths in the workspace that it may not change.
    pub(in crate::sandbox) guarded: Vec<(&'m Path, Made)>,
}

/// Puts this process behind the fence. There is no way back from here.
pub(in crate::sandbox) fn hold(fencing: &Fencing<'_>, ruleset: BorrowedFd<'_>) -> Result<(), Fault> {
    give_up_privileges(fencing.owner).map_err(Step::Privileges.failed())?;
    landlock::restrict(ruleset).map_err(Step::Fence.failed())?;
    let sockets = match fencing.network {
        Network::Own => Sockets::Pairs,
        Network::Machine => Sockets::PairsAndNetwork,
    };
    kernel::filter_calls(&filter::filter(sockets)).map_err(Step::Filter.failed())
}

fn give_up_privileges(owner: Option<Owner>) -> io::Result<()> {
    // Only who may raise privileges may bound them; for the others what follows is enough.
    match kernel::bound_capabilities() {
        Err(error) if error.raw_os_error() != Some(libc::EPERM) => return Err(error),
        _ => {}
    }
    if let Some(Owner { user, group }) = owner {
        let (user, group) = (Uid::from_raw(user), Gid::from_raw(group));
        rustix::thread::set_thread_groups(&[])?;
        rustix::thread::set_thread_res_gid(group, group, group)?;
        rustix::thread::set_thread_res_uid(user, user, user)?;
    }
    kernel::leave_keyring();
    rustix::thread::set_no_new_privs(true)?;
    kernel::drop_capabilities()
}

/// Puts back what a command changed of what it may not, from behind the same fence: whatever links it left on the way lead
/// no further than it could go itself.
pub(in crate::sandbox) fn put_back(kept: &Kept<'_>, fencing: &Fencing<'_>, ruleset: &OwnedFd) -> Undone {
    const NOTHING: i32 = 0;
    const SOMETHING: i32 = 1;
    let child = system::start(|| match hold(fencing, ruleset.as_fd()) {
        Ok(()) if kept.put_back() == Undone::Nothing => NOTHING,
        // What is not known to be as it was is said to have changed.
        Ok(()) | Err(_) => SOMETHING,
    });
    let status = child.and_then(|child| Ok(rustix::process::waitpid(Some(child), WaitOptions::empty())?));
    match status {
        Ok(Some((_, status))) if status.exit_status() == Some(NOTHING) => Undone::Nothing,
        _ => Undone::Something,
    }
}
