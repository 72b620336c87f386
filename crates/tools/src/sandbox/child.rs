//! The child process up to its exec: streams, working directory, limits and confinement.
//!
//! The child shares the memory of the supervisor, which is suspended meanwhile, and must leave that memory
//! unchanged.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use super::enter;
use super::fault::Step;
use super::fence;
use super::namespaces::Doors;
use super::policy::Network;
use super::report::Report;
use super::room::Layers;
use super::spec::{Hold, Spec};
use super::system::{self, Close, Program};

/// The descriptors of a command, received with its message.
pub(super) struct Descriptors {
    pub(super) control: OwnedFd,
    pub(super) output: OwnedFd,
    pub(super) directory: OwnedFd,
    /// If there is none, standard input is empty.
    pub(super) input: Option<OwnedFd>,
    /// The namespaces of its namespace sandbox.
    pub(super) doors: Option<Doors>,
    /// The Landlock ruleset of its Landlock sandbox.
    pub(super) ruleset: Option<OwnedFd>,
}

impl Descriptors {
    /// Assigns the descriptors received with a command, in the order in which they are sent.
    pub(super) fn of(spec: &Spec<'_>, received: Vec<OwnedFd>) -> Option<Self> {
        let mut received = received.into_iter();
        let (control, output, directory) = (received.next()?, received.next()?, received.next()?);
        let doors = match &spec.hold {
            Hold::Free | Hold::Fence(_) => None,
            Hold::Room(entrance) => {
                let (mounts, messages) = (received.next()?, received.next()?);
                let network = match entrance.network {
                    Network::Own => Some(received.next()?),
                    Network::Machine => None,
                };
                let ruleset = match entrance.layers {
                    Layers::Both => Some(received.next()?),
                    Layers::Namespaces => None,
                };
                Some(Doors { mounts, messages, network, ruleset })
            }
        };
        let ruleset = match &spec.hold {
            Hold::Fence(_) => Some(received.next()?),
            Hold::Free | Hold::Room(_) => None,
        };
        Some(Self { control, output, directory, input: received.next(), doors, ruleset })
    }
}

/// Executes the command. On failure it reports the reason on the control socket and returns the exit code.
pub(super) fn become_command(spec: &Spec<'_>, descriptors: &Descriptors, shell: &Program<'_>) -> i32 {
    let bound = |()| spec.allowance.bind().map_err(|error| Report::not_started(&error));
    let held = |()| hold(spec, descriptors);
    let report = match prepare(spec, descriptors).and_then(bound).and_then(held) {
        Ok(()) => Report::not_started(&shell.execute()),
        Err(report) => report,
    };
    let _ = rustix::net::send(&descriptors.control, &report.encode(), rustix::net::SendFlags::NOSIGNAL);
    127
}

fn prepare(spec: &Spec<'_>, descriptors: &Descriptors) -> Result<(), Report> {
    match &spec.hold {
        Hold::Room(entrance) => enter::go_to(entrance.directory, descriptors.directory.as_fd())
            .map_err(|error| Report::not_confined(&Step::Directory.failed()(error)))?,
        Hold::Free | Hold::Fence(_) => rustix::process::fchdir(&descriptors.directory)
            .map_err(|error| Report::NotStarted(error.raw_os_error()))?,
    }
    take_streams(descriptors).map_err(|error| Report::not_started(&error))?;
    // Every descriptor is close-on-exec already; this covers one that was forgotten.
    let _ = system::close_from(3, Close::AtExec);
    system::hear_again();
    Ok(())
}

/// Applies the Landlock sandbox, if there is one. From here on this process can do no more than the command.
fn hold(spec: &Spec<'_>, descriptors: &Descriptors) -> Result<(), Report> {
    let Hold::Fence(fencing) = &spec.hold else { return Ok(()) };
    let missing = || Step::Fence.failed()(io::ErrorKind::NotFound.into());
    let ruleset = descriptors.ruleset.as_ref().ok_or_else(missing);
    ruleset
        .and_then(|ruleset| fence::hold(fencing, ruleset.as_fd()))
        .map_err(|fault| Report::not_confined(&fault))
}

fn take_streams(descriptors: &Descriptors) -> io::Result<()> {
    rustix::process::setsid()?;
    if let Some(input) = &descriptors.input {
        system::duplicate_to(input.as_fd(), 0)?;
    }
    system::duplicate_to(descriptors.output.as_fd(), 1)?;
    system::duplicate_to(descriptors.output.as_fd(), 2)
}
