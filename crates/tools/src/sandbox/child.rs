//! The last moments of a process before it becomes the command: its streams, its place, its limits.
//!
//! It still shares its memory with the supervisor here, which stands still, and must leave that as it found it.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use super::Sandbox;
use super::spec::{Report, Spec};
use super::system::{self, Close};

/// The descriptors of a command, from its message.
pub(super) struct Descriptors {
    pub(super) control: OwnedFd,
    pub(super) output: OwnedFd,
    pub(super) directory: OwnedFd,
    /// Nothing to read if there is none.
    pub(super) input: Option<OwnedFd>,
}

/// Becomes the command. If that is impossible, says so on the control socket and returns what to exit with.
pub(super) fn become_command(spec: &Spec<'_>, descriptors: &Descriptors) -> i32 {
    let error = match prepare(spec.sandbox, descriptors) {
        Ok(()) => system::execute(c"/bin/sh", &[c"sh", c"-c", spec.command], &spec.environment),
        Err(error) => error,
    };
    let report = Report::NotStarted(error.raw_os_error().unwrap_or(0));
    let _ = rustix::net::send(&descriptors.control, &report.encode(), rustix::net::SendFlags::NOSIGNAL);
    127
}

fn prepare(sandbox: Sandbox, descriptors: &Descriptors) -> io::Result<()> {
    rustix::process::setsid()?;
    if let Some(input) = &descriptors.input {
        system::duplicate_to(input.as_fd(), 0)?;
    }
    system::duplicate_to(descriptors.output.as_fd(), 1)?;
    system::duplicate_to(descriptors.output.as_fd(), 2)?;
    rustix::process::fchdir(&descriptors.directory)?;
    // When memory runs out the command goes, not we. Where this cannot be written, the kernel chooses.
    let _ = std::fs::write("/proc/self/oom_score_adj", "500");
    confine(sandbox)?;
    // Every descriptor here is made to close at exec already; this is for one that was forgotten.
    let _ = system::close_from(3, Close::AtExec);
    system::reset_signals();
    Ok(())
}

/// Gives up what the command may not have. Nothing after this may need more than the command itself.
fn confine(sandbox: Sandbox) -> io::Result<()> {
    match sandbox {
        Sandbox::Off => Ok(()),
    }
}
