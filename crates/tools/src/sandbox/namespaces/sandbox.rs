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

use crate::sandbox::ForkServer;
use crate::sandbox::command_handle::{CommandFailure, MAX_ANSWER};
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
    repositories: Option<Arc<RepositoryWatch>>,
    standing: OnceCell<BuiltSandbox>,
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
}

impl NamespaceSandbox {
    /// Creates a namespace sandbox with this policy. Nothing is set up before a command needs it.
    #[must_use]
    pub fn new(policy: Policy) -> Self {
        let repositories = policy.workspace().map(|root| Arc::new(RepositoryWatch::over(root.to_owned())));
        Self { policy, repositories, standing: OnceCell::new() }
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
        self.standing.get_or_try_init(|| ask_for(&self.policy, fork_server)).await
    }

    /// Protected paths that did not exist when the sandbox was created; none before that.
    pub(crate) fn absent_paths(&self) -> Vec<(&Path, CreatedPathAction)> {
        self.standing.get().map(|standing| self.missing_protected_paths(standing)).unwrap_or_default()
    }

    /// Protected paths that did not exist and have to be watched.
    pub(crate) fn missing_protected_paths<'r>(
        &'r self,
        standing: &BuiltSandbox,
    ) -> Vec<(&'r Path, CreatedPathAction)> {
        let guarded = standing.absent.iter().filter_map(|number| self.policy.guarded.get(*number));
        guarded.map(|guarded| (guarded.path.as_path(), guarded.made)).collect()
    }
}

impl BuiltSandbox {
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
        let NamespaceHandles { mounts, messages, network, ruleset } = &self.descriptors;
        [Some(mounts), Some(messages), network.as_ref(), ruleset.as_ref()]
            .into_iter()
            .flatten()
            .map(AsFd::as_fd)
    }
}

async fn ask_for(policy: &Policy, fork_server: &ForkServer) -> Result<BuiltSandbox, CommandFailure> {
    if policy.guarded.len() > protocol::MAX_GUARDED {
        let words = format!("the policy has more than {} protected paths", protocol::MAX_GUARDED);
        return Err(CommandFailure::NotConfined(words));
    }
    let message = protocol::encode_room(policy)
        .map_err(|error| CommandFailure::NotConfined(format!("the policy cannot be encoded: {error}")))?;
    let (answer, descriptors) = fork_server.ask(&message).await?;
    read_answer(policy, &answer, descriptors)
}

fn read_answer(
    policy: &Policy,
    answer: &[u8],
    descriptors: Vec<OwnedFd>,
) -> Result<BuiltSandbox, CommandFailure> {
    let mut descriptors = descriptors.into_iter();
    let first = (descriptors.next(), descriptors.next());
    let network = if policy.network == Network::Own { descriptors.next() } else { None };
    match (answer, first, descriptors.next()) {
        ([1, users, layers, absent @ ..], (Some(mounts), Some(messages)), ruleset)
            if network.is_some() == (policy.network == Network::Own)
                && ruleset.is_some() == (*layers == ConfinementLayers::Both as u8) =>
        {
            Ok(BuiltSandbox {
                descriptors: NamespaceHandles { mounts, messages, network, ruleset },
                users: if *users == 0 { UserNamespace::Machine } else { UserNamespace::Own },
                absent: absent.iter().map(|number| usize::from(*number)).collect(),
            })
        }
        ([0, words @ ..], ..) => {
            Err(CommandFailure::NotConfined(String::from_utf8_lossy(words).into_owned()))
        }
        _ => Err(CommandFailure::NotConfined("its setup process ended without an answer".to_owned())),
    }
}

/// Creates a namespace sandbox and answers with its descriptors. The calling process does nothing else
/// afterwards.
pub(crate) fn make(policy: &Policy, received: Vec<OwnedFd>) {
    let Some(control) = received.into_iter().next() else { return };
    let attempt = || -> Result<(NamespaceHandles, UserNamespace, Vec<usize>), SandboxError> {
        let (descriptors, users) = namespaces::leave(policy.network)?;
        let absent = rootfs::build(policy)?;
        let ruleset = sandbox::around_room(policy).map_err(SetupStep::Fence.failed())?;
        Ok((NamespaceHandles { ruleset, ..descriptors }, users, absent))
    };
    match attempt() {
        Ok((descriptors, users, absent)) => {
            let standing = BuiltSandbox { descriptors, users, absent };
            let mut answer = vec![1, u8::from(users == UserNamespace::Own), standing.layers() as u8];
            answer.extend(standing.absent.iter().filter_map(|number| u8::try_from(*number).ok()));
            let descriptors: Vec<BorrowedFd<'_>> = standing.descriptors().collect();
            let _ = send_with_descriptors(&control, &answer, &descriptors, SendFlags::DONTWAIT);
        }
        Err(fault) => {
            let mut words = vec![0];
            words.extend(fault.to_string().bytes().take(MAX_ANSWER - 1));
            let _ = send_with_descriptors(&control, &words, &[], SendFlags::DONTWAIT);
        }
    }
}
