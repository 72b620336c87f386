//! Commands on systems other than Linux: each is a process group, without a sandbox.
//!
//! [`probe`] reports that there is none, so each command needs approval. The group is killed when the command has
//! ended or is stopped. What left its group keeps running, and so does the command if this process is killed; each
//! process has its limits of CPU time and file size, but nothing limits a command as a whole, and no path is protected.

use std::fs::File;
use std::future::Future;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::pin::pin;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::process::{Pid, Resource, Rlimit, Signal};
use tokio::net::unix::pipe;

use super::command::{CommandEnd, CommandFailure, CommandRequest, CommandStreams, FinishedCommand};
use super::limits::CgroupLimits;
use super::probe::{SandboxLayer, SandboxProbe, SandboxStrength};
use super::protected_paths::report::ProtectionReport;
use super::{Policy, Sandbox};
use crate::host_proxy::HostProxy;

const NO_SANDBOX: &str =
    "the sandbox needs Linux; use a Linux virtual machine or container to confine commands";

/// Size of the read buffer for output, in bytes.
const READ_BUFFER: usize = 16 * 1024;

/// Why commands cannot be started: never here.
#[derive(Debug, thiserror::Error)]
#[error("cannot start commands")]
pub struct ForkServerError(#[from] io::Error);

/// Starts commands. On Linux this is a handle to a process of its own.
#[derive(Clone, Debug)]
pub struct ForkServer(());

/// Makes a [`ForkServer`]. On Linux it must be called first in `main`.
pub fn init() -> Result<ForkServer, ForkServerError> {
    Ok(ForkServer(()))
}

/// Raises the soft limit on open files to the hard limit, where the system allows it.
pub fn setup_process() {
    let files = rustix::process::getrlimit(Resource::Nofile);
    let raised = Rlimit { current: files.maximum, maximum: files.maximum };
    // If this is refused, the limit stays as it was.
    let _ = rustix::process::setrlimit(Resource::Nofile, raised);
}

/// Reports that nothing here can confine commands.
pub async fn probe(_fork_server: &ForkServer) -> SandboxProbe {
    let missing = Some(NO_SANDBOX.to_owned());
    let layer = SandboxLayer { name: "sandbox", does: "confines commands", missing };
    SandboxProbe { strength: SandboxStrength::None, layers: vec![layer] }
}

impl ForkServer {
    /// Limits nothing: the error says why.
    pub async fn limit_all(&self, _bounds: CgroupLimits) -> Result<&str, &str> {
        Err("only Linux has cgroups")
    }

    /// PID of the process that starts commands, which is this one.
    #[must_use]
    pub fn process_id(&self) -> i32 {
        std::process::id().cast_signed()
    }

    pub(super) async fn run_watched(
        &self,
        request: CommandRequest<'_>,
        streams: CommandStreams,
        mut output: impl FnMut(&[u8]),
        stop: impl Future<Output = ()>,
    ) -> Result<FinishedCommand, CommandFailure> {
        let (reader, writer) = io::pipe()?;
        let (mut child, group) = start(request, streams, writer)?;
        let reader = pipe::Receiver::from_owned_fd(reader.into())?;
        let mut exit = tokio::task::spawn_blocking(move || child.wait());
        let (mut stop, mut stopped, mut is_open) = (pin!(stop), false, true);
        let mut buffer = vec![0u8; READ_BUFFER];
        let status = loop {
            tokio::select! {
                ready = reader.readable(), if is_open => {
                    ready?;
                    is_open = read(&reader, &mut buffer, &mut output)? != Some(0);
                }
                exit = &mut exit => break exit.map_err(io::Error::other)??,
                () = &mut stop, if !stopped => {
                    stopped = true;
                    group.kill();
                }
            }
        };
        let ended = u32::from(group.kill());
        // What was written before the end is still in the pipe, even if a process that left the group holds it open.
        while matches!(read(&reader, &mut buffer, &mut output)?, Some(1..)) {}
        let protection = ProtectionReport::default();
        Ok(FinishedCommand {
            ending: ending(status),
            stopped,
            killed_leftovers: ended,
            unkillable: 0,
            protection,
            exceeded: None,
        })
    }
}

/// Starts a command in a process group of its own.
fn start(
    request: CommandRequest<'_>,
    streams: CommandStreams,
    output: io::PipeWriter,
) -> Result<(Child, ProcessGroup), CommandFailure> {
    if !matches!(request.sandbox, Sandbox::Off) {
        return Err(CommandFailure::NotConfined(NO_SANDBOX.to_owned()));
    }
    let input = match (streams.input, request.input) {
        (Some(input), _) => Stdio::from(input),
        (None, Some(input)) => Stdio::from(input_with(input)?),
        (None, None) => Stdio::null(),
    };
    let errors = match streams.errors {
        Some(errors) => Stdio::from(errors),
        None => Stdio::from(output.try_clone()?),
    };
    let (directory, limits) = (request.directory, request.limits);
    #[expect(clippy::disallowed_methods, reason = "this is where commands are started")]
    let mut command = Command::new("/bin/sh");
    let variables = request.environment.variables();
    command.arg("-c").arg(request.command).env_clear().envs(variables).process_group(0);
    command.stdin(input).stdout(output).stderr(errors);
    let prepare = move || {
        rustix::process::fchdir(&directory)?;
        limits.apply()
    };
    #[expect(unsafe_code, reason = "the directory is entered between fork and exec")]
    // SAFETY: `prepare` makes system calls only; it neither allocates nor takes locks.
    unsafe {
        command.pre_exec(prepare)
    };
    let child = command.spawn().map_err(CommandFailure::NotStarted)?;
    let group = ProcessGroup(Pid::from_child(&child));
    Ok((child, group))
}

/// The processes of a command; killed when dropped.
struct ProcessGroup(Pid);

impl ProcessGroup {
    /// Kills what is left. Returns whether there was anything.
    fn kill(&self) -> bool {
        rustix::process::kill_process_group(self.0, Signal::KILL).is_ok()
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Reads once; `None` if nothing is available, and 0 at the end.
fn read(
    reader: &pipe::Receiver,
    buffer: &mut [u8],
    output: &mut impl FnMut(&[u8]),
) -> io::Result<Option<usize>> {
    match reader.try_read(buffer) {
        Ok(length) => {
            output(&buffer[..length]);
            Ok(Some(length))
        }
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error),
    }
}

fn ending(status: ExitStatus) -> CommandEnd {
    match status.code() {
        Some(code) => CommandEnd::Exited(code),
        None => CommandEnd::Signalled(status.signal().unwrap_or_default()),
    }
}

/// A file without a name that holds `input`. Unlike a pipe it takes everything at once and needs no writer.
pub(super) fn input_with(input: &[u8]) -> io::Result<OwnedFd> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("fusee-input-{}-{number}", std::process::id()));
    let mut file = File::options().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
    std::fs::remove_file(&path)?;
    io::Write::write_all(&mut file, input)?;
    io::Seek::rewind(&mut file)?;
    Ok(file.into())
}

/// Stands for the namespace sandbox of Linux. A command in it is refused.
#[derive(Debug)]
pub struct NamespaceSandbox {
    policy: Policy,
    proxy: Option<Arc<HostProxy>>,
}

impl NamespaceSandbox {
    /// Keeps the policy.
    #[must_use]
    pub fn new(policy: Policy) -> Self {
        Self { policy, proxy: None }
    }

    /// Keeps the proxy.
    #[must_use]
    pub fn with_proxy(self, proxy: Arc<HostProxy>) -> Self {
        Self { proxy: Some(proxy), ..self }
    }

    /// The proxy it was made with.
    #[must_use]
    pub fn proxy(&self) -> Option<&Arc<HostProxy>> {
        self.proxy.as_ref()
    }

    /// The policy it was made with.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Fails, because there is no such sandbox here.
    pub async fn prepare(&self, _fork_server: &ForkServer) -> Result<(), CommandFailure> {
        Err(CommandFailure::NotConfined(NO_SANDBOX.to_owned()))
    }
}

/// Stands for the Landlock sandbox of Linux. A command in it is refused.
#[derive(Debug)]
pub struct LandlockSandbox {
    policy: Policy,
}

impl LandlockSandbox {
    /// Keeps the policy.
    #[must_use]
    pub fn new(policy: Policy) -> Self {
        Self { policy }
    }

    /// The policy it was made with.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Fails, because there is no such sandbox here.
    pub async fn prepare(&self) -> Result<(), CommandFailure> {
        Err(CommandFailure::NotConfined(NO_SANDBOX.to_owned()))
    }
}
