//! `fusee mcp-login`.

use std::time::Duration;

use clap::Args;
use fusee::engine::run::ExitStatus;
use fusee::engine::text::suggest;
use fusee::engine::tools::mcp::Login;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use crate::config::flags::DirectoryFlag;
use crate::config::{Config, McpTransport};
use crate::process::Process;
use crate::process::error::CliError;
use crate::process::stdio;
use crate::project::{Project, mcp_servers};

/// How long the user may take to log in.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(600);
/// How long a browser may take to send its request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum bytes of a browser's request.
const MAX_REQUEST: usize = 16 << 10;

const PATH: &str = "/callback";

/// Log in to an MCP server (OAuth).
///
/// For a server with a `url` that answers with 401. The command prints an address to open in a browser; after the login
/// the browser is redirected to this command. The token is stored in the state directory, readable only by you, is sent
/// only to this URL, and is renewed when it expires.
#[derive(Args)]
pub(crate) struct McpLoginArgs {
    /// Name of the server: [mcp.NAME] in the configuration
    name: String,
    /// Delete the token instead
    #[arg(long)]
    remove: bool,
    #[command(flatten)]
    directory: DirectoryFlag,
}

/// Runs the command.
pub(crate) async fn login(args: &McpLoginArgs, process: &Process) -> Result<ExitStatus, CliError> {
    let project = Project::find(args.directory.directory.as_deref(), &process.environment)?;
    let config = Config::gather(Some(&project.config_file()), &process.environment, Vec::new())?;
    let name = &args.name;
    let known = || config.mcp().iter().map(|entry| entry.name.as_str());
    let Some(entry) = config.mcp().iter().find(|entry| entry.name == *name) else {
        let hint = suggest::did_you_mean(name, known()).map(|hint| format!("; {hint}")).unwrap_or_default();
        return Err(CliError::usage(format!("no MCP server `{name}` is configured{hint}")));
    };
    let McpTransport::Address { url, login: settings, .. } = &entry.reach else {
        return Err(CliError::usage(format!(
            "the MCP server `{name}` is a program; only servers with a `url` have a login"
        )));
    };
    let Some(file) = mcp_servers::login_file(entry, process) else {
        return Err(CliError::failed("there is no state directory to keep the token in"));
    };
    if args.remove {
        let words = match std::fs::remove_file(&file) {
            Ok(()) => "The token is deleted.",
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => "There was no token.",
            Err(error) => return Err(CliError::failed(format!("{}: {error}", file.display()))),
        };
        stdio::print(&format!("{words}\n"))?;
        return Ok(ExitStatus::Completed);
    }
    let client = mcp_servers::http_client(url, process).map_err(CliError::failed)?;
    let unserved = |error: std::io::Error| CliError::failed(format!("no address for the browser: {error}"));
    let port = settings.redirect_port.unwrap_or_default();
    let listener = TcpListener::bind(("127.0.0.1", port)).await.map_err(unserved)?;
    let origin = format!("http://{}", listener.local_addr().map_err(unserved)?);
    let failed = |error: fusee::engine::tools::mcp::LoginError| {
        CliError::failed(format!("no login at `{name}`: {error}"))
    };
    let registered = mcp_servers::registered_client(settings, process);
    let redirect = format!("{origin}{PATH}");
    let login = Login::start(url, &client, &file, &redirect, registered.as_ref());
    let login = login.await.map_err(failed)?;
    stdio::error("Open this address in a browser to log in:\n");
    stdio::print(&format!("{}\n", login.address()))?;
    let Ok(answered) = timeout(LOGIN_TIMEOUT, callback(&listener)).await else {
        return Err(CliError::failed(format!("no login within {} s", LOGIN_TIMEOUT.as_secs())));
    };
    let (path, browser) = answered.map_err(unserved)?;
    let finished = login.finish(&format!("{origin}{path}")).await;
    let words =
        if finished.is_ok() { "You are logged in and can close this page." } else { "The login failed." };
    respond(browser, "200 OK", words).await;
    finished.map_err(failed)?;
    stdio::print(&format!("Logged in at `{name}`.\n"))?;
    Ok(ExitStatus::Completed)
}

/// Waits until a browser requests the address of the login; returns the path with its query.
async fn callback(listener: &TcpListener) -> std::io::Result<(String, TcpStream)> {
    loop {
        let (mut browser, _) = listener.accept().await?;
        let Ok(Some(path)) = timeout(REQUEST_TIMEOUT, requested(&mut browser)).await else { continue };
        if path.split('?').next() == Some(PATH) {
            return Ok((path, browser));
        }
        respond(browser, "404 Not Found", "There is nothing here.").await;
    }
}

/// The path of a GET request.
async fn requested(browser: &mut TcpStream) -> Option<String> {
    let mut request = Vec::new();
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        let mut chunk = [0; 4096];
        let read = browser.read(&mut chunk).await.ok().filter(|read| *read > 0)?;
        request.extend_from_slice(&chunk[..read]);
        if request.len() > MAX_REQUEST {
            return None;
        }
    }
    let text = String::from_utf8(request).ok()?;
    text.strip_prefix("GET ")?.split(' ').next().map(str::to_owned)
}

async fn respond(mut browser: TcpStream, status: &str, words: &str) {
    let response = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{words}",
        words.len()
    );
    // The browser may be gone.
    let _ = timeout(REQUEST_TIMEOUT, browser.write_all(response.as_bytes())).await;
}
