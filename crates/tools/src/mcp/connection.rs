//! A connection to a server: rmcp's client over the streams of a program or over HTTP, in the era of the protocol that
//! the server speaks. `call` sends requests over it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{HeaderName, HeaderValue};
use rmcp::RoleClient;
use rmcp::model::ProtocolVersion;
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, Peer, RunningService, serve_client_with_lifecycle,
};
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::common::client_side_sse::FixedInterval;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClient, StreamableHttpClientTransport, StreamableHttpClientTransportConfig,
    StreamableHttpError,
};
use rmcp::transport::{DynamicTransportError, Transport as RmcpTransport};
use tokio::time::{Instant, timeout, timeout_at};

use super::failure::{RequestFailure, shortened};
use super::flow_control::LimitedTransport;
use super::handler::Handler;
use super::http::{HttpClient, HttpError};
use super::login;
use super::program::{MAX_LINE, Program};
use super::session::{CLOSE_TIMEOUT, OpenSession};
use super::{ServerSettings, Transport};

/// Maximum time in which a server over HTTP may answer the request of the newer era, before the older one is tried.
const PROBE_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum attempts to reopen a stream of events.
const MAX_REOPENED: usize = 5;

/// How long the reason for the end of a program may take to arrive once its streams are closed.
pub(super) const ENDING: Duration = Duration::from_secs(1);

type Service = RunningService<RoleClient, Arc<Handler>>;

/// An open connection. Dropping it closes it in the background and ends the program.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) peer: Peer<RoleClient>,
    pub(super) handler: Arc<Handler>,
    service: Option<Service>,
    end: ConnectionEnd,
}

/// What has to be stopped when a connection is closed.
#[derive(Debug)]
enum ConnectionEnd {
    Program(Program),
    Session(Option<OpenSession>),
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let (Some(mut service), ConnectionEnd::Session(session), Ok(runtime)) =
            (self.service.take(), &mut self.end, tokio::runtime::Handle::try_current())
        {
            let session = session.take();
            runtime.spawn(async move {
                // The server may not know that a session can be ended.
                let _ = service.close_with_timeout(CLOSE_TIMEOUT).await;
                drop(session);
            });
        }
    }
}

/// How a connection begins.
#[derive(Clone, Copy, PartialEq)]
enum Era {
    /// `initialize`: revisions until 2025-11-25.
    Initialize,
    /// `server/discover`: revisions since 2026-07-28.
    Discover,
}

/// Why a connection was not made, and whether the server may speak the protocol of the other era.
struct StartFailure {
    failure: RequestFailure,
    is_other_era: bool,
}

impl StartFailure {
    fn last(failure: RequestFailure) -> Self {
        Self { failure, is_other_era: false }
    }
}

impl Connection {
    /// Connects. A program is asked for the older era first, since some exit on an unknown request; a server over HTTP
    /// for the newer one, which costs it no session.
    pub(super) async fn open(settings: &ServerSettings) -> Result<Self, RequestFailure> {
        let deadline = Instant::now() + settings.timeout;
        let (first, second) = match settings.reach {
            Transport::Program(_) => (Era::Initialize, Era::Discover),
            Transport::Address { .. } => (Era::Discover, Era::Initialize),
        };
        let refused = match Self::start(settings, first, deadline).await {
            Err(failure) if failure.is_other_era => failure.failure,
            connected => return connected.map_err(|failure| failure.failure),
        };
        let connected = Self::start(settings, second, deadline).await.map_err(|failure| failure.failure);
        match second {
            Era::Initialize => connected,
            Era::Discover => connected.map_err(|_| refused),
        }
    }

    async fn start(settings: &ServerSettings, era: Era, deadline: Instant) -> Result<Self, StartFailure> {
        let handler = Arc::new(Handler::default());
        let (service, end) = match &settings.reach {
            Transport::Program(program) => {
                let (program, output, input) = Program::start(program).map_err(|error| {
                    StartFailure::last(RequestFailure::Gone(format!("it could not be started: {error}")))
                })?;
                let streams = AsyncRwTransport::new_client(output, input).with_max_line_length(2 * MAX_LINE);
                let started = serve(&handler, streams, era, deadline, settings.timeout).await;
                match started {
                    Err(StartFailure { failure: RequestFailure::Gone(_), is_other_era: false }) => {
                        return Err(StartFailure::last(RequestFailure::Gone(
                            end_reason(Some(&program)).await,
                        )));
                    }
                    started => (started?, ConnectionEnd::Program(program)),
                }
            }
            Transport::Address { url, headers, client, login, registered, sessions } => {
                let config = http_config(url, headers).map_err(StartFailure::last)?;
                let limit = settings.timeout;
                let service = match login.as_deref().filter(|file| file.exists()) {
                    None => {
                        serve_http(&handler, HttpClient(client.clone()), config, era, deadline, limit).await?
                    }
                    Some(file) => {
                        let client = login::client(url, client, file, registered.as_ref());
                        let client = timeout_at(deadline, client).await;
                        let client = client.unwrap_or(Err(RequestFailure::Silent(limit)));
                        let client = client.map_err(StartFailure::last)?;
                        serve_http(&handler, client, config, era, deadline, limit).await?
                    }
                };
                (service, ConnectionEnd::Session(Some(sessions.add())))
            }
        };
        let peer = service.peer().clone();
        let connection = Self { peer, handler, service: Some(service), end };
        let revision = connection.peer.peer_info().map(|info| info.protocol_version.clone());
        if let Some(unknown) = revision.filter(|revision| !ProtocolVersion::KNOWN_VERSIONS.contains(revision))
        {
            let failure = RequestFailure::Gone(unknown_revision(&[unknown]));
            return Err(StartFailure::last(failure));
        }
        Ok(connection)
    }

    /// Waits for the end of the program, and returns the reason; forever for a server over HTTP.
    pub(super) async fn ended(&self) -> String {
        match self.program() {
            Some(program) => program.ended().await,
            None => std::future::pending().await,
        }
    }

    pub(super) fn is_program(&self) -> bool {
        self.program().is_some()
    }

    /// Why the connection is lost.
    pub(super) async fn end_reason(&self) -> String {
        end_reason(self.program()).await
    }

    fn program(&self) -> Option<&Program> {
        match &self.end {
            ConnectionEnd::Program(program) => Some(program),
            ConnectionEnd::Session(_) => None,
        }
    }
}

async fn end_reason(program: Option<&Program>) -> String {
    match program {
        Some(program) => {
            let why = timeout(ENDING, program.ended()).await;
            why.unwrap_or_else(|_| "it closed its input or output".to_owned())
        }
        None => "it closed the connection".to_owned(),
    }
}

async fn serve_http<C: StreamableHttpClient<Error = HttpError> + Sync>(
    handler: &Arc<Handler>,
    client: C,
    config: StreamableHttpClientTransportConfig,
    era: Era,
    deadline: Instant,
    limit: Duration,
) -> Result<Service, StartFailure> {
    let probe = Instant::now() + PROBE_TIMEOUT;
    let transport = StreamableHttpClientTransport::with_client(client, config);
    match era {
        Era::Discover if probe < deadline => {
            let silent = |failure: StartFailure| StartFailure {
                is_other_era: failure.is_other_era || matches!(failure.failure, RequestFailure::Silent(_)),
                ..failure
            };
            serve(handler, transport, era, probe, PROBE_TIMEOUT).await.map_err(silent)
        }
        _ => serve(handler, transport, era, deadline, limit).await,
    }
}

async fn serve<T: RmcpTransport<RoleClient> + 'static>(
    handler: &Arc<Handler>,
    transport: T,
    era: Era,
    deadline: Instant,
    limit: Duration,
) -> Result<Service, StartFailure> {
    let lifecycle = match era {
        Era::Initialize => ClientLifecycleMode::Initialize,
        Era::Discover => {
            ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] }
        }
    };
    let transport = LimitedTransport::new(transport);
    let starting = Box::pin(serve_client_with_lifecycle(Arc::clone(handler), transport, lifecycle));
    match timeout_at(deadline, starting).await {
        Ok(started) => started.map_err(start_failure),
        Err(_) => Err(StartFailure::last(RequestFailure::Silent(limit))),
    }
}

fn http_config(
    url: &str,
    given: &[(String, String)],
) -> Result<StreamableHttpClientTransportConfig, RequestFailure> {
    let mut headers = HashMap::new();
    for (name, value) in given {
        let wrong = || RequestFailure::Gone(format!("the header `{name}` cannot be sent"));
        let mut value = HeaderValue::from_str(value).map_err(|_| wrong())?;
        value.set_sensitive(true);
        headers.insert(HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong())?, value);
    }
    let mut reopening = FixedInterval::default();
    reopening.max_times = Some(MAX_REOPENED);
    let mut config = StreamableHttpClientTransportConfig::with_uri(url).custom_headers(headers);
    config.retry_config = Arc::new(reopening);
    Ok(config)
}

fn start_failure(error: ClientInitializeError) -> StartFailure {
    let (failure, is_other_era) = match error {
        ClientInitializeError::JsonRpcError(error) => (RequestFailure::Refused(error), true),
        ClientInitializeError::TransportError { error, .. } => transport_failure(&error),
        ClientInitializeError::ConnectionClosed(_) => {
            (RequestFailure::Gone("it closed the connection".to_owned()), false)
        }
        ClientInitializeError::NoCompatibleProtocolVersion { server_supported, .. } => {
            (RequestFailure::Gone(unknown_revision(&server_supported)), true)
        }
        other => (RequestFailure::Gone(shortened(&other.to_string())), true),
    };
    StartFailure { failure, is_other_era }
}

/// Why a message could not be sent, and whether that may be due to the era.
pub(super) fn transport_failure(error: &DynamicTransportError) -> (RequestFailure, bool) {
    let gone = |why: &str| RequestFailure::Gone(shortened(why));
    match error.error.downcast_ref::<StreamableHttpError<HttpError>>() {
        Some(StreamableHttpError::Client(error)) => (gone(&error.to_string()), !error.is_unreachable),
        Some(StreamableHttpError::AuthRequired(_) | StreamableHttpError::InsufficientScope(_)) => {
            (RequestFailure::LoginRequired, false)
        }
        Some(StreamableHttpError::Auth(error)) => (login::failure(error), false),
        Some(StreamableHttpError::SessionExpired) => (gone("it has forgotten the session"), false),
        Some(other) => (gone(&other.to_string()), true),
        None => (gone(&error.error.to_string()), false),
    }
}

fn unknown_revision(offered: &[ProtocolVersion]) -> String {
    let list = |versions: &[ProtocolVersion]| {
        versions
            .iter()
            .map(|version| version.as_str().escape_default().to_string())
            .collect::<Vec<_>>()
            .join(", ")
    };
    let known = list(ProtocolVersion::KNOWN_VERSIONS);
    format!("it speaks revision `{}` of the protocol, not one of {known}", shortened(&list(offered)))
}
