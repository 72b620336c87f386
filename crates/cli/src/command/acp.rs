//! `fusee acp`.

use std::sync::Arc;

use clap::Args;
use fusee::engine::run::ExitStatus;

use super::launcher::{CommandLauncher, LaunchFlags};
use crate::config::flags::DirectoryFlag;
use crate::process::Process;
use crate::process::error::CliError;

/// Serve as an agent for an editor over the Agent Client Protocol, on stdin and stdout.
///
/// Editors such as Zed, the JetBrains IDEs, Neovim and Emacs start this command. Each session works in the directory
/// that the editor names. A session can be loaded again, even by another process: its whole conversation is replayed
/// from the journal, and work interrupted by a crash is resumed. The flags are the defaults of every session.
#[derive(Args)]
pub(crate) struct AcpArgs {
    #[command(flatten)]
    directory: DirectoryFlag,
    #[command(flatten)]
    flags: LaunchFlags,
}

/// Runs the command until the editor closes stdin.
pub(crate) async fn acp(args: AcpArgs, process: &Process) -> Result<ExitStatus, CliError> {
    let launcher = CommandLauncher::new(process, args.directory.directory.as_deref(), args.flags)?;
    let served = fusee_acp::serve(Arc::new(launcher), tokio::io::stdin(), tokio::io::stdout()).await;
    served.map_err(|error| CliError::failed(error.to_string()))?;
    Ok(ExitStatus::Completed)
}
