//! The last moments of a process before it becomes the command: its streams, its place, its limits.
//!
//! It still shares its memory with the supervisor here, which stands still, and must leave that as it found it.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use super::enter::{self, Entrance};
use super::fault::Step;
use super::namespaces::Doors;
use super::policy::Network;
use super::report::Report;
use super::spec::Spec;
use super::system::{self, Close};

/// The descriptors of a command, from its message.
pub(super) struct Descriptors {
    pub(super) control: OwnedFd,
    pub(super) output: OwnedFd,
    pub(super) directory: OwnedFd,
    /// Nothing to read if there is none.
    pub(super) input: Option<OwnedFd>,
    /// Of the room it runs in.
    pub(super) doors: Option<Doors>,
}

impl Descriptors {
    /// The descriptors that came with a command, in the order they are sent in.
    pub(super) fn of(spec: &Spec<'_>, received: Vec<OwnedFd>) -> Option<Self> {
        let mut received = received.into_iter();
        let (control, output, directory) = (received.next()?, received.next()?, received.next()?);
        let doors = match &spec.entrance {
            None => None,
            Some(entrance) => {
                let (mounts, messages) = (received.next()?, received.next()?);
                let network = match entrance.network {
                    Network::Own => Some(received.next()?),
                    Network::Machine => None,
                };
                Some(Doors { mounts, messages, network })
            }
        };
        Some(Self { control, output, directory, input: received.next(), doors })
    }
}

/// Becomes the command. If that is impossible, says so on the control socket and returns what to exit with.
pub(super) fn become_command(spec: &Spec<'_>, descriptors: &Descriptors) -> i32 {
    let bound = |()| spec.allowance.bind().map_err(|error| Report::not_started(&error));
    let report = match prepare(spec.entrance.as_ref(), descriptors).and_then(bound) {
        Ok(()) => {
            let error = system::execute(c"/bin/sh", &[c"sh", c"-c", spec.command], &spec.environment);
            Report::not_started(&error)
        }
        Err(report) => report,
    };
    let _ = rustix::net::send(&descriptors.control, &report.encode(), rustix::net::SendFlags::NOSIGNAL);
    127
}

fn prepare(entrance: Option<&Entrance<'_>>, descriptors: &Descriptors) -> Result<(), Report> {
    match entrance {
        Some(entrance) => enter::go_to(entrance.directory, descriptors.directory.as_fd())
            .map_err(|error| Report::not_confined(&Step::Directory.failed()(error)))?,
        None => rustix::process::fchdir(&descriptors.directory)
            .map_err(|error| Report::NotStarted(error.raw_os_error()))?,
    }
    take_streams(descriptors).map_err(|error| Report::not_started(&error))?;
    // When memory runs out the command goes, not we. Where this cannot be written, the kernel chooses.
    let _ = std::fs::write("/proc/self/oom_score_adj", "500");
    // Every descriptor here is made to close at exec already; this is for one that was forgotten.
    let _ = system::close_from(3, Close::AtExec);
    system::reset_signals();
    Ok(())
}

fn take_streams(descriptors: &Descriptors) -> io::Result<()> {
    rustix::process::setsid()?;
    if let Some(input) = &descriptors.input {
        system::duplicate_to(input.as_fd(), 0)?;
    }
    system::duplicate_to(descriptors.output.as_fd(), 1)?;
    system::duplicate_to(descriptors.output.as_fd(), 2)
}
