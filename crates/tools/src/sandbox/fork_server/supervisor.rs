//! The supervisor: a process that starts a command, waits for it and leaves none of its processes behind.
//!
//! Supervision ends in one of three ways: the command ended, its end was requested on the control socket, or
//! the peer of that socket is gone. The last one is how the death of the main process looks from here,
//! whatever its cause.
//!
//! In a namespace sandbox all of this is done by a second process, PID 1 of the command's own PID namespace
//! (`join`).

use std::cell::Cell;
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};
use rustix::process::{Pid, WaitOptions, WaitStatus};

use crate::sandbox::CommandEnd;
use crate::sandbox::error::SetupStep;
use crate::sandbox::fork_server::exec::{self, Descriptors};
use crate::sandbox::fork_server::exit_report::ExitReport;
use crate::sandbox::fork_server::protocol::{CommandSpec, DecodedConfinement};
use crate::sandbox::fork_server::reap::{self, ReapResult};
use crate::sandbox::fork_server::usage::UsageSampler;
use crate::sandbox::limits::ExceededLimit;
use crate::sandbox::namespaces::join::{self, JoinRequest};
use crate::sandbox::protected_paths::report::ProtectionReport;
use crate::sandbox::protected_paths::settings_backup::SettingsBackup;
use crate::sandbox::protected_paths::{self, Watch};
use crate::sandbox::sys::process::{self, ExecProgram};

/// Whether a supervisor is in the state it had before a command, and so can take another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SupervisorState {
    Reusable,
    Spent,
}

/// Refuses a command because the fork server is gone.
pub(crate) fn decline(received: Vec<OwnedFd>) {
    if let Some(control) = received.first() {
        send_report(control, &ExitReport::NotStarted(Errno::OWNERDEAD.raw_os_error()));
    }
}

/// Runs a command from its start to the end of its last descendant.
///
/// `started` is called once the command runs. `freed` is called when the supervisor can take the next
/// command, just before the end of this one is reported: the next command may be sent as soon as the report
/// arrives.
pub(crate) fn supervise(
    spec: &CommandSpec<'_>,
    descriptors: Descriptors,
    watch: &OwnedFd,
    started: impl FnOnce(),
    freed: impl FnOnce(),
) -> SupervisorState {
    if hung_up(&descriptors.control) {
        return SupervisorState::Reusable;
    }
    let unguarded = Watch::over(Vec::new());
    match &spec.confinement {
        DecodedConfinement::Unsandboxed => {
            run_command(spec, descriptors, watch, &unguarded, started, ProtectionReport::default, freed)
        }
        DecodedConfinement::Namespaces(entrance) => {
            supervise_in_namespaces(spec, entrance, descriptors, watch, started);
            // This process is now in the sandbox's namespaces and cannot leave them.
            SupervisorState::Spent
        }
        DecodedConfinement::Landlock(confinement) => match SettingsBackup::create(&confinement.guarded) {
            Ok(kept) => run_command(spec, descriptors, watch, &unguarded, started, || kept.restore(), freed),
            Err(error) => {
                let fault = SetupStep::BackUpSettings.failed()(error);
                send_report(&descriptors.control, &ExitReport::not_confined(&fault));
                SupervisorState::Reusable
            }
        },
    }
}

/// Like [`supervise`], in a namespace sandbox: PID 1 of the command's PID namespace does the rest.
fn supervise_in_namespaces(
    spec: &CommandSpec<'_>,
    entrance: &JoinRequest<'_>,
    descriptors: Descriptors,
    watch: &OwnedFd,
    started: impl FnOnce(),
) {
    let joined = join::join(&descriptors, entrance);
    // Called here, in the process that the fork server knows by its PID.
    started();
    if let Err(fault) = joined {
        return send_report(&descriptors.control, &ExitReport::not_confined(&fault));
    }
    let mut taken_along = Some(descriptors);
    let first = process::exec_in_child(|| {
        let Some(descriptors) = taken_along.take() else { return 1 };
        match join::set_up_pid_one(entrance, descriptors.handles.as_ref()) {
            Ok(absent) => {
                let guards = Watch::over(absent);
                let after = || guards.revert_at_end(&protected_paths::is_pinned);
                run_command(spec, descriptors, watch, &guards, || {}, after, || {});
            }
            Err(fault) => send_report(&descriptors.control, &ExitReport::not_confined(&fault)),
        }
        0
    });
    match first {
        // PID 1 has ended, and with it everything in its namespace.
        Ok(first) => drop(rustix::process::waitpid(Some(first), WaitOptions::empty())),
        Err(error) => {
            if let Some(descriptors) = taken_along {
                send_report(&descriptors.control, &ExitReport::not_started(&error));
            }
        }
    }
}

/// Starts a command, waits for it, kills what it leaves behind and reports the result. `after` is called when
/// none of its processes are left.
fn run_command(
    spec: &CommandSpec<'_>,
    descriptors: Descriptors,
    watch: &OwnedFd,
    guards: &Watch<'_>,
    started: impl FnOnce(),
    after: impl FnOnce() -> ProtectionReport,
    freed: impl FnOnce(),
) -> SupervisorState {
    let shell = ExecProgram::new(c"/bin/sh", &[c"sh", c"-c", spec.command], &spec.environment);
    let start = process::start(|| exec::become_command(spec, &descriptors, &shell));
    started();
    let Descriptors { control, output, directory, input, errors, handles, ruleset } = descriptors;
    // The reader sees end-of-file on the output only when the command's own copies are the last ones.
    drop((output, directory, input, errors, handles, ruleset));
    let command = match start {
        Ok(command) => command,
        Err(error) => {
            send_report(&control, &ExitReport::not_started(&error));
            return SupervisorState::Spent;
        }
    };

    let status: Cell<Option<WaitStatus>> = Cell::new(None);
    let mut note = |pid: Pid, ended: WaitStatus| {
        if pid == command {
            status.set(Some(ended));
        }
    };
    let mut swept = ReapResult::default();
    let mut meanwhile = ProtectionReport::default();
    let mut counter = UsageSampler::new(&spec.limits);
    let end = wait_for_end(command, &control, watch, guards, counter.as_mut(), &mut meanwhile, &mut note);
    if end != WaitEnd::Whole {
        if end != WaitEnd::Left {
            // All at once: a process that forks as fast as it can keeps forking while the sweep lists
            // children.
            process::kill_namespace_processes();
        }
        let ended_by_itself = status.get().is_some();
        swept = reap::end_children(watch, &[], &mut note);
        // The command itself does not count as a leftover process.
        swept.killed_leftovers = swept.killed_leftovers.saturating_sub(u32::from(!ended_by_itself));
    }
    let ending = match status.get().map(|status| (status.exit_status(), status.terminating_signal())) {
        Some((Some(code), _)) => CommandEnd::Exited(code),
        Some((None, signal)) => CommandEnd::Signalled(signal.unwrap_or(0)),
        // It could not be killed; `swept.unkillable` counts it.
        None => CommandEnd::Signalled(0),
    };
    let protection = meanwhile.followed_by(after());
    let exceeded = if let WaitEnd::Exceeded(what) = end { Some(what) } else { None };
    if swept.unkillable == 0 {
        freed();
    }
    let (killed_leftovers, unkillable) = (swept.killed_leftovers, swept.unkillable);
    send_report(&control, &ExitReport::Ended { ending, killed_leftovers, unkillable, protection, exceeded });
    if swept.unkillable == 0 { SupervisorState::Reusable } else { SupervisorState::Spent }
}

/// Why waiting for a command stopped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WaitEnd {
    /// The command has ended and left no processes.
    Whole,
    /// The command has ended and left processes running.
    Left,
    /// The end of the command was requested, or the main process is gone.
    Asked,
    /// The command exceeded this limit.
    Exceeded(ExceededLimit),
}

/// Waits until the command has ended or has to be killed.
fn wait_for_end(
    command: Pid,
    control: &OwnedFd,
    watch: &OwnedFd,
    guards: &Watch<'_>,
    mut counter: Option<&mut UsageSampler<'_>>,
    meanwhile: &mut ProtectionReport,
    note: &mut impl FnMut(Pid, WaitStatus),
) -> WaitEnd {
    loop {
        let mut ended = false;
        let any = reap::reap(|pid, status| {
            ended |= pid == command;
            note(pid, status);
        });
        if ended || !any {
            return if any { WaitEnd::Left } else { WaitEnd::Whole };
        }
        if let Some(what) = counter.as_mut().and_then(|counter| counter.measure()) {
            return WaitEnd::Exceeded(what);
        }
        let rest = counter.as_ref().map(|counter| Timespec::try_from(counter.rest()).unwrap_or_default());
        let guarded = guards.readable_fd().unwrap_or(watch);
        let mut events = [watch, control, guarded].map(|descriptor| PollFd::new(descriptor, PollFlags::IN));
        if poll(&mut events, rest.as_ref()).is_err() {
            continue;
        }
        if !events[1].revents().is_empty() {
            // Read it: closing a socket with unread data would discard the report.
            let _ = rustix::net::recv(control, &mut [0u8; 8][..], RecvFlags::DONTWAIT);
            return WaitEnd::Asked;
        }
        if guards.readable_fd().is_some() && !events[2].revents().is_empty() {
            guards.undo(meanwhile);
        }
        reap::drain(watch);
    }
}

/// Whether the peer has closed the control socket.
fn hung_up(control: &OwnedFd) -> bool {
    let mut byte = [0u8; 1];
    matches!(rustix::net::recv(control, &mut byte[..], RecvFlags::DONTWAIT | RecvFlags::PEEK), Ok((_, 0)))
}

fn send_report(control: &OwnedFd, report: &ExitReport) {
    // If the peer is gone, the report is not needed.
    let _ = rustix::net::send(control.as_fd(), &report.encode(), SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
}
