//! The second layer around a room: Landlock says of its files once more what its mounts say. What a fault in the view
//! would open is still refused, and with the machine's network, whose names for sockets are no files, so are those.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags};

use super::grants::DEVICES;
use super::usable_version;
use crate::sandbox::landlock::{Grant, Ruleset, Scope};
use crate::sandbox::policy::{Network, Policy};

/// What a room has besides its policy.
const OWN: [(&str, Grant); 3] =
    [("/", Grant::Read), ("/dev/shm", Grant::Write), ("/dev/pts", Grant::Devices)];

/// What commands in a room are granted; nothing where the kernel has no Landlock. To be asked in the room, whose names
/// for places these are.
pub(in crate::sandbox) fn around_room(policy: &Policy) -> io::Result<Option<OwnedFd>> {
    let Ok(version) = usable_version() else { return Ok(None) };
    let scope = match policy.network {
        // Signals end at the room, and so do names for sockets.
        Network::Own => Scope::Files,
        Network::Machine => Scope::FilesAndSignals,
    };
    let ruleset = Ruleset::new(version, scope)?;
    let writable = policy.write.iter().chain(&policy.scratch).map(|path| (path.as_path(), Grant::Write));
    let own = OWN.iter().map(|(path, grant)| (Path::new(*path), *grant));
    let devices = DEVICES.iter().map(|path| (Path::new(*path), Grant::Device));
    for (path, grant) in own.chain(writable).chain(devices) {
        match rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()) {
            Ok(held) => ruleset.allow(held.as_fd(), grant)?,
            // Not in this room: then there is nothing to grant.
            Err(rustix::io::Errno::NOENT | rustix::io::Errno::ACCESS | rustix::io::Errno::NOTDIR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(Some(ruleset.into()))
}
