//! A Restate server with data and ports of its own.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::process::{Child, Usage};
use crate::{floor, rows, text};

/// How long the server and the workers may take to start.
const READY: Duration = Duration::from_secs(60);

pub(crate) struct Server {
    child: Child,
    folder: PathBuf,
    admin: u16,
    ingress: u16,
}

/// A port that was free a moment ago.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port").port()
}

impl Server {
    pub(crate) fn start(binary: &Path, folder: &Path) -> Self {
        let folder = folder.join("engine");
        std::fs::create_dir_all(&folder).expect("a folder");
        let log = std::fs::File::create(folder.join("server.log")).expect("a log");
        let (admin, ingress, node) = (free_port(), free_port(), free_port());
        let child = Child::spawn(
            Command::new(binary)
                .args(["--bind-ip", "127.0.0.1", "--listen-mode", "tcp", "--no-logo", "--base-dir"])
                .arg(&folder)
                .args(["--bind-port", &node.to_string()])
                .env("RESTATE_ADMIN__BIND_PORT", admin.to_string())
                .env("RESTATE_INGRESS__BIND_PORT", ingress.to_string())
                .env("RESTATE_DEFAULT_NUM_PARTITIONS", "2")
                .env("RESTATE_DISABLE_TELEMETRY", "true")
                .stderr(log),
        );
        wait_for(admin, "/health");
        Self { child, folder, admin, ingress }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.admin)
    }

    pub(crate) fn folder(&self) -> PathBuf {
        self.folder.clone()
    }

    pub(crate) fn usage(&self) -> Usage {
        self.child.usage()
    }

    /// Waits until a worker has registered a service.
    pub(crate) async fn wait_for_service(&self, service: &str, http: &reqwest::Client) {
        let begun = Instant::now();
        let url = format!("{}/services/{service}", self.url());
        while !http.get(&url).send().await.is_ok_and(|answer| answer.status().is_success()) {
            assert!(begun.elapsed() < READY, "no worker registers");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Starts a run of the worker that does nothing.
    pub(crate) async fn send_floor(&self, key: &str, work: &floor::Work, http: &reqwest::Client) {
        let url = format!("http://127.0.0.1:{}/{}/{key}/run/send", self.ingress, floor::SERVICE);
        let body = serde_json::to_string(work).expect("JSON");
        let sent = http.post(url).header("content-type", "application/json").body(body).send().await;
        text(sent.expect("an answer")).await;
    }

    /// Waits for the end of a run.
    pub(crate) async fn attach(&self, service: &str, key: &str, http: &reqwest::Client, limit: Duration) {
        let url = format!("http://127.0.0.1:{}/restate/workflow/{service}/{key}/attach", self.ingress);
        text(http.get(url).timeout(limit).send().await.expect("the run ends")).await;
    }

    /// Number of the entries that a run has recorded, and the bytes of its log.
    pub(crate) async fn entries(&self, key: &str, http: &reqwest::Client) -> (u64, u64) {
        let query = format!(
            "SELECT count(*) FILTER (WHERE j.name LIKE 'entry %') AS entries, sum(octet_length(encode(j.raw, 'hex')) / 2) AS bytes FROM \
             sys_journal j JOIN sys_invocation i ON j.id = i.id WHERE i.target_service_key = '{key}' AND \
             i.target_handler_name = 'run'"
        );
        let request = http.post(format!("{}/query", self.url())).header("accept", "application/json");
        let request =
            request.header("content-type", "application/json").body(json!({"query": query}).to_string());
        let found = rows(&text(request.send().await.expect("an answer")).await);
        let number = |name: &str| found.first().and_then(|row| row[name].as_u64()).unwrap_or_default();
        (number("entries"), number("bytes"))
    }
}

/// Registers a worker.
pub(crate) fn register(engine: &str, worker: &str) {
    let body: Value = json!({"uri": worker, "force": true});
    let begun = Instant::now();
    while ureq::post(format!("{engine}/deployments"))
        .header("content-type", "application/json")
        .send(body.to_string())
        .is_err()
    {
        assert!(begun.elapsed() < READY, "the worker cannot be registered");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn wait_for(port: u16, path: &str) {
    let begun = Instant::now();
    while ureq::get(format!("http://127.0.0.1:{port}{path}")).call().is_err() {
        assert!(begun.elapsed() < READY, "the server does not answer");
        std::thread::sleep(Duration::from_millis(50));
    }
}
