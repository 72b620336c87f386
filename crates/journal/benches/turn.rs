//! Cost of a turn for the journal: its two commits in time, bytes and instructions; and the memory of an open
//! run.
//!
//! `cargo bench -p fusee-journal` runs everything; pass one of the names below to run only that. `encode N`
//! prints nothing: it encodes N results, for counting instructions (`valgrind --tool=callgrind BINARY encode
//! 1000`).
#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark prints its results and panics on failure"
)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use fusee_journal::event::{Role, ToolResult};
use fusee_journal::{
    Branch, Clock, Durability, DurableRun, Event, IntentFn, Intention, Journal, JournalOptions, RunId,
    SqliteRun, StepBody, StepKind, StepRequest,
};
use serde_json::{Value, json};

struct Wall;

impl Clock for Wall {
    fn now_ms(&self) -> i64 {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        since.as_millis().try_into().unwrap_or_default()
    }
}

fn main() {
    let arguments: Vec<_> = std::env::args().collect();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    if let [_, what, count, ..] = arguments.as_slice()
        && what == "encode"
    {
        return runtime.block_on(encode(count.parse().expect("a number")));
    }
    let only = arguments.get(1).map(String::as_str).filter(|only| !only.starts_with("--"));
    let wanted = |name: &str| only.is_none_or(|only| only == name);
    runtime.block_on(async {
        if wanted("turns") {
            turns(Durability::Process).await;
        }
        if wanted("power") {
            turns(Durability::Power).await;
        }
        if wanted("side_by_side") {
            side_by_side().await;
        }
        if wanted("weight") {
            weight().await;
        }
        if wanted("reading_back") {
            reading_back().await;
        }
        if wanted("collecting") {
            collecting().await;
        }
    });
}

fn run(name: &str) -> RunId {
    name.parse().expect("a run id")
}

fn journal(directory: &tempfile::TempDir, durability: Durability) -> Journal {
    let options = JournalOptions { durability, ..JournalOptions::default() };
    Journal::open(&directory.path().join("journal.db"), options, Arc::new(Wall)).expect("it opens")
}

fn body<'a>(value: Value) -> StepBody<'a> {
    Box::new(|| Box::pin(async { value }))
}

/// First half of a turn: a reply of a few hundred words that calls a command, and its events.
async fn reply(engine: &SqliteRun, n: usize, added: &Value) {
    let main = Branch::main();
    let text = format!("Turn {n}. {}", "The parser drops the last token of a line. ".repeat(8));
    let reply = json!({
        "reply": {"text": text, "calls": [{"id": format!("c{n}"), "name": "shell", "arguments": {"command": "cargo test"}}],
            "usage": {"input_tokens": 5000 + n, "output_tokens": 150}},
        "attempt": 1,
    });
    let call = StepRequest {
        branch: main.clone(),
        kind: StepKind::Model,
        callee: "m".into(),
        args: json!({"messages": added}),
    };
    engine.emit(
        &main,
        Event::TurnStart {
            turn_index: 0,
            turn_id: format!("main:{n}"),
            input_tokens: 5000,
            max_turns: None,
            max_input_tokens: None,
        },
    );
    engine.record_step(call, body(reply)).await.expect("asked");
    engine.emit(&main, Event::Message { role: Role::Assistant, text });
    let arguments = json!({"command": "cargo test"});
    engine.emit(&main, Event::ToolCall { call_id: format!("c{n}"), name: "shell".into(), arguments });
}

/// Second half of a turn: the command, its 2 kB of output, and its events.
async fn command(engine: &SqliteRun, n: usize) -> Value {
    let main = Branch::main();
    let content = format!("turn {n}\n{}", "test parser::drops_nothing ... ok\n".repeat(60));
    let args = json!({"command": "cargo test"});
    let call = StepRequest { branch: main.clone(), kind: StepKind::Tool, callee: "shell".into(), args };
    let intend: IntentFn<'_> =
        Box::new(|| Box::pin(async { Intention::Proceed(json!({"command": "cargo test"})) }));
    let result = json!({"output": {"ok": true, "content": content, "exit_code": 0, "truncated": false}});
    engine.once(call, intend, body(result)).await.expect("it runs");
    engine.emit(
        &main,
        Event::ToolResult(ToolResult {
            call_id: format!("c{n}"),
            ok: true,
            content: content.clone(),
            truncated: false,
            duration_ms: 3,
            exit_code: Some(0),
            fate: None,
        }),
    );
    let turn_id = format!("main:{n}");
    let (output_tokens, cached_tokens, tool_calls, duration_ms) = (150, 4_000, 1, 10);
    let complete = Event::TurnComplete {
        turn_index: 0,
        turn_id,
        output_tokens,
        cached_tokens,
        tool_calls,
        duration_ms,
        wait_ms: None,
    };
    engine.emit(&main, complete);
    json!([{"role": "tool", "call_id": format!("c{n}"), "content": content}])
}

fn percentiles(name: &str, mut times: Vec<Duration>) {
    times.sort();
    let at = |part: usize| times[(times.len() * part / 100).min(times.len() - 1)].as_secs_f64() * 1e6;
    println!("{name:<44} p50 {:8.1} us   p90 {:8.1} us   p99 {:8.1} us", at(50), at(90), at(99));
}

async fn turns(durability: Durability) {
    let directory = tempfile::tempdir().expect("a directory");
    let journal = journal(&directory, durability);
    let engine = SqliteRun::begin(&journal, &run("r"), "").await.expect("a run");
    let count = if durability == Durability::Power { 300 } else { 5000 };
    let (mut firsts, mut seconds) = (Vec::new(), Vec::new());
    let before = worked();
    let mut added = json!([]);
    for n in 0..count {
        reply(&engine, n, &added).await;
        let started = Instant::now();
        engine.flush().await.expect("committed");
        firsts.push(started.elapsed());
        added = command(&engine, n).await;
        let started = Instant::now();
        engine.flush().await.expect("committed");
        seconds.push(started.elapsed());
    }
    percentiles(&format!("{durability:?}: commit of a reply and its events"), firsts);
    percentiles(&format!("{durability:?}: commit of a result and its events"), seconds);
    if durability == Durability::Process {
        let each = (worked() - before).as_secs_f64() * 1e6 / count as f64;
        println!("{:<44} {each:>12.1} us", "processor time, a turn");
        drop(engine);
        let size = |name: &str| std::fs::metadata(directory.path().join(name)).map_or(0, |file| file.len());
        println!("{:<44} {:>12} bytes", "file, a turn", size("journal.db") as usize / count);
        println!("{:<44} {:>12} bytes", "log at the end", size("journal.db-wal"));
    }
}

async fn side_by_side() {
    let directory = tempfile::tempdir().expect("a directory");
    let journal = journal(&directory, Durability::Process);
    let (started, before) = (Instant::now(), worked());
    let running: Vec<_> = (0..500)
        .map(|n| {
            let journal = journal.clone();
            tokio::spawn(async move {
                let engine = SqliteRun::begin(&journal, &run(&format!("r{n}")), "").await.expect("a run");
                let mut added = json!([]);
                for n in 0..20 {
                    reply(&engine, n, &added).await;
                    added = command(&engine, n).await;
                }
                engine.flush().await.expect("committed");
            })
        })
        .collect();
    for running in running {
        running.await.expect("it ends");
    }
    let each = started.elapsed().as_secs_f64() * 1e6 / 10_000.0;
    println!("{:<44} {each:>12.1} us a turn", "500 runs at once, 20 turns each");
    let each = (worked() - before).as_secs_f64() * 1e6 / 10_000.0;
    println!("{:<44} {each:>12.1} us", "processor time, a turn of these");
}

/// CPU time of all threads so far; unlike wall-clock time, it hardly depends on the load of the machine.
fn worked() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("Linux");
    let fields: Vec<_> = stat.rsplit(") ").next().expect("fields").split(' ').collect();
    let ticks: u64 = fields[11..13].iter().map(|field| field.parse::<u64>().expect("a number")).sum();
    Duration::from_millis(ticks * 10)
}

/// Resident memory in kB.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a line");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

async fn weight() {
    let directory = tempfile::tempdir().expect("a directory");
    let journal = journal(&directory, Durability::Process);
    let mut open = Vec::new();
    let before = resident();
    for n in 0..5000 {
        open.push(SqliteRun::begin(&journal, &run(&format!("r{n}")), "").await.expect("a run"));
    }
    let empty = resident();
    println!("{:<44} {:>12.2} kB", "an open run, nothing asked", (empty - before) as f64 / 5000.0);
    let before = resident();
    let mut readers = Vec::new();
    for engine in open.iter().take(500) {
        let mut events = engine.events();
        let mut added = json!([]);
        for n in 0..20 {
            reply(engine, n, &added).await;
            added = command(engine, n).await;
        }
        engine.flush().await.expect("committed");
        for _ in 0..100 {
            events.next().await.expect("readable");
        }
        readers.push(events);
    }
    println!(
        "{:<44} {:>12.2} kB",
        "an open run after 20 turns, read, idle",
        (resident() - before) as f64 / 500.0
    );
}

async fn reading_back() {
    let directory = tempfile::tempdir().expect("a directory");
    let journal = journal(&directory, Durability::Process);
    let engine = SqliteRun::begin(&journal, &run("r"), "").await.expect("a run");
    let mut added = json!([]);
    for n in 0..500 {
        reply(&engine, n, &added).await;
        added = command(&engine, n).await;
    }
    engine.flush().await.expect("committed");
    drop(engine);
    let started = Instant::now();
    let engine = SqliteRun::resume(&journal, &run("r")).expect("resumable");
    let opened = started.elapsed();
    let mut added = json!([]);
    for n in 0..500 {
        reply(&engine, n, &added).await;
        added = command(&engine, n).await;
    }
    println!("{:<44} {:>12.1} us", "opening a run of 500 turns to resume", opened.as_secs_f64() * 1e6);
    println!("{:<44} {:>12.1} us", "reading a turn back", started.elapsed().as_secs_f64() * 1e6 / 500.0);
    let started = Instant::now();
    let events = journal.events(&run("r"), 0, u64::MAX, 1 << 20).expect("events");
    println!(
        "{:<44} {:>12.1} us",
        "reading an event",
        started.elapsed().as_secs_f64() * 1e6 / events.len() as f64
    );
}

async fn collecting() {
    let directory = tempfile::tempdir().expect("a directory");
    let journal = journal(&directory, Durability::Process);
    for n in 0..1000 {
        let engine = SqliteRun::begin(&journal, &run(&format!("r{n}")), "").await.expect("a run");
        let mut added = json!([]);
        for turn in 0..20 {
            reply(&engine, n * 100 + turn, &added).await;
            added = command(&engine, n * 100 + turn).await;
        }
        engine.finish(fusee_journal::RunStatus::Completed).await.expect("ended");
    }
    let started = Instant::now();
    let collected = journal.collect(500).await.expect("collected");
    let millis = started.elapsed().as_millis();
    println!(
        "{:<44} {millis:>12} ms   {} to {} bytes",
        "removing 500 of 1000 runs", collected.before, collected.after
    );
}

/// Measures only the work of the run's own task: nothing is committed.
async fn encode(turns: usize) {
    let directory = tempfile::tempdir().expect("a directory");
    let journal = journal(&directory, Durability::Process);
    let engine = SqliteRun::begin(&journal, &run("r"), "").await.expect("a run");
    let main = Branch::main();
    for n in 0..turns {
        let content = format!("turn {n}\n{}", "test parser::drops_nothing ... ok\n".repeat(60));
        let args = json!({"command": "cargo test", "n": n});
        let call = StepRequest { branch: main.clone(), kind: StepKind::Tool, callee: "shell".into(), args };
        engine
            .record_step(call, body(json!({"output": {"ok": true, "content": content}})))
            .await
            .expect("it runs");
        engine.emit(&main, Event::Message { role: Role::Assistant, text: content });
    }
}
