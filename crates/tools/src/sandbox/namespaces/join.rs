//! Joining a namespace sandbox: the steps of a command's supervisor, and those of PID 1 of the command's PID
//! namespace.
//!
//! The supervisor joins the namespaces of the sandbox and creates those that each command has of its own. The
//! process it then forks is PID 1 there: everything the command starts ends with it. PID 1 covers `/proc`,
//! drops privileges, applies Landlock as well, and supervises the command.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::process::{DumpableBehavior, Gid, Signal, Uid};
use rustix::thread::{CapabilitySet, LinkNameSpaceType};

use crate::sandbox::error::{SandboxError, SetupStep};
use crate::sandbox::fork_server::exec::Descriptors;
use crate::sandbox::landlock;
use crate::sandbox::namespaces::mount;
use crate::sandbox::namespaces::sandbox::ConfinementLayers;
use crate::sandbox::namespaces::{NamespaceHandles, UserNamespace};
use crate::sandbox::policy::{CreatedPathAction, Network, Owner};
use crate::sandbox::protected_paths;
use crate::sandbox::seccomp::{self, AllowedSockets};
use crate::sandbox::sys::namespaces::{self, MountUse, NewNamespaces};

/// How a command joins a namespace sandbox, decoded from its message.
#[derive(Debug)]
pub(crate) struct JoinRequest<'m> {
    pub(crate) users: UserNamespace,
    pub(crate) layers: ConfinementLayers,
    pub(crate) network: Network,
    /// User and group to run as, if different from those of this process.
    pub(crate) owner: Option<Owner>,
    /// Whether the tree of the working directory is replaced by a substitute in the sandbox.
    pub(crate) substituted: bool,
    /// Working directory, as a path in the sandbox.
    pub(crate) directory: &'m CStr,
    /// Protected paths that did not exist when the sandbox was created.
    pub(crate) absent: Vec<(&'m Path, CreatedPathAction)>,
}

/// Joins a namespace sandbox. Processes started from now on are in a new PID namespace.
pub(crate) fn join(descriptors: &Descriptors, entrance: &JoinRequest<'_>) -> Result<(), SandboxError> {
    let Some(handles) = &descriptors.handles else {
        return Err(SetupStep::Join.failed()(io::ErrorKind::NotFound.into()));
    };
    // If memory runs out, the kernel should kill the command first. Must be set here: /proc is read-only
    // inside.
    let _ = std::fs::write("/proc/self/oom_score_adj", "500");
    let attempt = || -> io::Result<()> {
        let enter = |namespace: BorrowedFd<'_>, kind| {
            rustix::thread::move_into_link_name_space(namespace, Some(kind))
        };
        if entrance.users == UserNamespace::Own {
            enter(namespaces::owner_of(handles.mounts.as_fd())?.as_fd(), LinkNameSpaceType::User)?;
        }
        enter(handles.ipc.as_fd(), LinkNameSpaceType::InterProcessCommunication)?;
        if let Some(network) = &handles.network {
            enter(network.as_fd(), LinkNameSpaceType::Network)?;
        }
        enter(handles.mounts.as_fd(), LinkNameSpaceType::Mount)?;
        namespaces::unshare(NewNamespaces::PER_COMMAND)
    };
    attempt().map_err(SetupStep::Join.failed())
}

/// Prepares PID 1 of a command's PID namespace for the command. This cannot be undone.
///
/// Returns the protected paths that do not exist.
pub(crate) fn set_up_pid_one<'m>(
    entrance: &JoinRequest<'m>,
    handles: Option<&NamespaceHandles>,
) -> Result<Vec<(&'m Path, CreatedPathAction)>, SandboxError> {
    // A new session: the inherited process group has no id in this namespace.
    rustix::process::setsid().map_err(|error| SetupStep::Processes.failed()(error.into()))?;
    show_processes().map_err(SetupStep::Processes.failed())?;
    let mut absent = entrance.absent.clone();
    if !absent.is_empty() {
        let root = root().map_err(SetupStep::ProtectPath.failed())?;
        let mut fault = None;
        absent.retain(|(path, on_create)| match protected_paths::protect(root.as_fd(), path, *on_create) {
            Ok(presence) => presence == protected_paths::Presence::Absent,
            Err(error) => {
                fault.get_or_insert(SetupStep::ProtectPath.failed_at(path)(error));
                true
            }
        });
        if let Some(fault) = fault {
            return Err(fault);
        }
    }
    drop_privileges(entrance.owner).map_err(SetupStep::Privileges.failed())?;
    if entrance.layers == ConfinementLayers::Both {
        let missing = || SetupStep::Landlock.failed()(io::ErrorKind::NotFound.into());
        let ruleset = handles.and_then(|handles| handles.ruleset.as_ref()).ok_or_else(missing)?;
        landlock::restrict(ruleset.as_fd()).map_err(SetupStep::Landlock.failed())?;
    }
    namespaces::install_seccomp_filter(&seccomp::filter(allowed_sockets(entrance)))
        .map_err(SetupStep::Filter.failed())?;
    Ok(absent)
}

/// Without a network namespace, only Landlock keeps commands from the abstract sockets of the machine, and only in recent
/// kernels. Elsewhere they get no Unix sockets.
fn allowed_sockets(entrance: &JoinRequest<'_>) -> AllowedSockets {
    let confines = |version| version >= landlock::SIGNAL_VERSION;
    let is_confined = entrance.network.is_own()
        || (entrance.layers == ConfinementLayers::Both && landlock::version().is_ok_and(confines));
    if is_confined { AllowedSockets::Namespaced } else { AllowedSockets::NamespacedWithoutUnix }
}

fn root() -> io::Result<std::os::fd::OwnedFd> {
    Ok(rustix::fs::open("/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?)
}

/// Covers the machine's `/proc` with one that shows only those processes of the command that it could also
/// trace. That excludes this process, whose memory is a copy of the main process's. The mount is read-only,
/// so no sysctl can be changed.
fn show_processes() -> io::Result<()> {
    let processes = mount::new("proc", &[("hidepid", "ptraceable")], MountUse::PROCESSES)?;
    let place = rustix::fs::open("/proc", OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    mount::put(processes.as_fd(), place.as_fd())
}

/// Drops all privileges except one capability that is not in effect. It does nothing for this process, but the
/// kernel then refuses scheduling calls on it by processes without it, and so by the command.
fn drop_privileges(owner: Option<Owner>) -> io::Result<()> {
    namespaces::bound_capabilities()?;
    // Otherwise a change of the user id would drop it.
    rustix::thread::set_keep_capabilities(true)?;
    if let Some(Owner { user, group }) = owner {
        let (user, group) = (Uid::from_raw(user), Gid::from_raw(group));
        rustix::thread::set_thread_groups(&[])?;
        rustix::thread::set_thread_res_gid(group, group, group)?;
        rustix::thread::set_thread_res_uid(user, user, user)?;
    }
    namespaces::leave_keyring();
    rustix::thread::set_no_new_privs(true)?;
    namespaces::keep_capabilities(CapabilitySet::SYS_NICE)?;
    // Set here, because it is cleared when a process changes its user id.
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    // No process may read the memory of this one. The command gets its own memory at exec.
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    Ok(())
}

/// Changes to the command's directory by its path in the sandbox, and checks that it is the directory that
/// was opened outside, unless another tree is meant to be there.
///
/// The descriptor itself must not be used: it is in the machine's mount tree, and `..` would lead on from
/// there.
pub(crate) fn go_to(entrance: &JoinRequest<'_>, opened: BorrowedFd<'_>) -> io::Result<()> {
    rustix::process::chdir(entrance.directory)?;
    if entrance.substituted {
        return Ok(());
    }
    let (here, there) = (rustix::fs::stat(c".")?, rustix::fs::fstat(opened)?);
    if (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino) {
        Ok(())
    } else {
        Err(io::Error::from_raw_os_error(libc::ESTALE))
    }
}
