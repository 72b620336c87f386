//! The root file system of a namespace sandbox, assembled from parts of the machine's according to a policy.
//!
//! `mount_plan` decides which parts are mounted and in which order; this module mounts them. It runs in a process
//! that has moved to new namespaces and exits afterwards: the mounts last as long as a descriptor of their
//! mount namespace is open.

mod mount_plan;

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags};
use rustix::mount::{MountPropagationFlags, UnmountFlags};

use crate::sandbox::error::{SandboxError, SetupStep};
use crate::sandbox::namespaces::mount::{self, MountReach, SymlinkPolicy};
use crate::sandbox::policy::{Policy, Substitute, SubstituteSource};
use crate::sandbox::protected_paths::{self, Presence};
use crate::sandbox::sys::namespaces::{self, MountUse};

use mount_plan::{MountKind, PlannedMount};

/// Where the new root is mounted before the pivot: any directory that every system has.
const STAGE: [&str; 3] = ["/proc", "/tmp", "/usr"];

/// Devices that give no access to anything else.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

const DEVICE_LINKS: [(&str, &str); 5] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("ptmx", "pts/ptmx"),
];

/// Empty replacements that are mounted over hidden paths; they live in the sandbox's `/dev`.
const EMPTY_DIRECTORY: &str = "/dev/.hidden/directory";
const EMPTY_FILE: &str = "/dev/.hidden/file";

/// Replaces the root of this process as the policy says. Returns the indexes of protected paths that do not
/// exist.
pub(crate) fn build(policy: &Policy) -> Result<Vec<usize>, SandboxError> {
    let plan = mount_plan::plan(policy);
    let mut view = Rootfs::begin(&plan)?;
    view.make_devices(policy)?;
    for (at, entry) in plan.iter().enumerate() {
        let holds_more = plan.get(at + 1).is_some_and(|next| next.path.starts_with(entry.path));
        view.mount(entry, holds_more, policy)?;
    }
    // The machine's /proc, which every command covers with its own: the kernel allows a new proc mount only
    // where a full one is visible.
    view.mount_machines_processes()?;
    for placed in &policy.placed {
        view.place(&placed.path, placed.content.as_bytes(), &plan)?;
    }
    let mut absent = Vec::new();
    for (number, guarded) in policy.guarded.iter().enumerate() {
        let fault = SetupStep::ProtectPath.failed_at(&guarded.path);
        let path = policy.inside(&guarded.path);
        if protected_paths::protect(view.new.as_fd(), &path, guarded.on_create).map_err(fault)?
            == Presence::Absent
        {
            absent.push(number);
        }
    }
    view.finish()?;
    Ok(absent)
}

struct Rootfs {
    /// The machine's root.
    old: OwnedFd,
    /// The sandbox's root.
    new: OwnedFd,
    /// Mounts created here that are made read-only at the end.
    sealed: Vec<OwnedFd>,
}

impl Rootfs {
    fn begin(plan: &[PlannedMount<'_>]) -> Result<Self, SandboxError> {
        let attempt = || -> io::Result<Self> {
            let root = Path::new("/");
            rustix::mount::mount_change(root, MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
            let old = rustix::fs::open(root, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
            let mut sealed = Vec::new();
            let new = if plan.first().is_some_and(|entry| entry.path == root) {
                mount::copy(old.as_fd(), MountUse::READ)?
            } else {
                let new = small()?;
                sealed.push(rustix::io::fcntl_dupfd_cloexec(&new, 3)?);
                new
            };
            let stage = STAGE.iter().find(|stage| Path::new(stage).is_dir()).unwrap_or(&"/proc");
            let stage = rustix::fs::open(*stage, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
            mount::put(new.as_fd(), stage.as_fd())?;
            // Onto itself: the old root is then stacked over the new one until it is unmounted.
            rustix::process::fchdir(&new)?;
            rustix::process::pivot_root(".", ".")?;
            Ok(Self { old, new, sealed })
        };
        attempt().map_err(SetupStep::Root.failed())
    }

    fn mount(
        &mut self,
        entry: &PlannedMount<'_>,
        holds_more: bool,
        policy: &Policy,
    ) -> Result<(), SandboxError> {
        let path = entry.path;
        match entry.kind {
            // The root was chosen in `begin`.
            MountKind::Read if path == Path::new("/") => Ok(()),
            MountKind::Read => self.show(entry, MountUse::READ).map_err(SetupStep::Read.failed_at(path)),
            MountKind::Write
                if policy.substitute.as_ref().is_some_and(|substitute| substitute.path == entry.source) =>
            {
                let shown =
                    policy.substitute.as_ref().map(|substitute| self.show_substitute(entry, substitute));
                shown.unwrap_or(Ok(())).map_err(SetupStep::Write.failed_at(path))
            }
            MountKind::Write => self.show(entry, MountUse::WRITE).map_err(SetupStep::Write.failed_at(path)),
            MountKind::Hidden => self.hide(entry, holds_more).map_err(SetupStep::Hide.failed_at(path)),
            MountKind::Scratch => {
                self.make_scratch(entry, policy).map_err(SetupStep::Scratch.failed_at(path))
            }
        }
    }

    /// Mounts a part of the machine's tree, at the same path unless it is moved.
    fn show(&self, entry: &PlannedMount<'_>, to: MountUse) -> io::Result<()> {
        let source = match mount::held(self.old.as_fd(), entry.source, entry.links) {
            Ok(source) => source,
            // A readable path may have been removed since the policy was made; a writable one must exist.
            Err(error)
                if to == MountUse::READ
                    && matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied) =>
            {
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        if entry.links == SymlinkPolicy::Followed
            && entry.path == entry.source
            && let Some(target) = self.link_at(entry.path)
        {
            return self.make_link(entry.path, &target);
        }
        let kind = mount::kind(source.as_fd())?;
        let place = self.place_for(entry.path, kind, entry.links)?;
        mount::put(mount::copy(source.as_fd(), to)?.as_fd(), place.as_fd())
    }

    /// Mounts something else where a writable tree is seen, which may be another path than its own.
    fn show_substitute(&self, entry: &PlannedMount<'_>, substitute: &Substitute) -> io::Result<()> {
        let tree = match &substitute.source {
            SubstituteSource::Copy(source) => {
                let source = mount::held(self.old.as_fd(), source, SymlinkPolicy::Refused)?;
                mount::copy(source.as_fd(), MountUse::WRITE)?
            }
            SubstituteSource::Overlay { upper, work } => {
                // The layers are named by paths in the machine's root, which is not this process's any more.
                rustix::process::fchdir(&self.old)?;
                let [lower, upper, work] =
                    [entry.source, upper, work].map(|path| path.strip_prefix("/").unwrap_or(path));
                let made = mount::overlay(lower, upper, work);
                rustix::process::fchdir(&self.new)?;
                made?
            }
        };
        let place = self.place_for(entry.path, FileType::Directory, entry.links)?;
        mount::put(tree.as_fd(), place.as_fd())
    }

    /// The target of the machine's symbolic link at a path, if it is one.
    fn link_at(&self, path: &Path) -> Option<std::ffi::CString> {
        let name = path.file_name()?;
        let parent = mount::held(self.old.as_fd(), path.parent()?, SymlinkPolicy::Followed).ok()?;
        rustix::fs::readlinkat(&parent, name, Vec::new()).ok()
    }

    fn make_link(&self, path: &Path, target: &std::ffi::CStr) -> io::Result<()> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Ok(()) };
        let parent = self.place_for(parent, FileType::Directory, SymlinkPolicy::Followed)?;
        match rustix::fs::symlinkat(target, &parent, name) {
            // Exists already, because its parent directory is mounted.
            Err(rustix::io::Errno::EXIST) => Ok(()),
            result => Ok(result?),
        }
    }

    fn hide(&mut self, entry: &PlannedMount<'_>, holds_more: bool) -> io::Result<()> {
        let place = match mount::held(self.new.as_fd(), entry.path, SymlinkPolicy::Refused) {
            Ok(place) => place,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            // A link on the path; its target is hidden by its own path or not visible.
            Err(error) if error.raw_os_error() == Some(libc::ELOOP) => return Ok(()),
            Err(error) => return Err(error),
        };
        if holds_more {
            let cover = small()?;
            mount::put(cover.as_fd(), place.as_fd())?;
            self.sealed.push(cover);
            return Ok(());
        }
        let empty =
            if mount::kind(place.as_fd())? == FileType::Directory { EMPTY_DIRECTORY } else { EMPTY_FILE };
        let empty = mount::held(self.new.as_fd(), Path::new(empty), SymlinkPolicy::Refused)?;
        mount::put(mount::copy(empty.as_fd(), MountUse::READ)?.as_fd(), place.as_fd())
    }

    fn make_scratch(&self, entry: &PlannedMount<'_>, policy: &Policy) -> io::Result<()> {
        let shared = ["tmp", "shm"].iter().any(|name| entry.path.file_name() == Some(OsStr::new(name)));
        let mode = if shared { "1777" } else { "755" };
        let bytes = policy.scratch_bytes.to_string();
        let owner = policy.owner.map(|owner| [owner.user.to_string(), owner.group.to_string()]);
        let mut settings = vec![("size", bytes.as_str()), ("nr_inodes", "200k"), ("mode", mode)];
        if let Some([user, group]) = &owner {
            settings.extend([("uid", user.as_str()), ("gid", group.as_str())]);
        }
        let scratch = mount::new("tmpfs", &settings, MountUse::WRITE)?;
        let place = self.place_for(entry.path, FileType::Directory, entry.links)?;
        mount::put(scratch.as_fd(), place.as_fd())
    }

    /// Creates a `/dev` with only harmless devices.
    fn make_devices(&mut self, policy: &Policy) -> Result<(), SandboxError> {
        let attempt = |view: &mut Self| -> io::Result<()> {
            let devices = small()?;
            let place = view.place_for(Path::new("/dev"), FileType::Directory, SymlinkPolicy::Followed)?;
            mount::put(devices.as_fd(), place.as_fd())?;
            for name in DEVICES {
                let path = Path::new("/dev").join(name);
                let Ok(source) = mount::held(view.old.as_fd(), &path, SymlinkPolicy::Refused) else {
                    continue;
                };
                let place = view.place_for(&path, FileType::RegularFile, SymlinkPolicy::Refused)?;
                mount::put(mount::copy(source.as_fd(), MountUse::DEVICE)?.as_fd(), place.as_fd())?;
            }
            for (name, target) in DEVICE_LINKS {
                rustix::fs::symlinkat(target, &devices, name)?;
            }
            rustix::fs::mkdirat(&devices, ".hidden", Mode::from_raw_mode(0o555))?;
            for name in ["pts", ".hidden/directory"] {
                rustix::fs::mkdirat(&devices, name, Mode::from_raw_mode(0o555))?;
            }
            drop(create(devices.as_fd(), OsStr::new(".hidden/file"))?);
            // Needs a mapped user 0. Without one there are no terminals.
            if let Ok(terminals) =
                mount::new("devpts", &[("ptmxmode", "0666"), ("mode", "0620")], MountUse::TERMINALS)
            {
                let place =
                    view.place_for(Path::new("/dev/pts"), FileType::Directory, SymlinkPolicy::Refused)?;
                mount::put(terminals.as_fd(), place.as_fd())?;
            }
            let memory = PlannedMount {
                path: Path::new("/dev/shm"),
                source: Path::new("/dev/shm"),
                kind: MountKind::Scratch,
                links: SymlinkPolicy::Refused,
            };
            view.make_scratch(&memory, policy)?;
            view.sealed.push(devices);
            Ok(())
        };
        attempt(self).map_err(SetupStep::Devices.failed())
    }

    fn mount_machines_processes(&self) -> Result<(), SandboxError> {
        let attempt = || -> io::Result<()> {
            let path = Path::new("/proc");
            let source = mount::held(self.old.as_fd(), path, SymlinkPolicy::Refused)?;
            let place = self.place_for(path, FileType::Directory, SymlinkPolicy::Followed)?;
            mount::put(mount::copy(source.as_fd(), MountUse::PROCESSES)?.as_fd(), place.as_fd())
        };
        attempt().map_err(SetupStep::Processes.failed())
    }

    fn place(&self, path: &Path, content: &[u8], plan: &[PlannedMount<'_>]) -> Result<(), SandboxError> {
        // Only into a private directory: anywhere else the file would be written to the machine.
        let around = plan.iter().rev().find(|entry| path.starts_with(entry.path));
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Ok(()) };
        if around.is_none_or(|entry| entry.kind != MountKind::Scratch) {
            return Ok(());
        }
        let attempt = || -> io::Result<()> {
            let parent = self.place_for(parent, FileType::Directory, SymlinkPolicy::Refused)?;
            let mut file = std::fs::File::from(create(parent.as_fd(), name)?);
            io::Write::write_all(&mut file, content)
        };
        attempt().map_err(SetupStep::WriteFile.failed_at(path))
    }

    /// Opens a mount point of this file type. Missing path components are created, which works only in mounts
    /// created here.
    fn place_for(&self, path: &Path, kind: FileType, links: SymlinkPolicy) -> io::Result<OwnedFd> {
        match mount::held(self.new.as_fd(), path, links) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            result => return result,
        }
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(io::ErrorKind::NotFound.into());
        };
        let parent = self.place_for(parent, FileType::Directory, links)?;
        if kind == FileType::Directory {
            rustix::fs::mkdirat(&parent, name, Mode::from_raw_mode(0o755))?;
        } else {
            drop(create(parent.as_fd(), name)?);
        }
        mount::held(self.new.as_fd(), path, links)
    }

    /// Unmounts the machine's root. It cannot be reached after this.
    fn finish(self) -> Result<(), SandboxError> {
        let attempt = || -> io::Result<()> {
            rustix::process::fchdir(&self.old)?;
            rustix::mount::unmount(".", UnmountFlags::DETACH)?;
            rustix::process::chdir("/")?;
            for mount in &self.sealed {
                namespaces::restrict(mount.as_fd(), MountUse::READ, MountReach::Alone)?;
            }
            Ok(())
        };
        attempt().map_err(SetupStep::Root.failed())
    }
}

/// A small tmpfs for a few directories and links.
fn small() -> io::Result<OwnedFd> {
    mount::new("tmpfs", &[("size", "1m"), ("nr_inodes", "4k"), ("mode", "755")], MountUse::WRITE)
}

fn create(directory: BorrowedFd<'_>, name: &OsStr) -> io::Result<OwnedFd> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    Ok(rustix::fs::openat(directory, name, flags, Mode::from_raw_mode(0o644))?)
}
