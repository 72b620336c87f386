//! Measures the overhead of the agent loop for `cargo xtask bench`: the time from a reply to the next request
//! in a long conversation, rule-based compaction, and event emission. Prints one figure per line: its name, a
//! tab, milliseconds.
#![expect(
    clippy::print_stdout,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "a program that measures"
)]

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fusee_engine::agent::{Limits, compact_by_rule};
use fusee_engine::run::{ExitStatus, RunBuilder, RunSpec, SandboxMode};
use fusee_journal::event::{Event, Role};
use fusee_journal::{Branch, Clock, DurableRun, Journal, JournalOptions, SqliteRun};
use fusee_model::{
    BoxFuture, CancellationToken, Conversation, Dialect, Message, Model, ModelError, Models, Reply,
    ReplyDelta, RequestOptions, ToolCall,
};
use fusee_tools::{Access, CallContext, PreparedCall, RetrySafety, Tool, ToolDefinition, ToolOutput};
use parking_lot::Mutex;
use serde_json::json;

/// Number of timed turns.
const TURNS: usize = 400;

/// Number of timed events.
const EVENTS: usize = 20_000;

/// Number of compactions of each conversation.
const TIMES: usize = 100;

struct Now;

impl Clock for Now {
    fn now_ms(&self) -> i64 {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
        i64::try_from(now.as_millis()).expect("before the year 292 million")
    }
}

/// A model that replies immediately and records the time between requests.
struct Timed {
    dialect: Dialect,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    replied: Option<Instant>,
    gaps: Vec<Duration>,
}

impl Model for Timed {
    fn name(&self) -> &str {
        "timed"
    }

    fn dialect(&self) -> Dialect {
        self.dialect
    }

    fn send<'a>(
        &'a self,
        _conversation: &'a Conversation,
        _options: &'a RequestOptions,
        _sink: &'a mut (dyn FnMut(ReplyDelta<'_>) + Send),
        _cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Reply, ModelError>> {
        Box::pin(async {
            let mut state = self.state.lock();
            if let Some(replied) = state.replied {
                state.gaps.push(replied.elapsed());
            }
            let turn = state.gaps.len();
            let call = ToolCall {
                id: format!("c{turn}"),
                name: "look".to_owned(),
                arguments: json!({ "at": turn }).to_string(),
            };
            let reply = if turn < TURNS {
                Reply { tool_calls: vec![call], ..Reply::default() }
            } else {
                Reply { text: "Done.".to_owned(), ..Reply::default() }
            };
            state.replied = Some(Instant::now());
            Ok(reply)
        })
    }
}

/// A tool that does nothing but answer.
struct Look {
    definition: ToolDefinition,
}

impl Look {
    fn new() -> Self {
        let definition = ToolDefinition {
            name: "look".into(),
            description: "Looks.".into(),
            parameters: json!({"type": "object", "properties": {"at": {"type": "integer"}}}),
            category: Access::Read,
            aliases: &[],
            parameter_aliases: &[],
        };
        Self { definition }
    }
}

impl Tool for Look {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn repeat(&self) -> RetrySafety {
        RetrySafety::Idempotent
    }

    fn prepare<'a>(
        &'a self,
        arguments: serde_json::Value,
        _context: &'a CallContext,
    ) -> BoxFuture<'a, Result<PreparedCall, ToolOutput>> {
        Box::pin(async { Ok(PreparedCall::new(serde_json::Value::Null, arguments)) })
    }

    fn perform<'a>(&'a self, prepared: PreparedCall, _context: &'a CallContext) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move {
            match prepared.into_plan::<serde_json::Value>() {
                Ok(at) => ToolOutput::done(format!("Seen: {at}")),
                Err(answer) => answer,
            }
        })
    }
}

/// Times from a reply to the next request, including the call in between and its two commits.
async fn turn_beginnings(directory: &Path) -> Vec<Duration> {
    let file = directory.join("script.jsonl");
    std::fs::write(&file, "{\"text\":\"unused\"}\n").expect("a script");
    let script = Models::new(std::time::SystemTime::now)
        .open(&format!("script:{}", file.display()), &fusee_model::Connection::default())
        .expect("a script");
    let model = Arc::new(Timed { dialect: script.dialect(), state: Mutex::default() });
    let journal =
        Journal::open(&directory.join(".fusee/journal.db"), JournalOptions::default(), Arc::new(Now));
    let settings = RunSpec {
        limits: Limits { max_turns: u32::MAX, max_tokens: 10_000_000, ..Limits::default() },
        sandbox: SandboxMode::Off,
        sandbox_state: "off".into(),
        commands_preapproved: true,
        // About 100 000 tokens that precede every turn.
        ..RunSpec::new("Look at all of it. ".repeat(21_000), "timed", directory)
    };
    let mut builder =
        RunBuilder::new(settings, journal.expect("a journal"), Arc::clone(&model) as Arc<dyn Model>);
    builder.deps.extra_tools.push(Arc::new(Look::new()));
    let run = "timed".parse().expect("a run id");
    let running = builder.start(&run).await.expect("it starts");
    assert_eq!(running.outcome().await.exit(), ExitStatus::Completed);
    let mut gaps = std::mem::take(&mut model.state.lock().gaps);
    assert_eq!(gaps.len(), TURNS);
    gaps.sort();
    gaps
}

/// Times event emission with a commit at the end: each event, and all of them with the commit.
async fn event_emission(directory: &Path) -> (Vec<Duration>, Duration) {
    let journal = Journal::open(&directory.join("events.db"), JournalOptions::default(), Arc::new(Now));
    let run = "events".parse().expect("a run id");
    let journal = journal.expect("a journal");
    let embedded = SqliteRun::begin(&journal, &run, "events").await.expect("it begins");
    let branch = Branch::main();
    let event = Event::Message { role: Role::Assistant, text: "A few words of an answer. ".repeat(8) };
    let all = Instant::now();
    let mut times: Vec<Duration> = (0..EVENTS)
        .map(|_| {
            let event = event.clone();
            let start = Instant::now();
            embedded.emit(&branch, event);
            start.elapsed()
        })
        .collect();
    embedded.flush().await.expect("it is written down");
    let all = all.elapsed();
    times.sort();
    (times, all)
}

fn answered(turn: usize, calls: &[(&str, String, String)]) -> Vec<Message> {
    let id = |n: usize| format!("c{turn}-{n}");
    let tool_calls = calls.iter().enumerate().map(|(n, (name, arguments, _))| ToolCall {
        id: id(n),
        name: (*name).to_owned(),
        arguments: arguments.clone(),
    });
    let said = Message::Assistant {
        text: "I look at the next part. Then I change it.".to_owned(),
        reasoning: None,
        tool_calls: tool_calls.collect(),
    };
    let results = calls.iter().enumerate().map(|(n, (name, _, content))| Message::Tool {
        call_id: id(n),
        name: (*name).to_owned(),
        content: content.clone(),
        ok: true,
        images: vec![],
    });
    [said].into_iter().chain(results).collect()
}

/// A conversation of about 100 000 tokens, 400 000 bytes.
fn conversation(turns: usize, calls: impl Fn(usize) -> Vec<(&'static str, String, String)>) -> Vec<Message> {
    let goal = Message::user("Port the parser. ".repeat(40));
    [goal].into_iter().chain((0..turns).flat_map(|turn| answered(turn, &calls(turn)))).collect()
}

/// Conversations of similar size and different shape.
fn conversations() -> [(&'static str, Vec<Message>); 3] {
    let line = "    let value = self.next_token()?.expect_identifier(&mut diagnostics);\n";
    let text = move |bytes: usize| line.repeat(bytes / line.len());
    let path = |n: usize| json!({"path": format!("src/{n}.rs")}).to_string();
    let session = conversation(100, |turn| match turn % 4 {
        0 => vec![("read_file", path(turn % 20), text(6_000)), ("read_file", path(turn % 7), text(3_000))],
        1 => vec![("search_text", json!({"pattern": "fn parse"}).to_string(), text(2_000))],
        2 => vec![("shell", json!({"command": "cargo test --all"}).to_string(), text(4_500))],
        _ => vec![(
            "edit_file",
            json!({"path": "src/1.rs", "old": "a", "new": text(600)}).to_string(),
            text(200),
        )],
    });
    let small = conversation(2_500, |turn| {
        let arguments = json!({"path": format!("src/module_{turn}/mod.rs"), "old": "a", "new": "b"});
        vec![("edit_file", arguments.to_string(), "1 replacement".to_owned())]
    });
    let one =
        conversation(1, |_| (0..1_000).map(|n| ("read_file", path(n), "let x = 1;\n".repeat(32))).collect());
    [("a session", session), ("small turns", small), ("one reply", one)]
}

/// The median of a typical compaction, and the worst of all shapes and targets.
fn compaction() -> (Duration, Duration) {
    let (mut usual, mut worst) = (Duration::ZERO, Duration::ZERO);
    for (shape, messages) in conversations() {
        for (recent, target) in [(20_000, 40_000), (20_000, 70_000), (2_000, 5_000), (0, 0)] {
            let time = || {
                let start = Instant::now();
                black_box(compact_by_rule(black_box(&messages), recent, target));
                start.elapsed()
            };
            let mut times: Vec<Duration> = (0..TIMES).map(|_| time()).collect();
            times.sort();
            if (shape, target) == ("a session", 40_000) {
                usual = times[TIMES / 2];
            }
            // The slowest of a hundred measures other load on the machine, so the 90th percentile is used.
            worst = worst.max(times[TIMES * 9 / 10]);
        }
    }
    (usual, worst)
}

fn notify(name: &str, time: Duration) {
    println!("{name}\t{}", time.as_secs_f64() * 1000.0);
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let directory = tempfile::tempdir().expect("a directory");
    let gaps = turn_beginnings(directory.path()).await;
    notify("turn, median", gaps[TURNS / 2]);
    notify("turn, 99 of 100", gaps[TURNS * 99 / 100]);
    let (usual, worst) = compaction();
    notify("compaction, usual", usual);
    notify("compaction, worst", worst);
    let (times, all) = event_emission(directory.path()).await;
    notify("event, mean with its commit", all / u32::try_from(EVENTS).expect("a small number"));
    notify("event, 99 of 100", times[EVENTS * 99 / 100]);
}
