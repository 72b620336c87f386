//! `fusee mcp`.

use std::sync::Arc;

use clap::Args;
use fusee::engine::run::ExitStatus;

use super::launcher::{CommandLauncher, LaunchFlags};
use crate::config::flags::DirectoryFlag;
use crate::process::Process;
use crate::process::error::CliError;

/// Serve runs, templates and workflows as tools to an MCP client on stdin and stdout.
///
/// Other agents and editors start this command and speak the Model Context Protocol with it. Every template and
/// workflow is a separate tool; `fusee_run` runs a request in plain words. If a run takes longer than the client
/// waits, it continues, and `fusee_wait` returns its result. A run whose server was killed is continued by the next
/// server that is asked for it. The flags are the defaults of every run.
#[derive(Args)]
pub(crate) struct McpArgs {
    #[command(flatten)]
    directory: DirectoryFlag,
    #[command(flatten)]
    flags: LaunchFlags,
}

/// Runs the command until the client closes stdin.
pub(crate) async fn mcp(args: McpArgs, process: &Process) -> Result<ExitStatus, CliError> {
    let launcher = CommandLauncher::new(process, args.directory.directory.as_deref(), args.flags)?;
    let served = fusee_mcp_server::serve(Arc::new(launcher), tokio::io::stdin(), tokio::io::stdout()).await;
    served.map_err(|error| CliError::failed(error.to_string()))?;
    Ok(ExitStatus::Completed)
}
