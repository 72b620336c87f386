//! `fusee dev-engine`.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use clap::Args;
use fusee::engine::run::ExitStatus;
use fusee_restate::Engine;
use tokio::signal::unix::{SignalKind, signal};

use super::no_home;
use crate::process::Process;
use crate::process::error::CliError;
use crate::process::stdio;

/// Where the npm package has its binary, below the folder in which it is installed.
const IN_PACKAGE: &[&str] = &[
    "node_modules/@restatedev/restate-server-linux-x64/bin/restate-server",
    "node_modules/@restatedev/restate-server-linux-arm64/bin/restate-server",
    "node_modules/@restatedev/restate-server-darwin-arm64/bin/restate-server",
    "node_modules/@restatedev/restate-server-darwin-x64/bin/restate-server",
    "restate-server",
];

/// How long the server may take to start.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Start an engine on this machine, to try it out.
///
/// Runs an installed `restate-server` (`npm install @restatedev/restate-server`) on 127.0.0.1 until ctrl-c. Its data is
/// kept, so runs continue after a restart.
#[derive(Args)]
pub(crate) struct DevEngineArgs {
    /// Path of the server, or the folder where its npm package is installed [default: `restate-server` on the PATH, or the
    /// package in this directory]
    #[arg(long, value_name = "PATH")]
    server: Option<PathBuf>,
    /// Folder for the data of the server [default: in the state folder]
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
}

/// Runs the command.
#[expect(clippy::disallowed_methods, reason = "the user's own server, not a command of a run")]
pub(crate) async fn dev_engine(args: &DevEngineArgs, process: &Process) -> Result<ExitStatus, CliError> {
    let environment = &process.environment;
    let directory = environment.directory();
    let server = find(args.server.as_deref().map(|given| directory.join(given)), process)?;
    let folder = match &args.folder {
        Some(given) => directory.join(given),
        None => environment.state_folder().ok_or_else(no_home)?.join("dev-engine"),
    };
    let failed =
        |error: std::io::Error| CliError::failed(format!("cannot run {}: {error}", server.display()));
    std::fs::create_dir_all(&folder)
        .map_err(|error| CliError::failed(format!("{}: {error}", folder.display())))?;
    let log = folder.join("server.log");
    let output = std::fs::File::create(&log).map_err(failed)?;
    let mut child = StopOnDrop(
        Command::new(&server)
            .args(["--bind-ip", "127.0.0.1", "--listen-mode", "tcp", "--no-logo", "--base-dir"])
            .arg(&folder)
            .env("RESTATE_DISABLE_TELEMETRY", "true")
            .stdin(Stdio::null())
            .stdout(output.try_clone().map_err(failed)?)
            .stderr(output)
            .spawn()
            .map_err(failed)?,
    );
    let engine = ready(&mut child.0, &log).await?;
    stdio::print(&format!("{}\n", engine.url()))?;
    stdio::error(&format!(
        "engine at {url}; start a worker with `fusee worker --engine {url}`; ctrl-c stops it\n",
        url = engine.url()
    ));
    let (mut interrupt, mut terminate) =
        (signal(SignalKind::interrupt()).map_err(failed)?, signal(SignalKind::terminate()).map_err(failed)?);
    loop {
        tokio::select! {
            _ = interrupt.recv() => return Ok(ExitStatus::Completed),
            _ = terminate.recv() => return Ok(ExitStatus::Completed),
            () = tokio::time::sleep(Duration::from_millis(500)) => check(&mut child.0, &log)?,
        }
    }
}

/// The server, stopped when the command ends.
struct StopOnDrop(Child);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        // The data of the server survives this.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn find(given: Option<PathBuf>, process: &Process) -> Result<PathBuf, CliError> {
    let in_folder =
        |folder: &Path| IN_PACKAGE.iter().map(|name| folder.join(name)).find(|path| path.is_file());
    let found = match &given {
        Some(path) if path.is_file() => Some(path.clone()),
        Some(folder) => in_folder(folder),
        None => {
            let path = process.environment.variable("PATH").unwrap_or_default();
            let on_path = std::env::split_paths(&path).map(|folder| folder.join("restate-server"));
            on_path
                .into_iter()
                .find(|path| path.is_file())
                .or_else(|| in_folder(process.environment.directory()))
        }
    };
    found.ok_or_else(|| {
        let place =
            given.map_or_else(|| "PATH or this directory".to_owned(), |path| path.display().to_string());
        CliError::usage(format!("no restate-server in {place}")).help(
            "install it with `npm install @restatedev/restate-server`, and pass the folder with --server",
        )
    })
}

/// Waits until the server answers.
async fn ready(child: &mut Child, log: &Path) -> Result<Engine, CliError> {
    let started = Instant::now();
    loop {
        check(child, log)?;
        match Engine::connect("http://127.0.0.1:9070").await {
            Ok(engine) => return Ok(engine),
            Err(error) if started.elapsed() > TIMEOUT => return Err(error.into()),
            Err(_) => tokio::time::sleep(Duration::from_millis(200)).await,
        }
    }
}

/// Fails if the server has ended.
fn check(child: &mut Child, log: &Path) -> Result<(), CliError> {
    match child.try_wait() {
        Ok(Some(status)) => Err(CliError::failed(format!("the server ended: {status}"))
            .help(format!("its messages are in {}", log.display()))),
        _ => Ok(()),
    }
}
