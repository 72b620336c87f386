//! MCP over HTTP in `fusee serve`: the same server as `fusee mcp`, behind the same checks as the page.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use fusee_testkit::project::{Project, Running};
use fusee_testkit::script::Line;
use serde_json::{Value, json};

use crate::support::fusee;

struct Served {
    running: Running,
    host: String,
    token: String,
}

fn serve(project: &Project, model: &str, flags: &[&str]) -> Served {
    let command = fusee(project).args(["serve", "--model", model, "--sandbox", "off"]).args(flags);
    let mut running = command.start();
    running.wait_for_stdout("url", |text| text.contains('\n'));
    let url = running.stdout_so_far().trim().to_owned();
    let (host, token) = url.trim_start_matches("http://").split_once("/#token=").unwrap();
    Served { host: host.to_owned(), token: token.to_owned(), running }
}

struct Answer {
    status: u16,
    session: Option<String>,
    /// The message in the body: JSON, or the last event.
    message: Value,
}

impl Served {
    fn send(&self, method: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let mut stream = TcpStream::connect(&self.host).unwrap();
        let mut head =
            format!("{method} /mcp HTTP/1.1\r\nconnection: close\r\ncontent-length: {}\r\n", body.len());
        let fixed = [("content-type", "application/json"), ("accept", "application/json, text/event-stream")];
        for (name, value) in headers.iter().chain(&fixed) {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        stream.write_all(format!("{head}\r\n{body}").as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let header = |name: &str| {
            head.lines().filter_map(|line| line.split_once(": ")).find(|(known, _)| *known == name)
        };
        let data = body.lines().filter_map(|line| line.strip_prefix("data: ")).rfind(|data| !data.is_empty());
        Answer {
            status: head.split(' ').nth(1).unwrap().parse().unwrap(),
            session: header("mcp-session-id").map(|(_, id)| id.to_owned()),
            message: serde_json::from_str(data.unwrap_or(body)).unwrap_or_default(),
        }
    }

    /// Sends a message as a client that has the token.
    fn post(&self, more: &[(&str, &str)], message: &Value) -> Answer {
        let token = format!("Bearer {}", self.token);
        let own = [("host", self.host.as_str()), ("authorization", token.as_str())];
        let headers: Vec<(&str, &str)> = own.into_iter().chain(more.iter().copied()).collect();
        self.send("POST", &headers, &message.to_string())
    }
}

fn initialize() -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}})
}

#[test]
fn a_client_of_the_older_era_has_a_session_and_runs_a_task() {
    let project = Project::new();
    let model = project.script(&[Line::text("Fine.")]);
    let served = serve(&project, &model, &[]);
    let answer = served.post(&[], &initialize());
    assert_eq!((answer.status, &answer.message["result"]["serverInfo"]["name"]), (200, &json!("fusee")));
    let session = answer.session.unwrap();
    let session = [("mcp-session-id", session.as_str()), ("mcp-protocol-version", "2025-11-25")];
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(served.post(&session, &ready).status, 202);
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call",
        "params": {"name": "fusee_run", "arguments": {"request": "Are you fine?", "flow": "flat"}}});
    let answer = served.post(&session, &call);
    assert_eq!(answer.message["result"]["structuredContent"]["answer"], "Fine.", "{:#}", answer.message);
    let token = format!("Bearer {}", served.token);
    let own = [("host", served.host.as_str()), ("authorization", token.as_str()), session[0]];
    assert!(served.send("DELETE", &own, "").status < 300);
    assert_eq!(served.post(&session, &call).status, 404);
}

#[test]
fn a_client_of_the_newer_era_needs_no_session() {
    let project = Project::new();
    let served = serve(&project, &project.script(&[]), &[]);
    let message = |method: &str| {
        json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": {"_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"}}}})
    };
    for (method, part) in [("server/discover", "supportedVersions"), ("tools/list", "tools")] {
        let headers = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", method)];
        let answer = served.post(&headers, &message(method));
        assert_eq!((answer.status, answer.session), (200, None), "{:#}", answer.message);
        assert!(answer.message["result"][part].is_array(), "{:#}", answer.message);
    }
}

#[test]
fn only_who_has_the_token_and_the_address_is_answered() {
    let project = Project::new();
    let served = serve(&project, &project.script(&[]), &[]);
    let (host, token) = (served.host.as_str(), format!("Bearer {}", served.token));
    let hello = initialize().to_string();
    let status = |headers: &[(&str, &str)]| served.send("POST", headers, &hello).status;
    assert_eq!(status(&[("host", host)]), 401);
    assert_eq!(status(&[("host", host), ("authorization", "Bearer wrong-wrong-wrong-wrong")]), 401);
    assert_eq!(status(&[("host", "evil.example"), ("authorization", &token)]), 421);
    assert_eq!(status(&[("host", host), ("authorization", &token), ("origin", "http://evil.example")]), 403);
    assert!(served.running.id() > 0);
    let read_only = serve(&project, &project.script(&[]), &["--read-only"]);
    assert_eq!(read_only.post(&[], &initialize()).status, 403);
}
