//! The sandbox of a run's commands: probes what the system supports and sets up the strongest one.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use fusee_tools::host_proxy::HostProxy;
use fusee_tools::sandbox::{
    self, CgroupLimits, LandlockSandbox, MovedFolder, Network, Policy, ResourceLimits, SandboxInputs,
    SandboxStrength,
};
use fusee_tools::{CommandSettings, ForkServer, Sandbox};

use super::{SandboxMode, SandboxOptions};

/// The sandbox of a run's commands, and everything needed to run them.
#[derive(Clone)]
pub struct ActiveSandbox {
    /// The requested mode.
    pub mode: SandboxMode,
    /// The requested permissions and limits.
    pub options: SandboxOptions,
    /// Name of the sandbox, as it appears in the events.
    pub state: &'static str,
    /// Whether commands may run without asking, because they are sandboxed or the user turned the sandbox
    /// off.
    pub preapproved: bool,
    /// How commands run.
    pub commands: CommandSettings,
    /// Why there is no sandbox although one was requested, or in what way it is weaker.
    pub problem: Option<String>,
}

impl ActiveSandbox {
    /// Sets up the requested sandbox. `commands` brings the fork server, the environment and the secrets;
    /// `own` are folders of the program itself that commands must not reach.
    pub async fn activate(
        mode: SandboxMode,
        options: SandboxOptions,
        workspace: &Path,
        commands: CommandSettings,
        own: &[PathBuf],
    ) -> Self {
        let (sandbox, limits) = (Sandbox::Off, options.limits);
        let commands = CommandSettings { sandbox, limits, ..commands };
        let none = Self { mode, options, state: "none", preapproved: false, commands, problem: None };
        if mode == SandboxMode::Off {
            let project_sandbox = match none.options.untrusted_flow {
                true => {
                    Some(strongest(workspace, &none.options, &none.commands, own).await.map(|(made, _)| made))
                }
                false => None,
            };
            let limits = ResourceLimits::default();
            let commands = CommandSettings { limits, project_sandbox, ..none.commands };
            return Self { state: "off", preapproved: true, commands, ..none };
        }
        match strongest(workspace, &none.options, &none.commands, own).await {
            Err(problem) => Self { problem: Some(problem), ..none },
            Ok((sandbox, problem)) => {
                let state = match (&sandbox, none.options.network) {
                    (Sandbox::Off, _) => "none",
                    (Sandbox::Namespaces(_), Network::Own) => "namespaces",
                    (Sandbox::Namespaces(_), Network::Hosts) => "namespaces, hosts by name",
                    (Sandbox::Namespaces(_), Network::Machine) => "namespaces, network allowed",
                    (Sandbox::Landlock(_), Network::Own | Network::Hosts) => "landlock",
                    (Sandbox::Landlock(_), Network::Machine) => "landlock, network allowed",
                };
                let commands = CommandSettings { sandbox, ..none.commands };
                Self { state, preapproved: true, commands, problem, ..none }
            }
        }
    }
}

/// The strongest sandbox available for a workspace and what it lacks compared to the namespace sandbox, or
/// why there is none.
async fn strongest(
    workspace: &Path,
    options: &SandboxOptions,
    commands: &CommandSettings,
    own: &[PathBuf],
) -> Result<(Sandbox, Option<String>), String> {
    let fork_server = commands.fork_server.as_ref().ok_or("the fork server is not running")?;
    let probed = sandbox::probe(fork_server).await;
    let problem = probed.missing_reason().unwrap_or_default();
    if probed.strength == SandboxStrength::None {
        return Err(problem);
    }
    let workspace = workspace.canonicalize().map_err(|error| error.to_string())?;
    let (environment, network) = (&commands.environment, options.network);
    let inputs = SandboxInputs { workspace: &workspace, environment, own, network };
    let plain = Policy::defaults(&inputs)
        .and_then(|policy| policy.with(&options.read, &options.write))
        .map_err(|error| error.to_string())?;
    let policy = plain
        .clone()
        .without_programs(&options.denied_programs, environment)
        .with_moved(&moved(&workspace, options));
    limit_all(fork_server.clone(), options.limits);
    let Some(promise) = probed.landlock_guarantees() else {
        let sandbox = match network {
            Network::Hosts => Sandbox::with_proxy(policy, HostProxy::new(options.hosts.clone())),
            Network::Own | Network::Machine => Sandbox::namespaces(policy),
        };
        return Ok((sandbox, None));
    };
    let mut landlock = LandlockSandbox::new(policy);
    // The Landlock sandbox reports what it cannot enforce when it is created: better now than at the first
    // command.
    let mut prepared = landlock.prepare().await;
    if prepared.is_err() && !options.denied_programs.is_empty() {
        // A directory of programs may be too large to grant all but a few of them.
        landlock = LandlockSandbox::new(plain);
        prepared = landlock.prepare().await;
    }
    prepared.map_err(|error| format!("{problem}; {error}"))?;
    let mut weaker = format!("namespaces are not available here ({problem}), using Landlock: {promise}");
    if network == Network::Hosts {
        weaker.push_str("; hosts cannot be allowed by name, so commands have no network");
    }
    Ok((Sandbox::Landlock(Arc::new(landlock)), Some(weaker)))
}

/// The folders that appear at another path: the workspace, if it is to, and those of the options.
fn moved(workspace: &Path, options: &SandboxOptions) -> Vec<MovedFolder> {
    let workspace = options.workspace_at.iter().map(|target| MovedFolder {
        source: workspace.to_owned(),
        target: target.clone(),
        writable: true,
    });
    workspace.chain(options.moved.iter().cloned()).collect()
}

/// Limits what all commands use together with a cgroup, where the system allows it. Runs concurrently with
/// the first steps because nothing depends on it; each command is limited individually anyway.
fn limit_all(fork_server: ForkServer, limits: ResourceLimits) {
    tokio::spawn(async move {
        let _ = fork_server.limit_all(CgroupLimits::protecting_machine(&limits)).await;
    });
}
