//! Fusee as a library: one task, its events as they come, its journal beside it.
//!
//! `cargo run --example embed -- DIRECTORY MODEL REQUEST`, where MODEL is as in `fusee run -m`.
#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a program of its own: it prints, and tells the libraries the time"
)]

use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use fusee::agent::Limits;
use fusee::approval::{Approve, Nobody};
use fusee::journal::{Clock, Journal, Options};
use fusee::model::{Models, RequestOptions};
use fusee::run::{self, Resources, SandboxMode, Settings};
use fusee::tools::{CommandSettings, Environment, Sandbox};

struct Now;

impl Clock for Now {
    fn now_ms(&self) -> i64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // First of all, before any thread: it forks the process that starts commands, and ends them with us.
    let keeper = fusee::tools::sandbox::init()?;
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [directory, model, request] = arguments.as_slice() else {
        return Err("embed DIRECTORY MODEL REQUEST".into());
    };
    let directory = Path::new(directory).canonicalize()?;
    let model = Models::new(SystemTime::now).open(model, &fusee::model::Settings::default())?;
    let journal = Journal::open(&directory.join(".fusee/journal.db"), Options::default(), Arc::new(Now))?;

    // What decides how the run goes. It is the run's first step: resuming reads it back.
    let settings = Settings {
        version: "embed 1".to_owned(),
        request: request.clone(),
        background: None,
        workspace: directory,
        model: model.name().to_owned(),
        base_url: None,
        wire: model.wire(),
        options: RequestOptions::default(),
        limits: Limits { max_turns: 20, ..Limits::default() },
        approve: Approve::Auto,
        sandbox: SandboxMode::Off,
        sandbox_state: "off".to_owned(),
        commands_settled: true,
        review: None,
        record: None,
    };
    // What it gets from this process.
    let resources = Resources {
        journal,
        model,
        commands: CommandSettings {
            keeper: Some(keeper),
            environment: Environment::allowed(std::env::vars_os()),
            sandbox: Sandbox::Off,
        },
        extra_tools: Vec::new(),
        commands_settled: true,
        approver: Arc::new(Nobody),
        jitter: || 0.0,
    };
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
        let id = format!("embedded-{}", Now.now_ms()).parse::<fusee::journal::RunId>()?;
        let running = run::start(&id, settings, resources).await?;
        let mut events = running.events();
        while let Some(event) = events.next().await? {
            println!("{}", serde_json::to_string(&*event)?);
        }
        println!("{:?}", running.outcome().await.exit());
        Ok(())
    })
}
