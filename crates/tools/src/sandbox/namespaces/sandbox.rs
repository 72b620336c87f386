//! The namespace sandbox: the namespaces and the root file system that the commands of one run share.
//!
//! A process of the fork server creates it when the first command needs it, and it exists as long as its
//! namespace descriptors are open here. So a command pays for joining, not for building; files in `/tmp` and
//! servers on the loopback device are still there for the next command; and when the main process is gone,
//! for whatever reason, so is the sandbox.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use rustix::net::SendFlags;
use tokio::sync::OnceCell;
use tokio::task::AbortHandle;

use crate::host_proxy::HostProxy;
use crate::sandbox::ForkServer;
use crate::sandbox::command::CommandFailure;
use crate::sandbox::command_handle::MAX_ANSWER;
use crate::sandbox::error::{SandboxError, SetupStep};
use crate::sandbox::fork_server::protocol;
use crate::sandbox::fork_server::send_with_descriptors;
use crate::sandbox::landlock::sandbox;
use crate::sandbox::namespaces::rootfs;
use crate::sandbox::namespaces::{self, NamespaceHandles, UserNamespace};
use crate::sandbox::policy::{CreatedPathAction, Network, Policy};
use crate::sandbox::protected_paths::repository_watch::RepositoryWatch;

/// The namespaces and root file system of a run's commands, created when they are first needed.
#[derive(Debug)]
pub struct NamespaceSandbox {
    policy: Policy,
    /// Through which commands reach named hosts, if they may.
    proxy: Option<Arc<HostProxy>>,
    repositories: Option<Arc<RepositoryWatch>>,
    built: OnceCell<BuiltSandbox>,
}

/// The layers that confine commands in a namespace sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConfinementLayers {
    /// Namespaces only: the kernel has no Landlock.
    Namespaces = 0,
    /// Namespaces, and Landlock as a second layer on files.
    Both = 1,
}

/// A namespace sandbox that has been created.
#[derive(Debug)]
pub(crate) struct BuiltSandbox {
    descriptors: NamespaceHandles,
    users: UserNamespace,
    /// Protected paths that did not exist, by their index in the policy.
    absent: Vec<usize>,
    proxy: Option<ProxyTask>,
}

/// The proxy of a sandbox at work; it ends with the sandbox.
#[derive(Debug)]
struct ProxyTask {
    port: u16,
    task: AbortHandle,
}

impl Drop for ProxyTask {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl NamespaceSandbox {
    /// Creates a namespace sandbox with this policy. Nothing is set up before a command needs it.
    #[must_use]
    pub fn new(policy: Policy) -> Self {
        let repositories = policy.workspace().map(|root| Arc::new(RepositoryWatch::over(root.to_owned())));
        Self { policy, proxy: None, repositories, built: OnceCell::new() }
    }

    /// Lets commands reach hosts through a proxy; for a policy with [`Network::Hosts`].
    #[must_use]
    pub fn with_proxy(self, proxy: Arc<HostProxy>) -> Self {
        Self { proxy: Some(proxy), ..self }
    }

    /// The proxy through which commands reach named hosts.
    #[must_use]
    pub fn proxy(&self) -> Option<&Arc<HostProxy>> {
        self.proxy.as_ref()
    }

    /// Watches for repositories in the workspace.
    pub(crate) fn repositories(&self) -> Option<&Arc<RepositoryWatch>> {
        self.repositories.as_ref()
    }

    /// The policy it enforces.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Sets up the sandbox if it is not set up yet, so that the first command need not wait for it and a
    /// policy that cannot be enforced here fails before a command is run.
    pub async fn prepare(&self, fork_server: &ForkServer) -> Result<(), CommandFailure> {
        self.built(fork_server).await.map(drop)
    }

    /// The sandbox, set up if it is not yet. After a failure the next command tries again.
    pub(crate) async fn built(&self, fork_server: &ForkServer) -> Result<&BuiltSandbox, CommandFailure> {
        self.built.get_or_try_init(|| ask_for(&self.policy, self.proxy.as_ref(), fork_server)).await
    }

    /// Protected paths that did not exist when the sandbox was created; none before that.
    pub(crate) fn absent_paths(&self) -> Vec<(&Path, CreatedPathAction)> {
        self.built.get().map(|built| self.missing_protected_paths(built)).unwrap_or_default()
    }

    /// Protected paths that did not exist and have to be watched.
    pub(crate) fn missing_protected_paths<'r>(
        &'r self,
        built: &BuiltSandbox,
    ) -> Vec<(&'r Path, CreatedPathAction)> {
        let guarded = built.absent.iter().filter_map(|number| self.policy.guarded.get(*number));
        guarded.map(|guarded| (guarded.path.as_path(), guarded.on_create)).collect()
    }
}

impl BuiltSandbox {
    /// Variables that lead programs to the proxy.
    pub(crate) fn proxy_variables(&self) -> Vec<(String, String)> {
        let Some(ProxyTask { port, .. }) = &self.proxy else { return Vec::new() };
        let proxy = format!("http://127.0.0.1:{port}");
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let names = ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"];
        let own = ["no_proxy", "NO_PROXY"].map(|name| pair(name, "localhost,127.0.0.1,::1"));
        // Node uses these variables only if it is told to.
        let node = pair("NODE_USE_ENV_PROXY", "1");
        names.iter().map(|name| pair(name, &proxy)).chain(own).chain([node]).collect()
    }

    pub(crate) fn users(&self) -> UserNamespace {
        self.users
    }

    pub(crate) fn layers(&self) -> ConfinementLayers {
        if self.descriptors.ruleset.is_some() {
            ConfinementLayers::Both
        } else {
            ConfinementLayers::Namespaces
        }
    }

    pub(crate) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let NamespaceHandles { mounts, ipc, network, ruleset } = &self.descriptors;
        [Some(mounts), Some(ipc), network.as_ref(), ruleset.as_ref()].into_iter().flatten().map(AsFd::as_fd)
    }
}

async fn ask_for(
    policy: &Policy,
    proxy: Option<&Arc<HostProxy>>,
    fork_server: &ForkServer,
) -> Result<BuiltSandbox, CommandFailure> {
    if policy.guarded.len() > protocol::MAX_GUARDED {
        let words = format!("the policy has more than {} protected paths", protocol::MAX_GUARDED);
        return Err(CommandFailure::NotConfined(words));
    }
    let message = protocol::encode_create_namespaces(policy)
        .map_err(|error| CommandFailure::NotConfined(format!("the policy cannot be encoded: {error}")))?;
    let (answer, descriptors) = fork_server.ask(&message).await?;
    let (built, listener) = read_answer(policy, &answer, descriptors)?;
    let proxy = match (proxy, listener) {
        (Some(proxy), Some(listener)) => Some(ProxyTask::start(Arc::clone(proxy), listener)?),
        _ => None,
    };
    Ok(BuiltSandbox { proxy, ..built })
}

impl ProxyTask {
    fn start(proxy: Arc<HostProxy>, listener: OwnedFd) -> Result<Self, CommandFailure> {
        let listener = std::net::TcpListener::from(listener);
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        let listener = tokio::net::TcpListener::from_std(listener)?;
        Ok(Self { port, task: tokio::spawn(proxy.serve(listener)).abort_handle() })
    }
}

fn read_answer(
    policy: &Policy,
    answer: &[u8],
    descriptors: Vec<OwnedFd>,
) -> Result<(BuiltSandbox, Option<OwnedFd>), CommandFailure> {
    let mut descriptors = descriptors.into_iter();
    let first = (descriptors.next(), descriptors.next());
    let mut next = |expected: bool| if expected { descriptors.next() } else { None };
    let network = next(policy.network.is_own());
    let has_ruleset = answer.get(2) == Some(&(ConfinementLayers::Both as u8));
    let (ruleset, listener) = (next(has_ruleset), next(policy.network == Network::Hosts));
    match (answer, first) {
        ([1, users, _, absent @ ..], (Some(mounts), Some(ipc)))
            if network.is_some() == policy.network.is_own()
                && ruleset.is_some() == has_ruleset
                && listener.is_some() == (policy.network == Network::Hosts) =>
        {
            let built = BuiltSandbox {
                descriptors: NamespaceHandles { mounts, ipc, network, ruleset },
                users: if *users == 0 { UserNamespace::Machine } else { UserNamespace::Own },
                absent: absent.iter().map(|number| usize::from(*number)).collect(),
                proxy: None,
            };
            Ok((built, listener))
        }
        ([0, words @ ..], ..) => {
            Err(CommandFailure::NotConfined(String::from_utf8_lossy(words).into_owned()))
        }
        _ => Err(CommandFailure::NotConfined("the setup process exited without replying".to_owned())),
    }
}

/// Creates a namespace sandbox and answers with its descriptors. The calling process does nothing else
/// afterwards.
pub(crate) fn make(policy: &Policy, received: Vec<OwnedFd>) {
    let Some(control) = received.into_iter().next() else { return };
    let attempt = || -> Result<(BuiltSandbox, Option<OwnedFd>), SandboxError> {
        let (descriptors, users, listener) = namespaces::enter_new_namespaces(policy.network)?;
        let absent = rootfs::build(policy)?;
        let ruleset = sandbox::namespace_ruleset(policy).map_err(SetupStep::Landlock.failed())?;
        let descriptors = NamespaceHandles { ruleset, ..descriptors };
        Ok((BuiltSandbox { descriptors, users, absent, proxy: None }, listener))
    };
    match attempt() {
        Ok((built, listener)) => {
            let users = u8::from(built.users == UserNamespace::Own);
            let mut answer = vec![1, users, built.layers() as u8];
            answer.extend(built.absent.iter().filter_map(|number| u8::try_from(*number).ok()));
            let listener = listener.as_ref().map(AsFd::as_fd);
            let descriptors: Vec<BorrowedFd<'_>> = built.descriptors().chain(listener).collect();
            let _ = send_with_descriptors(&control, &answer, &descriptors, SendFlags::DONTWAIT);
        }
        Err(fault) => {
            let mut words = vec![0];
            words.extend(fault.to_string().bytes().take(MAX_ANSWER - 1));
            let _ = send_with_descriptors(&control, &words, &[], SendFlags::DONTWAIT);
        }
    }
}
