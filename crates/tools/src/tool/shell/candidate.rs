//! Runs a command on candidate files without touching the workspace: in a copy that holds them, which is removed
//! afterwards. The copy is made again whenever the command runs, so an interrupted command can be repeated.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use rustix::fs::{Mode, OFlags};
use serde_json::Value;

use super::{CheckedCommand, CommandSettings, Shell, shell_tool};
use crate::sandbox::{CommandFailure, ForkServer, Policy, Sandbox};
use crate::tool::{
    CallContext, InterruptedOutcome, PreparedCall, RetrySafety, Tool, ToolDefinition, ToolOutput,
};
use crate::workspace_copy::{CopyKind, WorkspaceCopy};

/// Files of a candidate, and those that have to stay as they are.
#[derive(Clone, Debug, Default)]
pub struct CandidateFiles {
    /// New content by path.
    pub files: Vec<(String, String)>,
    /// Files whose content decides about the result, by path. A command that changes one fails.
    pub fixed: Vec<(String, Vec<u8>)>,
}

/// A `shell` tool whose commands see the candidate's files in the workspace, and change only a copy of it.
pub fn candidate_shell(settings: CommandSettings, candidate: CandidateFiles) -> Arc<dyn Tool> {
    Arc::new(CandidateShell { shell: shell_tool(settings), candidate })
}

/// The kind of copy that commands of these settings can run in; the error says why there is none.
pub async fn copy_kind(settings: &CommandSettings, workspace: &Path) -> Result<CopyKind, String> {
    let Some(fork_server) = &settings.fork_server else {
        return Err("commands cannot be run here".to_owned());
    };
    let sandbox =
        settings.sandbox_for(crate::tool::CommandSource::Project).map_err(|failure| failure.to_string())?;
    let mut problem = String::new();
    for kind in kinds(sandbox) {
        let root = workspace.to_owned();
        let made = tokio::task::spawn_blocking(move || WorkspaceCopy::create(&root, kind)).await;
        match made.map_err(std::io::Error::other).flatten() {
            Ok(copy) => match prepared(sandbox, &copy, workspace, fork_server).await {
                Ok(_) => return Ok(kind),
                Err(failure) => problem = failure.to_string(),
            },
            Err(error) => problem = error.to_string(),
        }
    }
    Err(problem)
}

/// Kinds of copies to try, best first.
fn kinds(sandbox: &Sandbox) -> impl Iterator<Item = CopyKind> + use<> {
    let overlay = matches!(sandbox, Sandbox::Namespaces(_)).then_some(CopyKind::Overlay);
    overlay.into_iter().chain([CopyKind::Files])
}

/// The sandbox of commands in a copy. A namespace sandbox shows the copy at the path of the workspace.
async fn prepared(
    sandbox: &Sandbox,
    copy: &WorkspaceCopy,
    workspace: &Path,
    fork_server: &ForkServer,
) -> Result<Sandbox, CommandFailure> {
    Ok(match sandbox {
        Sandbox::Off => Sandbox::Off,
        Sandbox::Namespaces(sandbox) => {
            let policy = Policy { substitute: Some(copy.substitute()), ..sandbox.policy().clone() };
            let sandbox = Sandbox::namespaces(policy);
            if let Sandbox::Namespaces(sandbox) = &sandbox {
                sandbox.prepare(fork_server).await?;
            }
            sandbox
        }
        Sandbox::Landlock(sandbox) => {
            let mut policy = sandbox.policy().clone();
            policy.write.retain(|path| path != workspace);
            policy.write.push(copy.root());
            policy.read.push(workspace.to_owned());
            Sandbox::landlock(policy)
        }
    })
}

struct CandidateShell {
    shell: Shell,
    candidate: CandidateFiles,
}

impl CandidateShell {
    /// Runs a command in a copy of this kind. The error says why that kind is not possible here.
    async fn run_in(
        &self,
        kind: CopyKind,
        plan: &CheckedCommand,
        context: &CallContext,
    ) -> Result<ToolOutput, String> {
        let workspace = context.workspace.root().to_owned();
        let sandbox =
            self.shell.settings.sandbox_for(context.limits.source).map_err(|failure| failure.to_string())?;
        let (candidate, root) = (self.candidate.clone(), workspace.clone());
        let made = tokio::task::spawn_blocking(move || {
            let copy = WorkspaceCopy::create(&root, kind)?;
            for (path, content) in &candidate.files {
                copy.write(path, content.as_bytes())?;
            }
            Ok(copy)
        });
        let copy = made.await.map_err(std::io::Error::other).flatten().map_err(|error| error.to_string())?;
        let sandbox = prepared(sandbox, &copy, &workspace, &plan.fork_server)
            .await
            .map_err(|failure| failure.to_string())?;
        let directory = directory(&sandbox, &copy, plan).map_err(|error| error.to_string())?;
        let settings = CommandSettings { sandbox, project_sandbox: None, ..self.shell.settings.clone() };
        let plan = CheckedCommand {
            directory,
            fork_server: plan.fork_server.clone(),
            command: plan.command.clone(),
            input: plan.input.clone(),
            ..*plan
        };
        let mut output = Box::pin(shell_tool(settings).wait_to_end(plan, context)).await;
        let changed = self.candidate.fixed.iter().find(|(path, content)| copy.differs(path, content));
        if let Some((path, _)) = changed {
            output.ok = false;
            output.content.push_str(&format!("\n[it changed {path}, so its result does not count]"));
        }
        // Removing a large copy would block other work.
        drop(tokio::task::spawn_blocking(move || drop(copy)).await);
        Ok(output)
    }
}

/// The directory in which a command runs.
fn directory(sandbox: &Sandbox, copy: &WorkspaceCopy, plan: &CheckedCommand) -> std::io::Result<OwnedFd> {
    match sandbox {
        Sandbox::Namespaces(_) => plan.directory.try_clone(),
        Sandbox::Off | Sandbox::Landlock(_) => {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            Ok(rustix::fs::open(copy.root(), flags, Mode::empty())?)
        }
    }
}

impl Tool for CandidateShell {
    fn definition(&self) -> &ToolDefinition {
        self.shell.definition()
    }

    fn repeat(&self) -> RetrySafety {
        self.shell.repeat()
    }

    fn prepare<'a>(
        &'a self,
        arguments: Value,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<PreparedCall, ToolOutput>> {
        self.shell.prepare(arguments, context)
    }

    fn perform<'a>(&'a self, prepared: PreparedCall, context: &'a CallContext) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move {
            let plan = match prepared.into_plan::<CheckedCommand>() {
                Ok(plan) => plan,
                Err(output) => return output,
            };
            if context.cancel.is_cancelled() {
                return ToolOutput::aborted("Cancelled before it began.");
            }
            let mut problem = String::new();
            let Ok(sandbox) = self.shell.settings.sandbox_for(context.limits.source) else {
                return ToolOutput::error("The command must not be run here.");
            };
            for kind in kinds(sandbox) {
                match self.run_in(kind, &plan, context).await {
                    Ok(output) => return output,
                    Err(error) => problem = error,
                }
            }
            ToolOutput::error(format!("The workspace could not be copied: {problem}."))
        })
    }

    fn settle<'a>(
        &'a self,
        arguments: &'a Value,
        intent: &'a Value,
        context: &'a CallContext,
    ) -> BoxFuture<'a, InterruptedOutcome> {
        self.shell.settle(arguments, intent, context)
    }
}
