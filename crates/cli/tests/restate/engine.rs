//! A Restate server of the test, its workers, and the commands that use them.

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command as Process, Stdio};
use std::time::{Duration, Instant};

use fusee_testkit::project::{Command, Project, Running};

pub(crate) const FUSEE: &str = env!("CARGO_BIN_EXE_fusee");

/// Where `cargo xtask suites restate` installs the servers.
pub(crate) fn installed() -> PathBuf {
    std::env::var_os("FUSEE_RESTATE")
        .expect("FUSEE_RESTATE: run `cargo xtask suites restate`, which installs the server")
        .into()
}

/// The server's binary.
fn binary() -> PathBuf {
    installed().join("node_modules/@restatedev/restate-server-linux-x64/bin/restate-server")
}

/// A port that was free a moment ago.
pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}

/// A server with ports and data of its own.
pub(crate) struct Engine {
    child: Child,
    folder: tempfile::TempDir,
    ports: [u16; 3],
    signs: bool,
}

impl Engine {
    pub(crate) fn start() -> Self {
        Self::started(false)
    }

    /// A server that signs its requests, and its public key.
    pub(crate) fn start_signing() -> (Self, String) {
        let engine = Self::started(true);
        let log = engine.log();
        let (_, rest) = log.split_once("publickeyv1_").expect("the server tells its key");
        let key: String = rest.chars().take_while(char::is_ascii_alphanumeric).collect();
        (engine, format!("publickeyv1_{key}"))
    }

    fn started(signs: bool) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let ports = [free_port(), free_port(), free_port()];
        if signs {
            let made = Process::new("openssl")
                .args(["genpkey", "-algorithm", "ed25519", "-out"])
                .arg(folder.path().join("key.pem"))
                .status();
            assert!(made.expect("openssl").success());
        }
        let child = Self::spawn(&folder, ports, signs);
        let engine = Self { child, folder, ports, signs };
        engine.wait_until_ready();
        engine
    }

    fn spawn(folder: &tempfile::TempDir, [admin, ingress, node]: [u16; 3], signs: bool) -> Child {
        let log = std::fs::File::options()
            .append(true)
            .create(true)
            .open(folder.path().join("server.log"))
            .expect("a log");
        let key = signs.then(|| folder.path().join("key.pem"));
        Process::new(binary())
            .envs(key.map(|key| ("RESTATE_WORKER__INVOKER__REQUEST_IDENTITY_PRIVATE_KEY_PEM_FILE", key)))
            .args(["--bind-ip", "127.0.0.1", "--listen-mode", "tcp", "--no-logo"])
            .arg("--base-dir")
            .arg(folder.path())
            .args(["--bind-port", &node.to_string()])
            .env("RESTATE_ADMIN__BIND_PORT", admin.to_string())
            .env("RESTATE_INGRESS__BIND_PORT", ingress.to_string())
            .env("RESTATE_DEFAULT_NUM_PARTITIONS", "2")
            .env("RESTATE_NODE_NAME", "test")
            .env("RESTATE_DISABLE_TELEMETRY", "true")
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a log"))
            .stderr(log)
            .spawn()
            .expect("the server starts")
    }

    fn wait_until_ready(&self) {
        let begun = Instant::now();
        while ureq::get(format!("{}/health", self.url())).call().is_err() {
            assert!(begun.elapsed() < Duration::from_secs(60), "the server does not answer:\n{}", self.log());
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Kills the server and starts it again on its data.
    pub(crate) fn kill_and_restart(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
        std::thread::sleep(Duration::from_millis(300));
        self.child = Self::spawn(&self.folder, self.ports, self.signs);
        self.wait_until_ready();
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.ports[0])
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("server.log")).unwrap_or_default()
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A worker that is registered, and trusts its clients.
pub(crate) fn worker(project: &Project, engine: &Engine) -> Running {
    worker_with(project, engine, &["--allow-unsandboxed"], &[])
}

/// A worker that is registered.
pub(crate) fn worker_with(
    project: &Project,
    engine: &Engine,
    args: &[&str],
    variables: &[(&str, &str)],
) -> Running {
    let url = engine.url();
    let before = deployments(&url);
    let listen = format!("127.0.0.1:{}", free_port());
    let worker = project.command(FUSEE).args(["worker", "--engine", &url, "--listen", &listen]).args(args);
    let worker = variables.iter().fold(worker, |worker, (name, value)| worker.env(name, value));
    let mut worker = worker.limit(Duration::from_secs(300)).start();
    let begun = Instant::now();
    while deployments(&url) == before {
        assert!(
            worker.is_running() && begun.elapsed() < Duration::from_secs(30),
            "the worker does not register"
        );
        std::thread::sleep(Duration::from_millis(50));
    }
    worker
}

fn deployments(url: &str) -> usize {
    let text = ureq::get(format!("{url}/deployments")).call().expect("an answer").body_mut().read_to_string();
    text.expect("a text").matches("\"id\":\"dp_").count()
}

/// A command of fusee with this engine.
pub(crate) fn fusee<'p>(project: &'p Project, engine: &Engine, args: &[&str]) -> Command<'p> {
    let command = project.command(FUSEE).args(args).args(["--engine", &engine.url()]);
    command.limit(Duration::from_secs(120))
}
