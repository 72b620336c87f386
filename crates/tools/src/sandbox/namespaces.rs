//! Creates the namespaces of a namespace sandbox: user, mount, IPC and network.
//!
//! Without privileges, a user namespace is what makes the others possible. Root uses one as well, because its
//! remaining capabilities then have no effect outside. Root does without one only if none can be created.

pub(crate) mod join;
pub(crate) mod mount;
pub(crate) mod rootfs;
pub(crate) mod sandbox;

use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd, OwnedFd};

use rustix::pipe::PipeFlags;
use rustix::process::WaitOptions;
use rustix::thread::CapabilitySet;

use super::Network;
use super::error::{SandboxError, SetupStep};
use crate::sandbox::sys::namespaces::{self, NewNamespaces};
use crate::sandbox::sys::process::{self, ForkSide};

/// Descriptors of a sandbox's namespaces, which exist as long as these are open.
#[derive(Debug)]
pub(super) struct NamespaceHandles {
    pub(super) mounts: OwnedFd,
    pub(super) ipc: OwnedFd,
    /// `None` if the machine's network is used.
    pub(super) network: Option<OwnedFd>,
    /// The Landlock ruleset of the second layer. `None` if the kernel has no Landlock.
    pub(super) ruleset: Option<OwnedFd>,
}

/// Whether a namespace sandbox has its own user namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UserNamespace {
    Own,
    Machine,
}

/// Moves this process to new namespaces. Its mounts are still copies of the machine's. Also returns the socket for the
/// proxy, if commands are to have one.
pub(super) fn enter_new_namespaces(
    network: Network,
) -> Result<(NamespaceHandles, UserNamespace, Option<OwnedFd>), SandboxError> {
    let capabilities =
        rustix::thread::capabilities(None).map_or(CapabilitySet::empty(), |sets| sets.effective);
    let users = match unshare_user(capabilities.contains(CapabilitySet::SETUID | CapabilitySet::SETGID)) {
        Ok(()) => UserNamespace::Own,
        Err(fault)
            if fault.step == SetupStep::UserNamespace && capabilities.contains(CapabilitySet::SYS_ADMIN) =>
        {
            UserNamespace::Machine
        }
        Err(fault) => return Err(fault),
    };
    namespaces::unshare(NewNamespaces::MOUNTS).map_err(SetupStep::Namespaces.failed())?;
    namespaces::unshare(NewNamespaces::IPC).map_err(SetupStep::Namespaces.failed())?;
    if network.is_own() {
        namespaces::unshare(NewNamespaces::NETWORK).map_err(SetupStep::Namespaces.failed())?;
        namespaces::raise_loopback().map_err(SetupStep::Loopback.failed())?;
    }
    // A socket belongs to the namespace in which it was made, whoever accepts its connections.
    let listener = match network {
        Network::Hosts => {
            Some(TcpListener::bind("127.0.0.1:0").map_err(SetupStep::Loopback.failed())?.into())
        }
        Network::Own | Network::Machine => None,
    };
    let open_namespace = |name: &str| -> Result<OwnedFd, SandboxError> {
        std::fs::File::open(format!("/proc/self/ns/{name}"))
            .map(OwnedFd::from)
            .map_err(SetupStep::Namespaces.failed())
    };
    let network = network.is_own().then(|| open_namespace("net")).transpose()?;
    let handles = NamespaceHandles {
        mounts: open_namespace("mnt")?,
        ipc: open_namespace("ipc")?,
        network,
        ruleset: None,
    };
    Ok((handles, users, listener))
}

/// Creates a user namespace in which every id is mapped to itself.
fn unshare_user(may_map_all: bool) -> Result<(), SandboxError> {
    if may_map_all {
        unshare_user_mapping_all()?;
    } else {
        let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        namespaces::unshare(NewNamespaces::USER).map_err(SetupStep::UserNamespace.failed())?;
        let write = |name: &str, text: String| {
            std::fs::write(format!("/proc/self/{name}"), text).map_err(SetupStep::Identities.failed())
        };
        write("setgroups", "deny".to_owned())?;
        write("uid_map", format!("{user} {user} 1"))?;
        write("gid_map", format!("{group} {group} 1"))?;
    }
    // A nested user namespace would give a command all capabilities over what it creates there. The seccomp
    // filter refuses that as well, so a failure to write this is harmless.
    let _ = std::fs::write("/proc/sys/user/max_user_namespaces", "0");
    Ok(())
}

/// Maps all ids, not only those of this process. Only a process that stays in the parent namespace can write
/// such a map.
fn unshare_user_mapping_all() -> Result<(), SandboxError> {
    let everybody = ["uid_map", "gid_map"].map(|name| {
        let ours = std::fs::read_to_string(format!("/proc/self/{name}"))?;
        Ok((name, identity_map(&ours)))
    });
    let [users, groups] = everybody.map(|map: io::Result<_>| map.map_err(SetupStep::Identities.failed()));
    let maps = [users?, groups?];
    let (unshared_rx, unshared_tx) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)
        .map_err(|error| SetupStep::Identities.failed()(error.into()))?;
    let helper = match process::fork().map_err(SetupStep::Identities.failed())? {
        ForkSide::Child => {
            drop(unshared_tx);
            process::exit_now(i32::from(!map_parent(unshared_rx, &maps)))
        }
        ForkSide::Parent(helper) => helper,
    };
    drop(unshared_rx);
    let result = namespaces::unshare(NewNamespaces::USER).map_err(SetupStep::UserNamespace.failed());
    if result.is_ok() {
        let _ = rustix::io::write(unshared_tx.as_fd(), &[1]);
    }
    drop(unshared_tx);
    let status = rustix::process::waitpid(Some(helper), WaitOptions::empty());
    result?;
    match status {
        Ok(Some((_, status))) if status.exit_status() == Some(0) => Ok(()),
        _ => Err(SetupStep::Identities.failed()(io::Error::from_raw_os_error(libc::EPERM))),
    }
}

/// Body of the helper process: waits for the parent to move, then writes its id maps.
fn map_parent(unshared_rx: OwnedFd, maps: &[(&str, String)]) -> bool {
    let Some(parent) = rustix::process::getppid() else { return false };
    if !rustix::io::read(unshared_rx.as_fd(), &mut [0u8; 1]).is_ok_and(|length| length == 1) {
        return false;
    }
    let parent = parent.as_raw_nonzero();
    maps.iter().all(|(name, map)| std::fs::write(format!("/proc/{parent}/{name}"), map).is_ok())
}

/// Converts an id map to one that maps every id inside it to itself.
fn identity_map(map: &str) -> String {
    let mut same = String::new();
    for line in map.lines() {
        let mut words = line.split_ascii_whitespace();
        if let (Some(first), Some(_), Some(count)) = (words.next(), words.next(), words.next()) {
            same.push_str(&format!("{first} {first} {count}\n"));
        }
    }
    same
}
