//! The HTTP side of a Restate server: its admin API, at the URL that the user gives, and its ingress, whose URL the
//! admin API reports.

use std::time::Duration;

use fusee::engine::run::RunSpec;
use fusee::journal::RunId;
use fusee::model::{Connection, http_client};
use reqwest::{Method, StatusCode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::log_entry::{LogEntry, PAGE, ReadEntries};
use crate::question::GivenAnswer;
use crate::run_order::{RunAbout, SERVICE};
use crate::{BlobHash, EngineError, RunOrder};

/// The oldest version that has what workers need: moving an invocation to another deployment.
const OLDEST: (&str, (u64, u64)) = ("1.5", (1, 5));

/// Timeout of requests that do not wait for anything.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Timeout of the check whether a worker is alive.
const HEALTH: Duration = Duration::from_secs(5);

/// Beginning of a connection over HTTP/2: the preface and an empty frame of settings.
const GREETING: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

/// Pause after a failed request, and how often requests that wait are tried while the engine is away.
const PAUSE: Duration = Duration::from_millis(500);
const TRIES: u32 = 240;

/// How often a query is repeated that the server cannot answer yet.
const QUERY_TRIES: u32 = 40;

/// A Restate server.
#[derive(Clone, Debug)]
pub struct Engine {
    admin: String,
    ingress: String,
    http: reqwest::Client,
}

/// A run as the engine lists it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ListedRun {
    /// Its id.
    pub run: String,
    /// State of its workflow: `pending`, `running`, `backing-off`, `suspended`, `paused`, `completed` and others.
    pub status: String,
    /// When it was started, as the engine writes it.
    pub started: String,
    /// The request, on one line; empty before a worker has begun with it.
    #[serde(default)]
    pub title: String,
    /// Tenant that the run was started for.
    #[serde(default)]
    pub tenant: Option<String>,
}

/// An invocation that has begun on a worker.
#[derive(Debug, Deserialize)]
pub(crate) struct PinnedInvocation {
    pub(crate) id: String,
    pub(crate) deployment: String,
}

impl Engine {
    /// Connects to the server whose admin API is at `url`.
    pub async fn connect(url: &str) -> Result<Self, EngineError> {
        let admin = url.trim_end_matches('/').to_owned();
        let unreachable = |cause: String| EngineError::Unreachable { url: admin.clone(), cause };
        let http =
            http_client(&admin, &Connection::default()).map_err(|error| unreachable(error.to_string()))?;
        let version_url = format!("{admin}/version");
        let sent = http.get(&version_url).timeout(TIMEOUT).send().await;
        let response = sent.map_err(|error| unreachable(chain(&error)))?;
        let not_an_engine = |cause: String| EngineError::NotAnEngine { url: admin.clone(), cause };
        if !response.status().is_success() {
            return Err(not_an_engine(format!("GET /version returned {}", response.status())));
        }
        let text = response.text().await.map_err(|error| unreachable(chain(&error)))?;
        let version: Version = serde_json::from_str(&text)
            .map_err(|error| not_an_engine(format!("GET /version returned an invalid answer ({error})")))?;
        if numbers(&version.version) < Some(OLDEST.1) {
            return Err(EngineError::Old { url: admin, found: version.version, needed: OLDEST.0 });
        }
        let Some(ingress) = version.ingress_endpoint else {
            return Err(not_an_engine("it does not report the URL of its ingress".to_owned()));
        };
        Ok(Self { admin, ingress: ingress.trim_end_matches('/').to_owned(), http })
    }

    /// URL of the admin API.
    pub fn url(&self) -> &str {
        &self.admin
    }

    /// Registers a worker that answers at `worker`; returns the id of its deployment.
    pub(crate) async fn register(&self, worker: &str) -> Result<String, EngineError> {
        let url = format!("{}/deployments", self.admin);
        let body = json!({ "uri": worker, "force": true });
        let registered: Registered = self.send(Method::POST, &url, Some(&body), Some(TIMEOUT)).await?;
        Ok(registered.id)
    }

    /// Whether the worker of a deployment answers.
    pub(crate) async fn is_alive(&self, deployment: &str) -> Result<bool, EngineError> {
        let url = format!("{}/deployments/{deployment}", self.admin);
        let found: Deployment = self.send(Method::GET, &url, None, Some(TIMEOUT)).await?;
        let unreadable = |error: &dyn std::fmt::Display| EngineError::Unreadable(error.to_string());
        let url = reqwest::Url::parse(&found.uri).map_err(|error| unreadable(&error))?;
        let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
        let address = (host, url.port_or_known_default().unwrap_or(80));
        let is_plain = url.scheme() == "http";
        let answered = tokio::time::timeout(HEALTH, async {
            let mut stream = tokio::net::TcpStream::connect(address).await?;
            if is_plain {
                // A process that is stopped accepts connections, but does not answer the greeting of HTTP/2.
                stream.write_all(GREETING).await?;
                stream.read_u8().await?;
            }
            Ok::<_, std::io::Error>(())
        });
        Ok(matches!(answered.await, Ok(Ok(()))))
    }

    /// Invocations that workers other than `own` are responsible for.
    pub(crate) async fn elsewhere(&self, own: &str) -> Result<Vec<PinnedInvocation>, EngineError> {
        self.query(&format!(
            "SELECT id, pinned_deployment_id AS deployment FROM sys_invocation WHERE \
             target_service_name = '{SERVICE}' AND status IN ('running', 'backing-off', 'paused') AND \
             pinned_deployment_id IS NOT NULL AND pinned_deployment_id != '{own}' LIMIT 100"
        ))
        .await
    }

    /// Moves an invocation to another deployment.
    pub(crate) async fn move_invocation(&self, id: &str, deployment: &str) -> Result<(), EngineError> {
        let at = |what: &str| format!("{}/invocations/{id}/{what}", self.admin);
        // A paused invocation cannot be paused again; what matters is that it is paused now.
        let _: Result<Value, _> = self.send(Method::PATCH, &at("pause"), None, Some(TIMEOUT)).await;
        let resume = at(&format!("resume?deployment={deployment}"));
        let mut moved = Ok(());
        for _ in 0..10 {
            tokio::time::sleep(PAUSE / 5).await;
            moved = self.send::<Value>(Method::PATCH, &resume, None, Some(TIMEOUT)).await.map(drop);
            if moved.is_ok() {
                break;
            }
        }
        moved
    }

    /// Starts a run.
    pub(crate) async fn start(&self, run: &RunId, order: &RunOrder) -> Result<(), EngineError> {
        let body = serde_json::to_value(order).unwrap_or_default();
        let url = self.handler(run, "run/send");
        let sent: Sent = self.send(Method::POST, &url, Some(&body), Some(TIMEOUT)).await?;
        match sent.status.as_str() {
            "Accepted" => Ok(()),
            _ => Err(EngineError::RunExists { run: run.to_string() }),
        }
    }

    /// The entries of a run from number `from`; waits for the first of them.
    pub(crate) async fn read(&self, run: &RunId, from: u64) -> Result<Vec<LogEntry>, EngineError> {
        let request = serde_json::to_value(ReadEntries { from, wait: true }).unwrap_or_default();
        self.wait(&self.handler(run, "read"), Some(&request)).await
    }

    /// All entries of a run that are recorded now.
    pub(crate) async fn recorded(&self, run: &RunId) -> Result<Vec<LogEntry>, EngineError> {
        let (url, mut entries) = (self.handler(run, "read"), Vec::new());
        loop {
            let request = ReadEntries { from: entries.len() as u64, wait: false };
            let request = serde_json::to_value(request).unwrap_or_default();
            let page: Vec<LogEntry> = self.send(Method::POST, &url, Some(&request), Some(TIMEOUT)).await?;
            let is_last = (page.len() as u64) < PAGE;
            entries.extend(page);
            if is_last {
                return Ok(entries);
            }
        }
    }

    /// The files of a run's workspace after its last entry, if they have changed.
    pub(crate) async fn last_files(&self, run: &RunId) -> Result<Option<BlobHash>, EngineError> {
        self.send(Method::POST, &self.handler(run, "files"), None, Some(TIMEOUT)).await
    }

    /// What is known of a run from its start.
    pub(crate) async fn about(&self, run: &RunId) -> Result<Option<RunAbout>, EngineError> {
        self.send(Method::POST, &self.handler(run, "about"), None, Some(TIMEOUT)).await
    }

    /// The settings of a run, once a worker has begun with it.
    pub async fn settings(&self, run: &RunId) -> Result<Option<RunSpec>, EngineError> {
        self.send(Method::POST, &self.handler(run, "settings"), None, Some(TIMEOUT)).await
    }

    /// Cancels a run.
    pub async fn cancel(&self, run: &RunId) -> Result<(), EngineError> {
        self.send::<Value>(Method::POST, &self.handler(run, "cancel"), None, Some(TIMEOUT)).await.map(drop)
    }

    /// Waits until a run is cancelled; false if it ends, or the engine is away for too long.
    pub(crate) async fn cancelled(&self, run: &RunId) -> bool {
        self.wait(&self.handler(run, "cancelled"), None).await.unwrap_or(false)
    }

    /// Answers a question; whether this answer is the one that counts.
    pub(crate) async fn answer(&self, run: &RunId, answer: &GivenAnswer) -> Result<bool, EngineError> {
        let body = serde_json::to_value(answer).unwrap_or_default();
        match self.send(Method::POST, &self.handler(run, "answer"), Some(&body), Some(TIMEOUT)).await {
            // Two answers at the same moment: the engine keeps the first.
            Err(EngineError::Refused { status: 409, .. }) => Ok(false),
            answered => answered,
        }
    }

    /// Waits for the answer to a question; `None` if it is over without one.
    pub(crate) async fn answered(&self, run: &RunId, promise: &str) -> Result<Option<Value>, EngineError> {
        self.wait(&self.handler(run, "answered"), Some(&Value::from(promise))).await
    }

    /// The runs that the engine knows, newest first.
    pub async fn runs(&self) -> Result<Vec<ListedRun>, EngineError> {
        let mut runs: Vec<ListedRun> = self
            .query(&format!(
                "SELECT target_service_key AS run, status, CAST(created_at AS VARCHAR) AS started FROM \
                 sys_invocation WHERE target_service_name = '{SERVICE}' AND target_handler_name = 'run' \
                 ORDER BY created_at DESC LIMIT 1000"
            ))
            .await?;
        let about: Vec<AboutRow> = self
            .query(&format!(
                "SELECT service_key AS run, value_utf8 AS about FROM state WHERE service_name = '{SERVICE}' \
                 AND key = 'about'"
            ))
            .await?;
        for listed in &mut runs {
            let about = about.iter().find(|row| row.run == listed.run);
            let about = about.and_then(|row| serde_json::from_str::<RunAbout>(&row.about).ok());
            let Some(RunAbout { title, tenant, .. }) = about else { continue };
            (listed.title, listed.tenant) = (title, tenant);
        }
        Ok(runs)
    }

    /// Why no worker can continue a run at the moment; `None` if one does, or the run has ended.
    pub async fn problem(&self, run: &RunId) -> Result<Option<String>, EngineError> {
        let found: Vec<ProblemRow> = self
            .query(&format!(
                "SELECT last_failure AS problem FROM sys_invocation WHERE target_service_name = '{SERVICE}' AND \
                 target_service_key = '{run}' AND target_handler_name = 'run' AND status IN ('backing-off', 'paused')"
            ))
            .await?;
        Ok(found.into_iter().next().and_then(|row| row.problem))
    }

    /// A run by its id; an error if the engine does not know it.
    pub async fn run(&self, name: &str) -> Result<RunId, EngineError> {
        let unknown = || EngineError::NoSuchRun { run: name.to_owned() };
        let run: RunId = name.parse().map_err(|_| unknown())?;
        self.runs().await?.iter().any(|listed| listed.run == name).then_some(run).ok_or_else(unknown)
    }

    fn handler(&self, run: &RunId, handler: &str) -> String {
        format!("{}/{SERVICE}/{run}/{handler}", self.ingress)
    }

    async fn query<T: DeserializeOwned>(&self, query: &str) -> Result<Vec<T>, EngineError> {
        let url = format!("{}/query", self.admin);
        let body = json!({ "query": query });
        let mut tries = 0;
        loop {
            match self.send::<Rows<T>>(Method::POST, &url, Some(&body), Some(TIMEOUT)).await {
                // A server that has just started answers requests before it can answer queries.
                Err(EngineError::Refused { status: 500.., .. }) if tries < QUERY_TRIES => {
                    tries += 1;
                    tokio::time::sleep(PAUSE / 2).await;
                }
                answer => return answer.map(|rows| rows.rows),
            }
        }
    }

    /// Sends a request that waits for something to happen, again if the engine is away meanwhile.
    async fn wait<T: DeserializeOwned>(&self, url: &str, body: Option<&Value>) -> Result<T, EngineError> {
        let mut tries = 0;
        loop {
            match self.send(Method::POST, url, body, None).await {
                Err(
                    error @ (EngineError::Unreachable { .. } | EngineError::Refused { status: 500.., .. }),
                ) => {
                    tries += 1;
                    if tries > TRIES {
                        return Err(error);
                    }
                    tokio::time::sleep(PAUSE).await;
                }
                answer => return answer,
            }
        }
    }

    async fn send<T: DeserializeOwned>(
        &self,
        method: Method,
        url: &str,
        body: Option<&Value>,
        limit: Option<Duration>,
    ) -> Result<T, EngineError> {
        let mut request = self.http.request(method, url).header("accept", "application/json");
        if let Some(body) = body {
            request = request.header("content-type", "application/json").body(body.to_string());
        }
        if let Some(limit) = limit {
            request = request.timeout(limit);
        }
        let unreachable =
            |error: reqwest::Error| EngineError::Unreachable { url: url.to_owned(), cause: chain(&error) };
        let response = request.send().await.map_err(unreachable)?;
        let status = response.status();
        let text = response.text().await.map_err(unreachable)?;
        if status == StatusCode::NOT_FOUND && text.contains(SERVICE) {
            return Err(EngineError::NoWorker { url: self.admin.clone() });
        }
        if !status.is_success() {
            let body = serde_json::from_str::<ErrorBody>(&text).map(|body| body.message);
            let message = body.unwrap_or_else(|_| text.chars().take(500).collect());
            return Err(EngineError::Refused { url: url.to_owned(), status: status.as_u16(), message });
        }
        let text = if text.is_empty() { "null" } else { &text };
        serde_json::from_str(text).map_err(|error| EngineError::Unreadable(format!("{url}: {error}")))
    }
}

#[derive(Deserialize)]
struct Version {
    version: String,
    ingress_endpoint: Option<String>,
}

#[derive(Deserialize)]
struct Registered {
    id: String,
}

#[derive(Deserialize)]
struct Deployment {
    uri: String,
}

#[derive(Deserialize)]
struct Sent {
    status: String,
}

#[derive(Deserialize)]
struct ErrorBody {
    message: String,
}

#[derive(Deserialize)]
struct AboutRow {
    run: String,
    about: String,
}

#[derive(Deserialize)]
struct ProblemRow {
    #[serde(default)]
    problem: Option<String>,
}

#[derive(Deserialize)]
struct Rows<T> {
    rows: Vec<T>,
}

/// Major and minor number of a version.
fn numbers(version: &str) -> Option<(u64, u64)> {
    let mut parts = version.split('.').map(|part| part.parse().ok());
    Some((parts.next()??, parts.next()??))
}

/// An error with its causes, without the URL.
fn chain(error: &reqwest::Error) -> String {
    let mut text = String::new();
    let mut next: Option<&dyn std::error::Error> = std::error::Error::source(error);
    while let Some(cause) = next {
        text = cause.to_string();
        next = cause.source();
    }
    if text.is_empty() { error.to_string() } else { text }
}
