//! The calls that make and enter namespaces and give up privileges, where Rust has no safe form of them.
//! `system` has those that start processes.
#![expect(unsafe_code, reason = "namespaces and privileges have no safe form; each use says why it is sound")]

use std::ffi::{c_int, c_ulong};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use super::mounting::Reach;
use rustix::thread::{CapabilitySet, CapabilitySets};

/// Namespaces to leave for new ones.
#[derive(Clone, Copy)]
pub(super) struct Fresh(c_int);

impl Fresh {
    pub(super) const USER: Self = Self(libc::CLONE_NEWUSER);
    pub(super) const MOUNTS: Self = Self(libc::CLONE_NEWNS);
    pub(super) const NETWORK: Self = Self(libc::CLONE_NEWNET);
    /// System V and POSIX queues and memory.
    pub(super) const MESSAGES: Self = Self(libc::CLONE_NEWIPC);
    /// What each command has of its own: processes, mounts (for its `/proc`), and the name of the machine.
    pub(super) const OF_A_COMMAND: Self = Self(libc::CLONE_NEWPID | libc::CLONE_NEWNS | libc::CLONE_NEWUTS);
}

/// Leaves namespaces for new ones.
pub(super) fn unshare(fresh: Fresh) -> io::Result<()> {
    // SAFETY: of the flags none is about memory or descriptors, and this process has one thread.
    checked(unsafe { libc::unshare(fresh.0) }.into())
}

/// The user namespace that a namespace belongs to.
pub(super) fn owner_of(namespace: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    // SAFETY: the call takes no argument and returns a new descriptor that nobody else owns.
    unsafe {
        let descriptor = libc::ioctl(namespace.as_raw_fd(), libc::NS_GET_USERNS as _);
        if descriptor < 0 { Err(io::Error::last_os_error()) } else { Ok(OwnedFd::from_raw_fd(descriptor)) }
    }
}

/// How a mount may be used.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Use(u64);

impl Use {
    /// Nothing in it gains privileges or is a device.
    pub(super) const WRITE: Self = Self(libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV);
    pub(super) const READ: Self = Self(Self::WRITE.0 | libc::MOUNT_ATTR_RDONLY);
    /// A device may be used, but not changed.
    pub(super) const DEVICE: Self =
        Self(libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NOEXEC | libc::MOUNT_ATTR_RDONLY);
    pub(super) const TERMINALS: Self = Self(libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NOEXEC);
    pub(super) const PROCESSES: Self = Self(Self::READ.0 | libc::MOUNT_ATTR_NOEXEC);

    pub(super) fn bits(self) -> u32 {
        u32::try_from(self.0).unwrap_or(u32::MAX)
    }
}

/// Restricts a mount. What happens to it elsewhere does not happen here any more.
pub(super) fn restrict(mount: BorrowedFd<'_>, to: Use, reach: Reach) -> io::Result<()> {
    let attributes =
        libc::mount_attr { attr_set: to.0, attr_clr: 0, propagation: libc::MS_PRIVATE, userns_fd: 0 };
    let below = if reach == Reach::Below { libc::AT_RECURSIVE } else { 0 };
    let flags = libc::AT_EMPTY_PATH | below;
    // SAFETY: the path is an empty string and the attributes are as long as is said.
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

/// Brings up the loopback device of the network namespace we are in.
pub(super) fn raise_loopback() -> io::Result<()> {
    let socket = rustix::net::socket_with(
        rustix::net::AddressFamily::INET,
        rustix::net::SocketType::DGRAM,
        rustix::net::SocketFlags::CLOEXEC,
        None,
    )?;
    // SAFETY: all zero is a valid ifreq; the kernel reads its name, which ends with a zero, and its flags.
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

/// Leaves the session's keyring, which programs before us may have put keys into, for an empty one.
pub(super) fn leave_keyring() {
    const JOIN_SESSION_KEYRING: c_int = 1;
    // SAFETY: a null name asks for a keyring without one. Where there are no keyrings, there is nothing to leave.
    unsafe { libc::syscall(libc::SYS_keyctl, JOIN_SESSION_KEYRING, 0 as c_ulong) };
}

/// Gives up for good what a program that this process becomes could gain.
pub(super) fn bound_capabilities() -> io::Result<()> {
    for capability in 0..64 as c_ulong {
        // SAFETY: takes a number only.
        let dropped = unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) };
        if dropped == -1 {
            let error = io::Error::last_os_error();
            // Past the last one that this kernel knows.
            if error.raw_os_error() == Some(libc::EINVAL) && capability > 0 {
                break;
            }
            return Err(error);
        }
    }
    Ok(())
}

/// Gives up every capability this process has.
pub(super) fn drop_capabilities() -> io::Result<()> {
    // The ambient set is emptied with the permitted one.
    let none = CapabilitySet::empty();
    rustix::thread::set_capabilities(
        None,
        CapabilitySets { effective: none, permitted: none, inheritable: none },
    )?;
    Ok(())
}

/// From here on every call of this process, and of all it becomes and starts, goes through `filter`.
pub(super) fn filter_calls(filter: &[libc::sock_filter]) -> io::Result<()> {
    let length = u16::try_from(filter.len()).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))?;
    let program = libc::sock_fprog { len: length, filter: filter.as_ptr().cast_mut() };
    // SAFETY: the kernel copies the program, which is as long as is said and is not written to.
    checked(unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            // The mitigation that a filter brings without this is for just-in-time compilers of foreign code, and
            // slows everything down.
            libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW,
            &raw const program,
        )
    })
}

fn checked(result: libc::c_long) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
