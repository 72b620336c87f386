//! System calls that create and join namespaces and drop privileges, where Rust has no safe interface.
//! `system` has those that start processes.
#![expect(unsafe_code, reason = "namespaces and privileges have no safe API; each use says why it is sound")]

use std::ffi::{c_int, c_ulong};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use crate::sandbox::namespaces::mount::MountReach;
use rustix::thread::{CapabilitySet, CapabilitySets};

/// Namespaces to unshare.
#[derive(Clone, Copy)]
pub(crate) struct NewNamespaces(c_int);

impl NewNamespaces {
    pub(crate) const USER: Self = Self(libc::CLONE_NEWUSER);
    pub(crate) const MOUNTS: Self = Self(libc::CLONE_NEWNS);
    pub(crate) const NETWORK: Self = Self(libc::CLONE_NEWNET);
    /// System V IPC and POSIX message queues.
    pub(crate) const IPC: Self = Self(libc::CLONE_NEWIPC);
    /// The namespaces that each command has of its own: PIDs, mounts (for its `/proc`) and the host name.
    pub(crate) const PER_COMMAND: Self = Self(libc::CLONE_NEWPID | libc::CLONE_NEWNS | libc::CLONE_NEWUTS);
}

/// Moves this process to new namespaces.
pub(crate) fn unshare(fresh: NewNamespaces) -> io::Result<()> {
    // SAFETY: none of the flags affects memory or descriptors, and this process has one thread.
    checked(unsafe { libc::unshare(fresh.0) }.into())
}

/// The user namespace that owns a namespace.
pub(crate) fn owner_of(namespace: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    // SAFETY: the call takes no argument and returns a new descriptor that is not owned elsewhere.
    unsafe {
        let descriptor = libc::ioctl(namespace.as_raw_fd(), libc::NS_GET_USERNS as _);
        if descriptor < 0 { Err(io::Error::last_os_error()) } else { Ok(OwnedFd::from_raw_fd(descriptor)) }
    }
}

/// Attributes of a mount.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct MountUse(u64);

impl MountUse {
    /// No setuid programs and no devices.
    pub(crate) const WRITE: Self = Self(libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV);
    pub(crate) const READ: Self = Self(Self::WRITE.0 | libc::MOUNT_ATTR_RDONLY);
    /// Device files can be used, but their metadata cannot be changed.
    pub(crate) const DEVICE: Self =
        Self(libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NOEXEC | libc::MOUNT_ATTR_RDONLY);
    pub(crate) const TERMINALS: Self = Self(libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NOEXEC);
    pub(crate) const PROCESSES: Self = Self(Self::READ.0 | libc::MOUNT_ATTR_NOEXEC);

    pub(crate) fn bits(self) -> u32 {
        u32::try_from(self.0).unwrap_or(u32::MAX)
    }
}

/// Sets the attributes of a mount and makes it private, so that mount events elsewhere do not propagate to
/// it.
pub(crate) fn restrict(mount: BorrowedFd<'_>, to: MountUse, reach: MountReach) -> io::Result<()> {
    let attributes =
        libc::mount_attr { attr_set: to.0, attr_clr: 0, propagation: libc::MS_PRIVATE, userns_fd: 0 };
    let below = if reach == MountReach::Below { libc::AT_RECURSIVE } else { 0 };
    let flags = libc::AT_EMPTY_PATH | below;
    // SAFETY: the path is an empty string, and the attributes are as long as the size says.
    checked(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            flags,
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    })
}

/// Brings up the loopback device of the current network namespace.
pub(crate) fn raise_loopback() -> io::Result<()> {
    let socket = rustix::net::socket_with(
        rustix::net::AddressFamily::INET,
        rustix::net::SocketType::DGRAM,
        rustix::net::SocketFlags::CLOEXEC,
        None,
    )?;
    // SAFETY: all zero is a valid ifreq; the kernel reads its NUL-terminated name and its flags.
    checked(
        unsafe {
            let mut request: libc::ifreq = std::mem::zeroed();
            for (place, byte) in request.ifr_name.iter_mut().zip(b"lo") {
                *place = byte.cast_signed() as _;
            }
            request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as _;
            libc::ioctl(socket.as_fd().as_raw_fd(), libc::SIOCSIFFLAGS as _, &raw const request)
        }
        .into(),
    )
}

/// Replaces the session keyring, which earlier programs may have added keys to, with an empty one.
pub(crate) fn leave_keyring() {
    const JOIN_SESSION_KEYRING: c_int = 1;
    // SAFETY: a null name requests an anonymous keyring. Without keyring support there is nothing to replace.
    unsafe { libc::syscall(libc::SYS_keyctl, JOIN_SESSION_KEYRING, 0 as c_ulong) };
}

/// Empties the capability bounding set, so that no program this process executes can gain capabilities.
pub(crate) fn bound_capabilities() -> io::Result<()> {
    for capability in 0..64 as c_ulong {
        // SAFETY: takes numbers only.
        let dropped = unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) };
        if dropped == -1 {
            let error = io::Error::last_os_error();
            // Past the last capability that this kernel knows.
            if error.raw_os_error() == Some(libc::EINVAL) && capability > 0 {
                break;
            }
            return Err(error);
        }
    }
    Ok(())
}

/// Drops all capabilities of this process.
pub(crate) fn drop_capabilities() -> io::Result<()> {
    keep_capabilities(CapabilitySet::empty())
}

/// Drops all capabilities of this process but these, and puts none into effect.
pub(crate) fn keep_capabilities(permitted: CapabilitySet) -> io::Result<()> {
    // Clearing the permitted set clears the ambient set as well.
    let none = CapabilitySet::empty();
    let permitted = rustix::thread::capabilities(None)?.permitted & permitted;
    rustix::thread::set_capabilities(None, CapabilitySets { effective: none, permitted, inheritable: none })?;
    Ok(())
}

/// Installs `filter` for every system call of this process and of everything it executes and starts.
pub(crate) fn install_seccomp_filter(filter: &[libc::sock_filter]) -> io::Result<()> {
    let length = u16::try_from(filter.len()).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))?;
    let program = libc::sock_fprog { len: length, filter: filter.as_ptr().cast_mut() };
    // SAFETY: the kernel copies the program, which is as long as its length says, and does not write to it.
    checked(unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            // Without this flag a filter enables a speculation mitigation that is meant for JIT compilers of
            // untrusted code and slows everything down.
            libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW,
            &raw const program,
        )
    })
}

fn checked(result: libc::c_long) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
