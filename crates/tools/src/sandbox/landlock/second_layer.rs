//! Landlock as defence in depth around a namespace sandbox: repeats the mount policy in case a mount is
//! wrong. With the machine's network it also blocks the machine's abstract sockets, which no mount covers.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

use crate::sandbox::landlock::grants::DEVICES;
use crate::sandbox::landlock::sandbox::usable_version;
use crate::sandbox::landlock::{LandlockScope, PathGrant, Ruleset};
use crate::sandbox::policy::{Network, Policy};

/// Grants for what a namespace sandbox contains besides its policy.
const OWN: [(&str, PathGrant); 3] =
    [("/", PathGrant::Read), ("/dev/shm", PathGrant::Write), ("/dev/pts", PathGrant::Devices)];

/// The ruleset for commands in a namespace sandbox; `None` if the kernel has no usable Landlock. Must be
/// called inside the sandbox, because paths are resolved there.
pub(crate) fn namespace_ruleset(policy: &Policy) -> io::Result<Option<OwnedFd>> {
    let Ok(version) = usable_version() else { return Ok(None) };
    let scope = match policy.network {
        // The namespaces already confine signals and abstract sockets.
        Network::Own | Network::Hosts => LandlockScope::Files,
        Network::Machine => LandlockScope::FilesAndSignals,
    };
    let ruleset = Ruleset::new(version, scope)?;
    let moved = policy.moved.iter().filter(|folder| folder.writable).map(|folder| folder.target.clone());
    let writable: Vec<PathBuf> = policy.write.iter().chain(&policy.scratch).cloned().chain(moved).collect();
    let writable = writable.iter().map(|path| (path.as_path(), PathGrant::Write));
    let own = OWN.iter().map(|(path, grant)| (Path::new(*path), *grant));
    let devices = DEVICES.iter().map(|path| (Path::new(*path), PathGrant::Device));
    for (path, grant) in own.chain(writable).chain(devices) {
        match rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()) {
            Ok(held) => ruleset.allow(held.as_fd(), grant)?,
            // Does not exist in this sandbox, so there is nothing to grant.
            Err(rustix::io::Errno::NOENT | rustix::io::Errno::ACCESS | rustix::io::Errno::NOTDIR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(Some(ruleset.into()))
}
