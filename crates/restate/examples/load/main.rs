//! Measures many runs at the same time for `cargo xtask load`: on the embedded engine, on a Restate server with a
//! `fusee worker`, and on a Restate server with a worker that does nothing, which is the floor of any worker.
//!
//! A run has turns of one model request each. The model is a script whose replies take a fixed time; every turn but the
//! last calls a tool that looks for files. [`server`] starts the Restate server, [`floor`] is the worker that does nothing.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "a program that measures"
)]

mod floor;
mod process;
mod server;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use fusee::SandboxMode;
use fusee::engine::run::{RunBuilder, RunSpec};
use fusee::journal::{Journal, JournalOptions, RunId};
use fusee::model::{Connection, Models, http_client};
use fusee::system::SystemClock;
use fusee_restate::{BlobStore, Engine, RemoteRun, RunOrder, SERVICE, store, submit};
use futures_util::future::join_all;
use serde_json::Value;

use crate::process::{Child, Usage};
use crate::server::Server;

/// A run may take this long, with all others.
const LIMIT: Duration = Duration::from_secs(900);

/// Runs one after the other, for the latency without load.
const ALONE: usize = 5;

/// What is measured, from the command line.
#[derive(Clone)]
struct Load {
    runs: usize,
    turns: usize,
    model_ms: u64,
    server: PathBuf,
    fusee: PathBuf,
}

/// What was measured.
#[derive(Clone, Default)]
struct Figures {
    name: &'static str,
    /// Mean duration of a run that is alone.
    alone: Duration,
    /// Mean duration of a run among all.
    loaded: Duration,
    /// From the first start to the last end.
    total: Duration,
    /// Recorded entries of a run.
    entries: u64,
    /// Bytes of a run in the engine's log, and of all blobs.
    log_bytes: u64,
    blob_bytes: u64,
    worker: Usage,
    engine: Usage,
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [word, listen] = words.as_slice()
        && word == floor::COMMAND
    {
        return floor::serve(listen).await;
    }
    let [server, fusee, runs, turns, model_ms] = words.as_slice() else {
        eprintln!("arguments: SERVER FUSEE RUNS TURNS MODEL_MS");
        return;
    };
    let number = |word: &String| word.parse::<usize>().expect("a number");
    let load = Load {
        runs: number(runs),
        turns: number(turns),
        model_ms: number(model_ms) as u64,
        server: server.into(),
        fusee: fusee.into(),
    };
    let mut rows = vec![on_restate(&load, None).await];
    rows.push(on_restate(&load, rows.first()).await);
    rows.push(embedded(&load, rows[0].entries).await);
    print_table(&load, &rows);
}

/// The script of a run, and a small workspace.
fn project(load: &Load) -> (tempfile::TempDir, String, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut script = String::new();
    for n in 1..load.turns {
        let call = format!(r#"{{"name":"find_files","arguments":{{"pattern":"*{n}*"}}}}"#);
        let text = "I look at the next part of the project, and then decide what to do.";
        script.push_str(&format!(
            "{{\"text\":\"{text}\",\"tool_calls\":[{call}],\"delay_ms\":{}}}\n",
            load.model_ms
        ));
    }
    script.push_str(&format!("{{\"text\":\"Done.\",\"delay_ms\":{}}}\n", load.model_ms));
    let file = folder.path().join("script.jsonl");
    std::fs::write(&file, script).expect("the script");
    let workspace = folder.path().join("workspace");
    std::fs::create_dir_all(workspace.join("src")).expect("a folder");
    for n in 0..20 {
        let text = format!("// file {n}\n").repeat(100);
        std::fs::write(workspace.join(format!("src/part{n}.rs")), text).expect("a file");
    }
    (folder, format!("script:{}", file.display()), workspace)
}

fn spec(n: usize, model: &str, workspace: &Path) -> RunSpec {
    RunSpec {
        sandbox: SandboxMode::Off,
        sandbox_state: "off".into(),
        commands_preapproved: true,
        ..RunSpec::new(format!("task {n}"), model.to_owned(), workspace)
    }
}

async fn embedded(load: &Load, entries: u64) -> Figures {
    let (folder, name, workspace) = project(load);
    let file = folder.path().join("journal/journal.db");
    let journal = Journal::open(&file, JournalOptions::default(), Arc::new(SystemClock)).expect("a journal");
    let one = async |n: usize| {
        let begun = Instant::now();
        let model =
            Models::new(std::time::SystemTime::now).open(&name, &Connection::default()).expect("a script");
        let run: RunId = format!("run-{n}").parse().expect("an id");
        let builder = RunBuilder::new(spec(n, &name, &workspace), journal.clone(), model);
        let ended = builder.start(&run).await.expect("it starts").outcome().await;
        assert_eq!(ended.exit() as u8, 0);
        begun.elapsed()
    };
    let before = process::usage(std::process::id());
    let (alone, loaded, total) = measure(load, one).await;
    let worker = process::usage(std::process::id()).since(&before);
    Figures { name: "embedded engine", alone, loaded, total, entries, worker, ..Figures::default() }
}

/// With a `fusee worker`; or, given the figures of one, with a worker that records as many entries and does nothing else.
async fn on_restate(load: &Load, like: Option<&Figures>) -> Figures {
    let (folder, model, workspace) = project(load);
    let server = Server::start(&load.server, folder.path());
    let engine = Engine::connect(&server.url()).await.expect("an engine");
    let blobs_folder = folder.path().join("blobs");
    let blobs = BlobStore::directory(&blobs_folder).expect("a store");
    let files = store(&workspace, &blobs).await.expect("stored");
    let http = http_client(&server.url(), &Connection::default()).expect("a client");
    let (worker, service) = match like {
        None => (Child::worker(&load.fusee, &server.url(), folder.path()), SERVICE),
        Some(_) => (Child::floor(&server.url(), folder.path()), floor::SERVICE),
    };
    server.wait_for_service(service, &http).await;
    let log_before = process::size(&server.folder());
    let blobs_before = process::size(&blobs_folder);
    let one = async |n: usize| {
        let begun = Instant::now();
        let key = format!("run-{n}");
        match like {
            None => {
                let remote = RemoteRun {
                    engine: engine.clone(),
                    blobs: blobs.clone(),
                    run: key.parse().expect("an id"),
                };
                let order = RunOrder {
                    spec: spec(n, &model, &workspace),
                    directory: workspace.clone(),
                    files: files.clone(),
                    tenant: None,
                };
                submit(&remote, &order).await.expect("submitted");
            }
            Some(figures) => {
                let bytes = figures.log_bytes / figures.entries.max(1);
                server.send_floor(&key, &floor::Work::new(load, figures.entries, bytes), &http).await;
            }
        }
        server.attach(service, &key, &http, LIMIT).await;
        begun.elapsed()
    };
    let (alone, loaded, total) = measure(load, one).await;
    let counted = server.entries("run-0", &http).await;
    Figures {
        name: if like.is_none() { "Restate, `fusee worker`" } else { "Restate, a worker that does nothing" },
        alone,
        loaded,
        total,
        entries: counted.0,
        log_bytes: counted.1,
        blob_bytes: (process::size(&blobs_folder) - blobs_before) / (load.runs + ALONE) as u64,
        worker: worker.usage(),
        engine: server.usage(),
    }
    .with_log(process::size(&server.folder()).saturating_sub(log_before), load)
}

/// Mean of runs that are alone, mean of runs among all, and the time of all.
async fn measure(load: &Load, one: impl AsyncFn(usize) -> Duration) -> (Duration, Duration, Duration) {
    let mut alone = Duration::ZERO;
    for n in 0..ALONE {
        alone += one(n).await;
    }
    let begun = Instant::now();
    let times = join_all((0..load.runs).map(|n| one(ALONE + n))).await;
    let total = begun.elapsed();
    (alone / ALONE as u32, times.iter().sum::<Duration>() / load.runs as u32, total)
}

impl Figures {
    fn with_log(self, grown: u64, load: &Load) -> Self {
        eprintln!(
            "{}: the server's folder grew by {} KiB per run",
            self.name,
            grown / 1024 / load.runs as u64
        );
        self
    }

    /// What the engine adds to a step, in ms.
    fn added_ms(&self, run: Duration, load: &Load) -> f64 {
        let model = (load.model_ms * load.turns as u64) as f64;
        (run.as_secs_f64() * 1e3 - model) / self.entries.max(1) as f64
    }
}

fn print_table(load: &Load, rows: &[Figures]) {
    println!("{} runs of {} turns, {} ms for a reply:\n", load.runs, load.turns, load.model_ms);
    println!(
        "| | added per entry, alone | with all runs | all ended after | runs/min | processor: worker | engine | memory: \
         worker | engine |\n|---|---|---|---|---|---|---|---|---|"
    );
    for row in rows {
        println!(
            "| {} | {:.1} ms | {:.0} ms | {:.1} s | {:.0} | {:.1} s | {:.1} s | {} MiB | {} MiB |",
            row.name,
            row.added_ms(row.alone, load),
            row.added_ms(row.loaded, load),
            row.total.as_secs_f64(),
            load.runs as f64 * 60.0 / row.total.as_secs_f64(),
            row.worker.cpu.as_secs_f64(),
            row.engine.cpu.as_secs_f64(),
            row.worker.peak_kib / 1024,
            row.engine.peak_kib / 1024,
        );
    }
    let [fusee, floor, ..] = rows else { return };
    let per_run = |usage: &Usage| usage.cpu.as_secs_f64() * 1e3 / (load.runs + ALONE) as f64;
    println!(
        "\n{:.2} times the floor. A run has {} entries with {} bytes in the log and {} bytes of blobs; it takes {:.1} ms of a \
         processor on the worker and {:.1} ms on the engine.",
        fusee.total.as_secs_f64() / floor.total.as_secs_f64(),
        fusee.entries,
        fusee.log_bytes,
        fusee.blob_bytes,
        per_run(&fusee.worker),
        per_run(&fusee.engine),
    );
}

/// The text of an answer, which must be a success.
async fn text(answer: reqwest::Response) -> String {
    let (status, url) = (answer.status(), answer.url().clone());
    let text = answer.text().await.expect("a text");
    assert!(status.is_success(), "{url}: {status}: {text}");
    text
}

fn rows(answer: &str) -> Vec<Value> {
    let answer: Value = serde_json::from_str(answer).expect("JSON");
    answer["rows"].as_array().cloned().unwrap_or_default()
}
