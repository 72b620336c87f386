//! Connects a run to the configured MCP servers. A server that cannot be used causes a warning and is
//! skipped.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use fusee::engine::model;
use fusee::engine::tools::Tool;
use fusee::engine::tools::mcp::{
    self, McpClient, McpError, McpTool, OfferedTool, ProgramSettings, RegisteredClient, ServerSettings,
    ToolList, ToolLists,
};

use crate::config::{Config, LoginEntry, McpEntry, McpTransport};
use crate::process::Process;
use crate::process::stdio;

/// The contribution of the MCP servers to a run.
#[derive(Clone, Default)]
pub(crate) struct McpServers {
    pub(crate) tools: Vec<Arc<dyn Tool>>,
    /// The tool list as offered by the servers, stored with the run.
    pub(crate) offered: Vec<OfferedTool>,
    /// Values that must be redacted.
    pub(crate) secrets: Vec<String>,
}

/// How long the start of a run waits for a server if the tools that it offered last time are known.
const TIMEOUT: Duration = Duration::from_secs(2);
/// How long the start of a run waits for a server that was never used before.
const FIRST_PATIENCE: Duration = Duration::from_secs(10);

/// Connects to every configured server at once and fetches its tools. A server that takes long is used with the tools
/// that it offered last time, and is contacted again when one of them is called; without such tools the run goes on
/// without the server. `window` is the number of tokens that a conversation can hold: tools that would take more than
/// the configured share of it are not sent with each request.
pub(crate) async fn connect(config: &Config, directory: &Path, process: &Process, window: u64) -> McpServers {
    let mut servers = McpServers { secrets: keys(config, process), ..McpServers::default() };
    let mut opened = Vec::new();
    for entry in config.mcp() {
        if let Some(server) = open(entry, directory, process, &mut servers.secrets) {
            opened.push((entry, server));
        }
    }
    let lists = opened.iter().map(|(entry, server)| listed(entry, server, kept_file(entry, process)));
    let lists = futures_util::future::join_all(lists).await;
    let mut clients = Vec::new();
    for ((entry, server), list) in opened.into_iter().zip(lists) {
        match list {
            Err(error) => {
                let hint = if error.needs_login { login_hint(&entry.name) } else { String::new() };
                stdio::error(&format!("warning: {error}; continuing without it{hint}\n"));
            }
            Ok(offer) => {
                for left in &offer.left_out {
                    stdio::error(&format!("warning: MCP server `{}`: skipped {left}\n", entry.name));
                }
                clients.extend(offer.tools.iter().map(|_| Arc::clone(&server)));
                servers.offered.extend(offer.tools);
            }
        }
    }
    let tokens = model::Estimator::default().count(mcp::deferral::definition_bytes(&servers.offered));
    let is_deferred = tokens as f64 > window as f64 * config.mcp_context_share();
    for (offered, server) in servers.offered.iter_mut().zip(clients) {
        offered.deferred = is_deferred;
        servers.tools.push(Arc::new(McpTool::new(offered.clone(), server)));
    }
    servers
}

/// The tools of a server: as it offers them now, or those of last time if it does not answer soon.
async fn listed(
    entry: &McpEntry,
    server: &Arc<McpClient>,
    kept: Option<PathBuf>,
) -> Result<ToolList, McpError> {
    let (client, file) = (Arc::clone(server), kept.clone());
    // A task of its own, which goes on if nobody waits for it, so that the server is ready for the first call.
    let mut list = tokio::spawn(async move {
        let list = client.list_tools().await;
        if let (Ok(list), Some(file)) = (&list, file) {
            // Without the file the next run waits for the server.
            let _ = std::fs::write(file, serde_json::to_vec(&list.tools).unwrap_or_default());
        }
        list
    });
    let known = kept.and_then(|file| std::fs::read(file).ok());
    let known: Option<Vec<OfferedTool>> = known.and_then(|text| serde_json::from_slice(&text).ok());
    let patience = if known.is_some() { TIMEOUT } else { FIRST_PATIENCE };
    let lost = |why: String| McpError { server: entry.name.clone(), why, needs_login: false };
    match (tokio::time::timeout(patience, &mut list).await, known) {
        (Ok(answer), _) => answer.unwrap_or_else(|error| Err(lost(error.to_string()))),
        (Err(_), Some(tools)) => {
            stdio::error(&format!(
                "MCP server `{}` is slow to start; using the tools it offered last time\n",
                entry.name
            ));
            Ok(ToolList { tools, left_out: Vec::new() })
        }
        (Err(_), None) => {
            Err(lost(format!("it is not ready after {} s; the next run waits again", patience.as_secs())))
        }
    }
}

fn login_hint(server: &str) -> String {
    format!("; log in with `fusee mcp-login {server}`")
}

/// Where the tools of a server are kept: a file for each configuration of it.
fn kept_file(entry: &McpEntry, process: &Process) -> Option<PathBuf> {
    let folder = process.environment.state_folder()?.join("mcp");
    std::fs::create_dir_all(&folder).ok()?;
    let McpEntry { name, reach, allow, block, .. } = entry;
    let configured = blake3::hash(format!("{reach:?} {allow:?} {block:?}").as_bytes()).to_hex();
    Some(folder.join(format!("{name}-{}.tools.json", &configured[..16])))
}

/// The file for the token of a login: one for each URL of a server, so that no other server gets it.
pub(crate) fn login_file(entry: &McpEntry, process: &Process) -> Option<PathBuf> {
    let McpTransport::Address { url, .. } = &entry.reach else { return None };
    let folder = process.environment.state_folder()?.join("mcp");
    std::fs::create_dir_all(&folder).ok()?;
    let url = blake3::hash(url.as_bytes()).to_hex();
    Some(folder.join(format!("{}-{}.login.json", entry.name, &url[..16])))
}

/// The client for requests to a server.
pub(crate) fn http_client(url: &str, process: &Process) -> Result<reqwest::Client, String> {
    let settings = model::Connection {
        ca_file: process.environment.variable("SSL_CERT_FILE").map(Into::into),
        ..model::Connection::default()
    };
    model::http_client(url, &settings).map_err(|error| error.to_string())
}

/// The tools of a resumed run, as offered when it started. Servers are contacted when first needed.
pub(crate) fn for_resume(
    offered: &[OfferedTool],
    config: &Config,
    directory: &Path,
    process: &Process,
) -> McpServers {
    let mut servers =
        McpServers { offered: offered.to_vec(), secrets: keys(config, process), ..McpServers::default() };
    for entry in config.mcp().iter().filter(|entry| offered.iter().any(|tool| tool.server == entry.name)) {
        let Some(server) = open(entry, directory, process, &mut servers.secrets) else { continue };
        for tool in offered.iter().filter(|tool| tool.server == entry.name) {
            servers.tools.push(Arc::new(McpTool::new(tool.clone(), Arc::clone(&server))));
        }
    }
    servers
}

/// API keys named by `api_key_env`. Their variables can have any name, so name patterns do not find them.
fn keys(config: &Config, process: &Process) -> Vec<String> {
    let names = config.models().iter().filter_map(|entry| entry.api_key_env.as_deref());
    let value = |name: &str| process.environment.variable(name)?.to_str().map(str::to_owned);
    names.filter_map(value).collect()
}

fn open(
    entry: &McpEntry,
    directory: &Path,
    process: &Process,
    secrets: &mut Vec<String>,
) -> Option<Arc<McpClient>> {
    let expanded = |pairs: &[(String, String)]| -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| (name.clone(), expand_variables(value, process))).collect()
    };
    let (McpTransport::Program { env: pairs, .. } | McpTransport::Address { headers: pairs, .. }) =
        &entry.reach;
    secrets.extend(expanded(pairs).into_iter().map(|(_, value)| value));
    let reach = match &entry.reach {
        McpTransport::Program { command, env } => {
            let log = process.environment.state_folder().map(|states| states.join("mcp"));
            let log = log.filter(|folder| std::fs::create_dir_all(folder).is_ok());
            mcp::Transport::Program(ProgramSettings {
                command: command.clone(),
                environment: process.command_environment().with(expanded(env)),
                directory: directory.to_owned(),
                log: log.map(|folder| folder.join(format!("{}.log", entry.name))),
                fork_server: process.fork_server.clone()?,
            })
        }
        McpTransport::Address { url, headers, login } => {
            let registered = registered_client(login, process);
            secrets.extend(registered.iter().filter_map(|client| client.secret.clone()));
            let client = match http_client(url, process) {
                Ok(client) => client,
                Err(error) => {
                    stdio::error(&format!(
                        "warning: the MCP server `{}` cannot be used: {error}\n",
                        entry.name
                    ));
                    return None;
                }
            };
            let headers = expanded(headers);
            let login = login_file(entry, process);
            secrets.extend(login.iter().flat_map(|file| mcp::stored_tokens(file)));
            let sessions = process.mcp_sessions.clone();
            mcp::Transport::Address { url: url.clone(), headers, client, login, registered, sessions }
        }
    };
    Some(Arc::new(McpClient::new(ServerSettings {
        name: entry.name.clone(),
        reach,
        lists: ToolLists { allow: entry.allow.clone(), block: entry.block.clone() },
        timeout: Duration::from_secs(entry.timeout_s),
    })))
}

/// The client that the user has registered for the login at a server.
pub(crate) fn registered_client(login: &LoginEntry, process: &Process) -> Option<RegisteredClient> {
    let secret = login.client_secret.as_deref().map(|secret| expand_variables(secret, process));
    Some(RegisteredClient { id: login.client_id.clone()?, secret })
}

/// Expands environment variables in a value: `$NAME` or `${NAME}`.
fn expand_variables(value: &str, process: &Process) -> String {
    let mut text = String::new();
    let mut rest = value;
    while let Some((before, after)) = rest.split_once('$') {
        text.push_str(before);
        let braced = after.strip_prefix('{').and_then(|inner| inner.split_once('}'));
        let (name, next) = braced.unwrap_or_else(|| {
            let end = after.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(after.len());
            after.split_at(end)
        });
        if name.is_empty() {
            text.push('$');
        } else {
            text.push_str(process.environment.text(name).unwrap_or_default());
        }
        rest = next;
    }
    text + rest
}
