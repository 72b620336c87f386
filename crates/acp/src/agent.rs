//! The methods of the protocol: which session a request belongs to, and what is answered.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use agent_client_protocol_schema::ProtocolVersion;
use agent_client_protocol_schema::v1::{
    AgentCapabilities, AuthMethod, AuthMethodAgent, AuthenticateResponse, CancelNotification,
    CloseSessionRequest, CloseSessionResponse, Error, Implementation, InitializeRequest, InitializeResponse,
    ListSessionsRequest, ListSessionsResponse, LoadSessionRequest, LoadSessionResponse, McpCapabilities,
    McpServer, NewSessionRequest, NewSessionResponse, PromptCapabilities, PromptRequest,
    ResumeSessionRequest, ResumeSessionResponse, SessionCapabilities, SessionCloseCapabilities, SessionInfo,
    SessionListCapabilities, SessionResumeCapabilities, SetSessionConfigOptionRequest,
    SetSessionConfigOptionResponse, SetSessionModeRequest, SetSessionModeResponse,
};
use fusee::engine::tools::OpenDocuments;
use fusee::launch::{LaunchMcpServer, LaunchMcpTransport, Launcher};
use fusee::system::new_run_id;
use parking_lot::Mutex;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::connection::{Connection, failed, invalid};
use crate::editor::EditorDocuments;
use crate::prompt;
use crate::session::Session;

/// Sessions that one process holds open.
const MAX_SESSIONS: usize = 1000;
/// Longest name of an MCP server.
const MAX_SERVER_NAME: usize = 32;
/// Sessions that are listed at a time.
const LISTED: usize = 100;

/// Answers the requests of one client.
pub(crate) struct Agent {
    launcher: Arc<dyn Launcher>,
    connection: Arc<Connection>,
    sessions: Mutex<HashMap<String, Arc<Session>>>,
    /// Whether the client offers the text of files as its editor has it.
    reads_files: AtomicBool,
}

impl Agent {
    pub(crate) fn new(launcher: Arc<dyn Launcher>, connection: Arc<Connection>) -> Self {
        Self { launcher, connection, sessions: Mutex::default(), reads_files: AtomicBool::new(false) }
    }

    /// Answers a request. What takes long is answered later, so that the client can cancel it.
    pub(crate) async fn request(self: &Arc<Self>, id: Value, method: &str, params: Value) {
        match method {
            "session/prompt" => self.prompt(id, params).await,
            "session/load" | "session/resume" => {
                let (agent, replay) = (Arc::clone(self), method == "session/load");
                tokio::spawn(async move {
                    let loaded = agent.load(params, replay).await;
                    let session = loaded.as_ref().ok().map(|(session, _)| Arc::clone(session));
                    agent.connection.respond(&id, loaded.map(|(_, answer)| answer)).await;
                    if let Some(session) = session {
                        session.send_commands().await;
                    }
                });
            }
            "session/new" => {
                let opened = self.open(params);
                let session = opened.as_ref().ok().map(|(session, _)| Arc::clone(session));
                self.connection.respond(&id, opened.map(|(_, answer)| answer)).await;
                if let Some(session) = session {
                    session.send_commands().await;
                }
            }
            method => {
                let answer = self.answer(method, params).await;
                self.connection.respond(&id, answer).await;
            }
        }
    }

    /// Takes in a notification; unknown ones are ignored.
    pub(crate) fn notification(&self, method: &str, params: Value) {
        if method == "session/cancel"
            && let Ok(cancel) = parse::<CancelNotification>(params)
            && let Ok(session) = self.session(&cancel.session_id.0)
        {
            session.cancel();
        }
    }

    async fn answer(&self, method: &str, params: Value) -> Result<Value, Error> {
        match method {
            "initialize" => {
                let request: InitializeRequest = parse(params)?;
                self.reads_files.store(request.client_capabilities.fs.read_text_file, Ordering::Relaxed);
                encode(&initialize())
            }
            // The configured model and its key are used; there is nothing to log in to.
            "authenticate" => encode(&AuthenticateResponse::new()),
            "session/list" => encode(&self.list(&parse(params)?)?),
            "session/close" => {
                let request: CloseSessionRequest = parse(params)?;
                let closed = self.sessions.lock().remove(&*request.session_id.0);
                closed.ok_or_else(|| invalid("unknown session"))?.cancel();
                encode(&CloseSessionResponse::new())
            }
            "session/set_mode" => {
                let request: SetSessionModeRequest = parse(params)?;
                self.session(&request.session_id.0)?.set_mode(&request.mode_id.0).await?;
                encode(&SetSessionModeResponse::new())
            }
            "session/set_config_option" => {
                let request: SetSessionConfigOptionRequest = parse(params)?;
                let value = request.value.as_value_id().ok_or_else(|| invalid("the value must be an id"))?;
                let session = self.session(&request.session_id.0)?;
                let options = session.set_option(&request.config_id.0, &value.0).await?;
                encode(&SetSessionConfigOptionResponse::new(options))
            }
            _ => Err(Error::method_not_found()),
        }
    }

    fn open(&self, params: Value) -> Result<(Arc<Session>, Value), Error> {
        let request: NewSessionRequest = parse(params)?;
        let id = new_run_id().map_err(|error| failed(&error))?.to_string();
        let session = self.create(id.clone(), request.cwd, &request.mcp_servers)?;
        let answer =
            NewSessionResponse::new(id.clone()).modes(session.modes()).config_options(session.options());
        self.sessions.lock().insert(id, Arc::clone(&session));
        Ok((session, encode(&answer)?))
    }

    async fn load(&self, params: Value, replay: bool) -> Result<(Arc<Session>, Value), Error> {
        let (id, cwd, servers) = if replay {
            let request: LoadSessionRequest = parse(params)?;
            (request.session_id.0.to_string(), request.cwd, request.mcp_servers)
        } else {
            let request: ResumeSessionRequest = parse(params)?;
            (request.session_id.0.to_string(), request.cwd, request.mcp_servers)
        };
        let session = self.create(id.clone(), cwd, &servers)?;
        // Known from now on, so that updates and cancellations find it.
        if let Some(former) = self.sessions.lock().insert(id.clone(), Arc::clone(&session)) {
            former.cancel();
        }
        if let Err(error) = session.load(replay).await {
            self.sessions.lock().remove(&id);
            return Err(error);
        }
        let (modes, options) = (session.modes(), session.options());
        let answer = if replay {
            encode(&LoadSessionResponse::new().modes(modes).config_options(options))?
        } else {
            encode(&ResumeSessionResponse::new().modes(modes).config_options(options))?
        };
        Ok((session, answer))
    }

    fn create(&self, id: String, cwd: PathBuf, servers: &[McpServer]) -> Result<Arc<Session>, Error> {
        if !cwd.is_absolute() {
            return Err(invalid("cwd must be an absolute path"));
        }
        if !cwd.is_dir() {
            return Err(invalid("cwd is not a directory"));
        }
        if self.sessions.lock().len() >= MAX_SESSIONS {
            return Err(failed("too many sessions are open; close some"));
        }
        let servers = servers.iter().filter_map(mcp_server).collect();
        let documents = self.reads_files.load(Ordering::Relaxed).then(|| {
            let documents = EditorDocuments::new(Arc::clone(&self.connection), id.clone());
            Arc::new(documents) as Arc<dyn OpenDocuments>
        });
        let (launcher, connection) = (Arc::clone(&self.launcher), Arc::clone(&self.connection));
        Ok(Session::new(id, cwd, servers, launcher, connection, documents))
    }

    async fn prompt(self: &Arc<Self>, id: Value, params: Value) {
        let begun = parse::<PromptRequest>(params).and_then(|request| {
            let session = self.session(&request.session_id.0)?;
            let prompt = prompt::read(&request.prompt)?;
            Ok((session.announce()?, session, prompt))
        });
        let (ticket, session, prompt) = match begun {
            Ok(begun) => begun,
            Err(error) => return self.connection.respond(&id, Err(error)).await,
        };
        let connection = Arc::clone(&self.connection);
        tokio::spawn(async move {
            let answer = session.prompt(ticket, prompt).await.and_then(|answer| encode(&answer));
            connection.respond(&id, answer).await;
        });
    }

    fn session(&self, id: &str) -> Result<Arc<Session>, Error> {
        self.sessions.lock().get(id).cloned().ok_or_else(|| invalid("unknown session"))
    }

    /// The sessions of a directory, newest first. A cursor is the number of sessions to skip.
    fn list(&self, request: &ListSessionsRequest) -> Result<ListSessionsResponse, Error> {
        let cwd = request.cwd.clone().unwrap_or_else(|| self.launcher.directory().to_owned());
        let journal = self.launcher.journal(&cwd).map_err(|error| failed(&error.to_string()))?;
        let Some(journal) = journal else { return Ok(ListSessionsResponse::new(Vec::new())) };
        let skipped = match request.cursor.as_deref().map(str::parse::<usize>) {
            None => 0,
            Some(Ok(skipped)) => skipped,
            Some(Err(_)) => return Err(invalid("unknown cursor")),
        };
        let rows = journal.runs().map_err(|error| failed(&error.to_string()))?;
        let is_first = |id: &str| id.rsplit_once('.').is_none_or(|(_, n)| n.parse::<u32>().is_err());
        let mut firsts = rows.into_iter().filter(|row| is_first(row.id.as_str())).skip(skipped);
        let session = |row: fusee::journal::RunRow| {
            SessionInfo::new(row.id.to_string(), cwd.clone())
                .title(row.title)
                .updated_at(rfc3339(row.ended_ms.unwrap_or(row.started_ms)))
        };
        let sessions: Vec<SessionInfo> = firsts.by_ref().take(LISTED).map(session).collect();
        let more = firsts.next().map(|_| (skipped + LISTED).to_string());
        Ok(ListSessionsResponse::new(sessions).next_cursor(more))
    }
}

fn initialize() -> InitializeResponse {
    // Only version 1 is spoken; a client that speaks another one disconnects.
    let sessions = SessionCapabilities::new()
        .list(SessionListCapabilities::new())
        .resume(SessionResumeCapabilities::new())
        .close(SessionCloseCapabilities::new());
    let capabilities = AgentCapabilities::new()
        .load_session(true)
        .prompt_capabilities(PromptCapabilities::new().image(true).embedded_context(true))
        .mcp_capabilities(McpCapabilities::new().http(true))
        .session_capabilities(sessions);
    let login = AuthMethodAgent::new("configured", "Configured model")
        .description("Uses the model and the key of your Fusee configuration".to_owned());
    InitializeResponse::new(ProtocolVersion::V1)
        .agent_capabilities(capabilities)
        .auth_methods(vec![AuthMethod::Agent(login)])
        .agent_info(Implementation::new("fusee", env!("CARGO_PKG_VERSION")).title("Fusee".to_owned()))
}

/// A server of the client. Its name is the prefix of its tools; server-sent events are not offered, so nobody asks for
/// them.
fn mcp_server(server: &McpServer) -> Option<LaunchMcpServer> {
    let (name, transport) = match server {
        McpServer::Stdio(stdio) => {
            let program = std::iter::once(stdio.command.display().to_string());
            let command = program.chain(stdio.args.iter().cloned()).collect();
            let env = stdio.env.iter().map(|pair| (pair.name.clone(), pair.value.clone())).collect();
            (&stdio.name, LaunchMcpTransport::Program { command, env })
        }
        McpServer::Http(http) => {
            let headers = http.headers.iter().map(|pair| (pair.name.clone(), pair.value.clone())).collect();
            (&http.name, LaunchMcpTransport::Address { url: http.url.clone(), headers })
        }
        _ => return None,
    };
    let plain = |c: char| if c.is_ascii_alphanumeric() || "_-".contains(c) { c } else { '_' };
    let name: String = name.chars().map(plain).take(MAX_SERVER_NAME).collect();
    (!name.is_empty()).then_some(LaunchMcpServer { name, transport })
}

fn parse<T: DeserializeOwned>(params: Value) -> Result<T, Error> {
    serde_json::from_value(params).map_err(|error| Error::invalid_params().data(json!(error.to_string())))
}

fn encode(value: &impl Serialize) -> Result<Value, Error> {
    serde_json::to_value(value).map_err(|error| failed(&error.to_string()))
}

fn rfc3339(ms: i64) -> String {
    jiff::Timestamp::from_millisecond(ms).map(|at| at.to_string()).unwrap_or_default()
}
