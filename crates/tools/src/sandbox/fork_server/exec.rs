//! The child process up to its exec: streams, working directory, limits and confinement.
//!
//! The child shares the memory of the supervisor, which is suspended meanwhile, and must leave that memory
//! unchanged.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use crate::sandbox::error::SetupStep;
use crate::sandbox::fork_server::exit_report::ExitReport;
use crate::sandbox::fork_server::protocol::{CommandSpec, DecodedConfinement};
use crate::sandbox::landlock::sandbox;
use crate::sandbox::namespaces::NamespaceHandles;
use crate::sandbox::namespaces::join;
use crate::sandbox::namespaces::sandbox::ConfinementLayers;
use crate::sandbox::policy::Network;
use crate::sandbox::sys::namespaces;
use crate::sandbox::sys::process::{self, CloseRange, ExecProgram};

/// The descriptors of a command, received with its message.
pub(crate) struct Descriptors {
    pub(crate) control: OwnedFd,
    pub(crate) output: OwnedFd,
    pub(crate) directory: OwnedFd,
    /// If there is none, standard input is empty.
    pub(crate) input: Option<OwnedFd>,
    /// Standard error, if it is separate from the output. Only a command with an input has it.
    pub(crate) errors: Option<OwnedFd>,
    /// The namespaces of its namespace sandbox.
    pub(crate) handles: Option<NamespaceHandles>,
    /// The Landlock ruleset of its Landlock sandbox.
    pub(crate) ruleset: Option<OwnedFd>,
}

impl Descriptors {
    /// Assigns the descriptors received with a command, in the order in which they are sent.
    pub(crate) fn new(spec: &CommandSpec<'_>, received: Vec<OwnedFd>) -> Option<Self> {
        let mut received = received.into_iter();
        let (control, output, directory) = (received.next()?, received.next()?, received.next()?);
        let handles = match &spec.confinement {
            DecodedConfinement::Unsandboxed | DecodedConfinement::Landlock(_) => None,
            DecodedConfinement::Namespaces(entrance) => {
                let (mounts, ipc) = (received.next()?, received.next()?);
                let network = match entrance.network {
                    Network::Own | Network::Hosts => Some(received.next()?),
                    Network::Machine => None,
                };
                let ruleset = match entrance.layers {
                    ConfinementLayers::Both => Some(received.next()?),
                    ConfinementLayers::Namespaces => None,
                };
                Some(NamespaceHandles { mounts, ipc, network, ruleset })
            }
        };
        let ruleset = match &spec.confinement {
            DecodedConfinement::Landlock(_) => Some(received.next()?),
            DecodedConfinement::Unsandboxed | DecodedConfinement::Namespaces(_) => None,
        };
        let (input, errors) = (received.next(), received.next());
        Some(Self { control, output, directory, input, errors, handles, ruleset })
    }
}

/// Executes the command. On failure it reports the reason on the control socket and returns the exit code.
pub(crate) fn become_command(
    spec: &CommandSpec<'_>,
    descriptors: &Descriptors,
    shell: &ExecProgram<'_>,
) -> i32 {
    let bound = |()| spec.limits.apply().map_err(|error| ExitReport::not_started(&error));
    let held = |()| hold(spec, descriptors);
    let report = match prepare(spec, descriptors).and_then(bound).and_then(held) {
        Ok(()) => ExitReport::not_started(&shell.execute()),
        Err(report) => report,
    };
    let _ = rustix::net::send(&descriptors.control, &report.encode(), rustix::net::SendFlags::NOSIGNAL);
    127
}

fn prepare(spec: &CommandSpec<'_>, descriptors: &Descriptors) -> Result<(), ExitReport> {
    match &spec.confinement {
        DecodedConfinement::Namespaces(entrance) => join::go_to(entrance, descriptors.directory.as_fd())
            .map_err(|error| ExitReport::not_confined(&SetupStep::Directory.failed()(error)))?,
        DecodedConfinement::Unsandboxed | DecodedConfinement::Landlock(_) => {
            rustix::process::fchdir(&descriptors.directory)
                .map_err(|error| ExitReport::NotStarted(error.raw_os_error()))?
        }
    }
    take_streams(descriptors).map_err(|error| ExitReport::not_started(&error))?;
    // Every descriptor is close-on-exec already; this covers one that was forgotten.
    let _ = process::close_from(3, CloseRange::AtExec);
    process::restore_signals();
    Ok(())
}

/// Applies what confines a command in addition to what confines its supervisor. From here on this process can do no more than the command.
fn hold(spec: &CommandSpec<'_>, descriptors: &Descriptors) -> Result<(), ExitReport> {
    let confinement = match &spec.confinement {
        DecodedConfinement::Unsandboxed => return Ok(()),
        DecodedConfinement::Namespaces(_) => {
            // PID 1 has kept one, which the command must not have.
            return namespaces::drop_capabilities()
                .map_err(|error| ExitReport::not_confined(&SetupStep::Privileges.failed()(error)));
        }
        DecodedConfinement::Landlock(confinement) => confinement,
    };
    let missing = || SetupStep::Landlock.failed()(io::ErrorKind::NotFound.into());
    let ruleset = descriptors.ruleset.as_ref().ok_or_else(missing);
    ruleset
        .and_then(|ruleset| sandbox::hold(confinement, ruleset.as_fd()))
        .map_err(|fault| ExitReport::not_confined(&fault))
}

fn take_streams(descriptors: &Descriptors) -> io::Result<()> {
    rustix::process::setsid()?;
    if let Some(input) = &descriptors.input {
        process::duplicate_to(input.as_fd(), 0)?;
    }
    process::duplicate_to(descriptors.output.as_fd(), 1)?;
    process::duplicate_to(descriptors.errors.as_ref().unwrap_or(&descriptors.output).as_fd(), 2)
}
