//! A proxy in front of the model server that counts requests and tokens, so that every tool is measured in the
//! same way, whatever it reports itself. It passes streams on as they arrive.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use fusee_testkit::server::{ReceivedRequest, RequestReader};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use ureq::http;

use crate::Outcome;

/// What a tool asked of the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Usage {
    pub(crate) requests: u64,
    pub(crate) prompt_tokens: u64,
    /// Tokens of the prompts that the server had in its cache.
    pub(crate) cached_tokens: u64,
    pub(crate) completion_tokens: u64,
}

/// A running proxy; dropping it stops it.
pub(crate) struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

struct Shared {
    /// Scheme and authority of the server.
    origin: String,
    /// Version path of the base URL.
    path: String,
    /// When requests that are still running are given up, so that the server does not work for nobody.
    deadline: Instant,
    usage: Mutex<Usage>,
    stopping: AtomicBool,
}

impl Proxy {
    /// Starts a proxy for the server at this base URL, which passes requests on until the deadline.
    pub(crate) fn start(base_url: &str, deadline: Instant) -> Outcome<Self> {
        let rest = base_url
            .strip_prefix("http://")
            .ok_or_else(|| format!("{base_url}: only http:// servers are supported"))?;
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(|error| error.to_string())?;
        let address = listener.local_addr().map_err(|error| error.to_string())?;
        let shared = Arc::new(Shared {
            origin: format!("http://{authority}"),
            path: path.trim_end_matches('/').to_owned(),
            deadline,
            usage: Mutex::default(),
            stopping: AtomicBool::new(false),
        });
        let acceptor = thread::spawn({
            let shared = Arc::clone(&shared);
            move || {
                for client in listener.incoming().flatten() {
                    if shared.stopping.load(Ordering::SeqCst) {
                        break;
                    }
                    let shared = Arc::clone(&shared);
                    // A tool that leaves early is no error of the proxy.
                    thread::spawn(move || shared.serve(client).ok());
                }
            }
        });
        Ok(Self { address, shared, acceptor: Some(acceptor) })
    }

    /// The server's base URL, through the proxy.
    pub(crate) fn base_url(&self) -> String {
        format!("{}/{}", self.origin(), self.shared.path)
    }

    /// The same without the version path.
    pub(crate) fn origin(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Usage of the requests that have ended.
    pub(crate) fn usage(&self) -> Usage {
        *self.shared.usage.lock()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::SeqCst);
        // A connection of our own wakes accept().
        let _ = TcpStream::connect(self.address);
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
    }
}

impl Shared {
    /// Serves one request; every reply closes its connection.
    fn serve(&self, client: TcpStream) -> io::Result<()> {
        let Some((_, request)) = RequestReader::new(&client).next_request()? else { return Ok(()) };
        let counted = request.is_for_a_model();
        let mut received = Vec::new();
        let outcome = self.forward(&request, &client, &mut received);
        if counted {
            let mut usage = self.usage.lock();
            usage.requests += 1;
            add_tokens(&mut usage, &String::from_utf8_lossy(&received));
        }
        outcome
    }

    /// Passes a request on and its reply back, piece by piece; `received` gets the reply's body.
    fn forward(
        &self,
        request: &ReceivedRequest,
        mut client: &TcpStream,
        received: &mut Vec<u8>,
    ) -> io::Result<()> {
        let mut response = match self.send(request) {
            Ok(response) => response,
            Err(error) => {
                let body = serde_json::json!({"error": {"message": error.to_string()}}).to_string();
                let length = body.len();
                return write!(
                    client,
                    "HTTP/1.1 502 Bad Gateway\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\
                     connection: close\r\n\r\n{body}"
                );
            }
        };
        let kind = response.headers().get("content-type").and_then(|kind| kind.to_str().ok());
        write!(
            client,
            "HTTP/1.1 {}\r\ncontent-type: {}\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n",
            response.status(),
            kind.unwrap_or("application/octet-stream")
        )?;
        let mut body = response.body_mut().as_reader();
        let mut piece = vec![0; 64 * 1024];
        loop {
            let length = body.read(&mut piece)?;
            received.extend(&piece[..length]);
            let mut chunk = format!("{length:x}\r\n").into_bytes();
            chunk.extend(&piece[..length]);
            chunk.extend(b"\r\n");
            client.write_all(&chunk)?;
            if length == 0 {
                return Ok(());
            }
        }
    }

    fn send(&self, request: &ReceivedRequest) -> Result<http::Response<ureq::Body>, ureq::Error> {
        let left = self.deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        let agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(left))
            .build()
            .new_agent();
        let mut passed = http::Request::builder()
            .method(request.method.as_str())
            .uri(format!("{}{}", self.origin, request.path));
        // Headers of the connection itself; the reply is not to be compressed, because it is read here.
        let own = ["host", "connection", "content-length", "transfer-encoding", "accept-encoding", "expect"];
        for (name, value) in request.headers.iter().filter(|(name, _)| !own.contains(&name.as_str())) {
            passed = passed.header(name, value);
        }
        if request.body.is_empty() {
            agent.run(passed.body(())?)
        } else {
            agent.run(passed.body(&request.body[..])?)
        }
    }
}

/// Adds the tokens that a reply reports: one JSON document, or a stream of events of which the last report counts.
fn add_tokens(usage: &mut Usage, reply: &str) {
    let events: Vec<Value> = if reply.trim_start().starts_with('{') {
        serde_json::from_str(reply).into_iter().collect()
    } else {
        let data = reply.lines().filter_map(|line| line.strip_prefix("data:"));
        data.filter_map(|data| serde_json::from_str(data.trim()).ok()).collect()
    };
    let number = |value: &Value, pointer: &str| value.pointer(pointer).and_then(Value::as_u64);
    if let Some(report) = events.iter().rev().find(|event| event["usage"].is_object()) {
        usage.prompt_tokens += number(report, "/usage/prompt_tokens").unwrap_or(0);
        usage.completion_tokens += number(report, "/usage/completion_tokens").unwrap_or(0);
        usage.cached_tokens += number(report, "/usage/prompt_tokens_details/cached_tokens")
            .or_else(|| number(report, "/timings/cache_n"))
            .unwrap_or(0);
    } else if let Some(report) = events.iter().rev().find(|event| event["timings"].is_object()) {
        // llama.cpp reports usage in a stream only on request, but its timings always.
        let cached = number(report, "/timings/cache_n").unwrap_or(0);
        usage.prompt_tokens += cached + number(report, "/timings/prompt_n").unwrap_or(0);
        usage.completion_tokens += number(report, "/timings/predicted_n").unwrap_or(0);
        usage.cached_tokens += cached;
    } else {
        // A stream that was cut has no report; servers send about one event per token.
        usage.completion_tokens += events.len() as u64;
    }
}
