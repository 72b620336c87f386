//! `fusee serve`: the web page and HTTP API, see the crate `fusee-serve`. This file reads flags and prints the URL.

use std::io::Read as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;

use clap::Args;
use fusee::engine::run::{ExitStatus, RunControl};
use fusee_serve::{ServeError, ServeOptions, Server, ServerHandle};
use tokio::signal::unix::{SignalKind, signal};

use super::launcher::{CommandLauncher, LaunchFlags};
use crate::config::flags::DirectoryFlag;
use crate::process::Process;
use crate::process::error::CliError;
use crate::process::stdio;

/// Bytes of a new token.
const TOKEN_BYTES: usize = 24;

/// Maximum number of bytes read from a token file.
const TOKEN_FILE_BYTES: u64 = 4096;

/// Serve the web page and HTTP API.
///
/// Prints the URL of the page, which contains a token, and serves until ctrl-c. The page shows every run of this
/// project live, asks for approvals, starts, stops and resumes runs, and compares them. Runs that
/// are active when the server stops can be resumed.
///
/// The server listens on 127.0.0.1 only. Programs send the token as `Authorization: Bearer TOKEN`;
/// /api/openapi.json describes the API, and /mcp answers MCP clients as `fusee mcp` does. The flags for model,
/// approval and limits apply to runs started from the page or by MCP clients.
#[derive(Args)]
pub(crate) struct ServeArgs {
    /// Port to listen on; 0 takes a free one
    #[arg(long, value_name = "N", default_value_t = 0)]
    port: u16,
    /// Open the page in the browser
    #[arg(long)]
    open: bool,
    /// Show runs, but do not start, answer or change anything
    #[arg(long)]
    read_only: bool,
    /// Read the token from FILE instead of creating a new one, so that pages stay signed in when the server restarts
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Accept requests for this host name too, such as that of a proxy
    #[arg(long, value_name = "HOST")]
    allow_host: Vec<String>,
    /// Address to listen on; access from other machines also needs --token-file and --allow-host
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    bind: IpAddr,
    #[command(flatten)]
    directory: DirectoryFlag,
    #[command(flatten)]
    flags: LaunchFlags,
}

/// Runs the command.
pub(crate) async fn serve(args: ServeArgs, process: &Process) -> Result<ExitStatus, CliError> {
    let launcher = CommandLauncher::new(process, args.directory.directory.as_deref(), args.flags)?;
    let (token, own_token) = match &args.token_file {
        Some(file) => (token_of(&process.environment.directory().join(file))?, true),
        None => (new_token()?, false),
    };
    let options = ServeOptions {
        address: SocketAddr::new(args.bind, args.port),
        token,
        own_token,
        allow_hosts: args.allow_host,
        read_only: args.read_only,
    };
    let launcher = Arc::new(launcher);
    let server = Server::bind(options, Arc::clone(&launcher) as _)?;
    #[cfg(feature = "mcp")]
    let server = server.with_mcp(fusee_mcp_server::router(launcher, fusee_serve::MCP_PATH));
    stdio::print(&format!("{}\n", server.url()))?;
    if args.open {
        open_in_browser(&server.url_once(&new_token()?));
    }
    stop_signal(server.run()).await
}

/// Serves the page in the background, on a free port.
pub(crate) fn background(
    directory: &Path,
    flags: LaunchFlags,
    process: &Process,
) -> Result<ServerHandle, CliError> {
    let launcher = CommandLauncher::new(process, Some(directory), flags)?;
    let options = ServeOptions {
        address: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0),
        token: new_token()?,
        own_token: false,
        allow_hosts: Vec::new(),
        read_only: false,
    };
    Ok(Server::bind(options, Arc::new(launcher))?.spawn())
}

/// Serves the page of a run beside its terminal, and opens it.
pub(crate) fn beside(
    run: RunControl,
    journal: &Path,
    directory: &Path,
    flags: LaunchFlags,
    process: &Process,
) -> Result<ServerHandle, CliError> {
    let server = background(directory, flags, process)?;
    let id = run.id().clone();
    server.add(run, journal);
    stdio::error(&format!("web page: {}\n", server.url_of(&id)));
    if process.environment.terminals().stderr {
        open_in_browser(&server.url_once(&id, &new_token()?));
    }
    Ok(server)
}

/// Serves until ctrl-c or SIGTERM.
async fn stop_signal(serving: impl Future<Output = ()>) -> Result<ExitStatus, CliError> {
    let failed = |error: std::io::Error| CliError::failed(format!("cannot wait for signals: {error}"));
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    tokio::select! {
        () = serving => {}
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    Ok(ExitStatus::Completed)
}

fn token_of(file: &Path) -> Result<String, CliError> {
    let failed = |error: std::io::Error| {
        CliError::usage(format!("cannot read the token file {}: {error}", file.display()))
    };
    let mut text = String::new();
    std::fs::File::open(file)
        .map_err(failed)?
        .take(TOKEN_FILE_BYTES)
        .read_to_string(&mut text)
        .map_err(failed)?;
    Ok(text.trim().to_owned())
}

/// A token that nobody can guess.
fn new_token() -> Result<String, CliError> {
    let mut bytes = [0; TOKEN_BYTES];
    std::fs::File::open("/dev/urandom")
        .and_then(|mut random| random.read_exact(&mut bytes))
        .map_err(|error| CliError::failed(format!("cannot make a token: {error}")))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Opens a URL in the user's browser. If that fails, the printed URL is there.
#[expect(clippy::disallowed_methods, reason = "the user's own browser, which is no command of a model")]
fn open_in_browser(url: &str) {
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let mut opening = std::process::Command::new(program);
    opening.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if let Err(error) = opening.spawn() {
        stdio::error(&format!("warning: cannot start {program}: {error}; open the URL above\n"));
    }
}

impl From<ServeError> for CliError {
    fn from(error: ServeError) -> Self {
        Self::usage(error.to_string())
    }
}
