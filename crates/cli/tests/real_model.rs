//! The product with a real model: SmolLM2 on llama.cpp's own server, one thread, temperature 0. The content
//! of its replies is not judged, only that they arrive, streamed, within the schema, and with usage. `cargo
//! xtask test` installs the model and runs these tests; a plain test run lists them as ignored.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test panics when it fails, and does not go through the product's seams"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command as Process, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use fusee::engine::model::{
    CancellationToken, Connection, Conversation, Message, ModelTraits, Models, RequestOptions, ToolChoice,
    ToolFormat, ToolSpec,
};
use fusee_testkit::events::of_type;
use fusee_testkit::project::{Command, Project, Running};
use fusee_testkit::server::{self, Reply, Server};
use parking_lot::Mutex;
use rustix::process::Signal;
use serde_json::{Value, json};

/// A server with a model, killed on drop.
struct Served {
    child: Child,
    port: u16,
}

impl Served {
    fn start() -> Served {
        let folder = PathBuf::from(
            std::env::var_os("FUSEE_REAL_MODEL")
                .expect("FUSEE_REAL_MODEL: run `cargo xtask test`, which installs it"),
        );
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testkit/real_model/serve.py");
        let child = Process::new(folder.join("venv/bin/python"))
            .args([script.as_ref(), folder.join("model.gguf").as_os_str()])
            .args([port.to_string(), "4096".to_owned()])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let served = Served { child, port };
        let begun = Instant::now();
        while !served.is_ready() {
            assert!(begun.elapsed() < Duration::from_secs(60), "the server did not come up");
            std::thread::sleep(Duration::from_millis(100));
        }
        served
    }

    fn is_ready(&self) -> bool {
        let Ok(mut stream) = TcpStream::connect(("127.0.0.1", self.port)) else { return false };
        let mut answer = String::new();
        stream.write_all(b"GET /health HTTP/1.0\r\n\r\n").is_ok()
            && stream.read_to_string(&mut answer).is_ok()
            && answer.contains(" 200 ")
    }

    fn base_url(&self) -> String {
        format!("http://127.0.0.1:{}/v1", self.port)
    }

    fn run<'p>(&self, project: &'p Project, request: &str) -> Command<'p> {
        let fixed =
            ["run", request, "-m", "llama.cpp:smollm2", "--sandbox", "off", "--json", "--max-turns", "2"];
        project
            .command(env!("CARGO_BIN_EXE_fusee"))
            .args(fixed)
            .args(["--base-url", &self.base_url()])
            .limit(Duration::from_secs(120))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn project() -> Project {
    Project::new().with("fusee.toml", "temperature = 0\nmax_output_tokens = 60\n")
}

#[test]
#[ignore = "needs the real model: cargo xtask test"]
fn a_real_model_answers_in_pieces_within_a_schema_and_when_forced_to_call() {
    let served = Served::start();
    answers_in_pieces(&served);
    is_listed_and_examined(&served);
    stays_within_the_schema(&served);
    calls_what_it_is_told_to(&served);
    says_which_phase_it_is(&served);
    summarises_old_turns(&served);
}

fn answers_in_pieces(served: &Served) {
    let project = project();
    let outcome = served.run(&project, "What is the capital of France? Answer in one sentence.").run();
    let events = outcome.events();
    let pieces: Vec<&str> =
        of_type(&events, "message_delta").iter().filter_map(|event| event["text"].as_str()).collect();
    let said: Vec<&str> =
        of_type(&events, "message").iter().filter_map(|event| event["text"].as_str()).collect();
    assert!(!said.is_empty() && !said[0].trim().is_empty(), "{}", outcome.stdout);
    assert!(pieces.len() > 3, "it is streamed: {pieces:?}");
    assert!(pieces.concat().starts_with(said[0]), "{pieces:?}");
    let last = events.last().unwrap();
    assert!(last["total_tokens"].as_u64().unwrap() > 50, "the server counts: {last}");
    assert_eq!(last["cost_usd"], json!(0.0));
}

fn is_listed_and_examined(served: &Served) {
    let project = project();
    let listed = project
        .command(env!("CARGO_BIN_EXE_fusee"))
        .args(["models", "--json", "--base-url", &served.base_url()])
        .run()
        .exits(0);
    let rows: Value = serde_json::from_str(&listed.stdout).unwrap();
    assert_eq!(rows[0]["context_tokens"], json!(4096), "{rows}");
    assert!(rows[0]["size_bytes"].as_u64().unwrap() > 90_000_000, "{rows}");
}

fn stays_within_the_schema(served: &Served) {
    let project = project().with("a.txt", "hello\n");
    let outcome = served.run(&project, "Read a.txt.").env("FUSEE_TOOL_FORMAT", "schema").run();
    let events = outcome.events();
    let calls = of_type(&events, "tool_call");
    let answered = events.last().unwrap()["status"] == "completed";
    assert!(!calls.is_empty() || answered, "a call or an answer: {}", outcome.stdout);
    for call in calls {
        assert!(call["arguments"].is_object(), "{call}");
        assert_ne!(call["name"], "answer");
    }
}

fn calls_what_it_is_told_to(served: &Served) {
    let traits = ModelTraits { tool_format: ToolFormat::Schema, ..ModelTraits::default() };
    let settings = Connection { base_url: Some(served.base_url()), traits, ..Connection::default() };
    let model = Models::new(|| SystemTime::UNIX_EPOCH).open("llama.cpp:smollm2", &settings).unwrap();
    let tool = |name: &str| ToolSpec {
        name: name.to_owned(),
        description: "A tool.".to_owned(),
        parameters: json!({
            "type": "object", "properties": { "city": { "enum": ["Paris", "Rome"] } }, "required": ["city"],
            "additionalProperties": false,
        }),
    };
    let mut conversation =
        Conversation::new(model.dialect(), "You call tools.".to_owned(), vec![tool("weather"), tool("map")]);
    conversation.push(Message::user("Tell me a joke.".to_owned()));
    let options = RequestOptions {
        temperature: Some(0.0),
        tool_choice: ToolChoice::Named("map".to_owned()),
        ..RequestOptions::default()
    };
    let cancel = CancellationToken::new();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let reply = runtime.block_on(model.send(&conversation, &options, &mut |_| {}, &cancel)).unwrap();
    let [call] = reply.tool_calls.as_slice() else { panic!("{reply:?}") };
    assert_eq!(call.name, "map");
    let arguments: Value = serde_json::from_str(&call.arguments).unwrap();
    assert!(arguments == json!({"city": "Paris"}) || arguments == json!({"city": "Rome"}), "{arguments}");
    assert!(reply.usage.unwrap().input_tokens > 0);
}

/// Sends a request and returns the data of the reply's events.
fn answer(port: u16, body: &[u8]) -> Vec<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let head = "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
    stream.write_all(format!("{head}Content-Length: {}\r\n\r\n", body.len()).as_bytes()).unwrap();
    stream.write_all(body).unwrap();
    // Between the events there are only chunk sizes.
    let lines = BufReader::new(stream).lines().map(Result::unwrap);
    let mut data: Vec<String> = Vec::new();
    for event in lines.filter_map(|line| line.strip_prefix("data: ").map(str::to_owned)) {
        data.push(event);
        if data.last().is_some_and(|last| last == "[DONE]") {
            return data;
        }
    }
    panic!("the server's answer has no end: {data:?}");
}

/// Runs a task whose turns are played from these replies, while side requests (the phase, a summary) go to
/// the real model: a model of this size would not get that far by itself.
fn with_turns_played(served: &Served, project: &Project, turns: Vec<server::Message>) -> Played {
    let said = Arc::new(Mutex::new(Vec::new()));
    let (heard, port, mut turns) = (Arc::clone(&said), served.port, turns.into_iter());
    let between = Server::with_answer_check(move |_, arrived| {
        if !arrived.is_for_a_model() {
            return Reply::error(404, "no such thing").prepare();
        }
        if arrived.json().get("tools").is_some() {
            return turns.next().expect("a turn for each request").stream().prepare();
        }
        // At temperature 0 a model of this size repeats its first paragraph forever.
        let mut asked = arrived.json();
        asked["stop"] = json!(["\n\n"]);
        let data = answer(port, asked.to_string().as_bytes());
        let pieces = data.iter().filter_map(|data| serde_json::from_str::<Value>(data).ok());
        let text =
            pieces.filter_map(|piece| Some(piece["choices"][0]["delta"]["content"].as_str()?.to_owned()));
        heard.lock().push(text.collect());
        Reply::events(data).prepare()
    });
    let fixed = ["run", "Look at the parts.", "-m", "llama.cpp:smollm2", "--sandbox", "off", "--json"];
    let outcome = project
        .command(env!("CARGO_BIN_EXE_fusee"))
        .args(fixed)
        .args(["--base-url", &between.base_url(), "--run-id", "real"])
        .limit(Duration::from_secs(120))
        .run()
        .exits(0);
    project.command(env!("CARGO_BIN_EXE_fusee")).args(["replay", "real"]).run().exits(0);
    let said = said.lock().clone();
    let last = between.requests().pop().unwrap().arrived.json()["messages"].clone();
    Played { events: outcome.events(), said, last }
}

struct Played {
    events: Vec<Value>,
    /// Replies of the real model.
    said: Vec<String>,
    /// Messages of the last request.
    last: Value,
}

fn says_which_phase_it_is(served: &Served) {
    let config = "temperature = 0\n\n[phase_control]\nmode = \"llm\"\n\n[phase_control.probe]\nmax_tokens = 8\ntemperature = 0\n";
    let project = Project::new().with("fusee.toml", config).with("a.txt", "one\n");
    let look = server::Message::call("read_file", json!({"path": "a.txt"})).usage(100, 10);
    let turns = vec![look, server::Message::text("One.").usage(200, 10)];
    let Played { events, said, .. } = with_turns_played(served, &project, turns);
    let [said] = said.as_slice() else { panic!("it is asked once: {said:?}") };
    assert!(!said.trim().is_empty(), "it says something");
    // A named phase is adopted; any other reply is reported as a probe error.
    let moved = of_type(&events, "phase_transition");
    let failed = of_type(&events, "phase_probe_error");
    let named =
        ["context", "plan", "implement"].iter().filter(|phase| said.to_lowercase().contains(**phase)).count();
    assert_eq!(
        (moved.len() + failed.len() <= 1, failed.len()),
        (true, usize::from(named != 1)),
        "{said:?}: {events:#?}"
    );
    let tokens = events.last().unwrap()["total_tokens"].as_u64().unwrap();
    assert!((321..900).contains(&tokens), "what it was asked is counted: {tokens}");
}

fn summarises_old_turns(served: &Served) {
    let config =
        "temperature = 0\nmax_output_tokens = 400\ncompaction_summary = \"model\"\nmax_tokens = 6000\n";
    let part = |n: usize| {
        format!("Part {n} of the parser: it reads numbers, and fails on the empty line.\n").repeat(12)
    };
    let project = (0..6).fold(Project::new().with("fusee.toml", config), |project, n| {
        project.with(&format!("part{n}.txt"), &part(n))
    });
    let read = |n: usize| {
        let used = if n == 5 { 5_000 } else { 1_000 };
        server::Message::call("read_file", json!({"path": format!("part{n}.txt")})).usage(used, 10)
    };
    let turns = (0..6).map(read).chain([server::Message::text("Six parts.").usage(2_000, 10)]).collect();
    let Played { events, said, last } = with_turns_played(served, &project, turns);
    let [said] = said.as_slice() else { panic!("it is asked once: {said:?}") };
    assert_eq!(of_type(&events, "compaction").len(), 1);
    assert!(said.trim().len() > 20, "{said:?}");
    let complaints: Vec<&Value> = of_type(&events, "warning")
        .into_iter()
        .filter(|event| event["code"] == "compaction_summary")
        .collect();
    assert!(complaints.is_empty(), "its words are taken: {complaints:?} {said:?}");
    let stands = |message: &Value| message["content"].as_str().is_some_and(|text| text.contains(said.trim()));
    assert!(
        last.as_array().unwrap().iter().any(stands),
        "and stand in the place of the turns: {said:?} in {last:#}"
    );
}

/// Ten cases. Half of them pass as they are, so that the two flows have something to lose.
fn ten_cases() -> Project {
    let mut suite = "test = \"python3 check.py\"\ntimeout_s = 20\n".to_owned();
    let mut project = project();
    for n in 0..10 {
        let case = format!("case-{n}");
        suite += &format!(
            "\n[[case]]\nname = \"{case}\"\nprompt = \"Set x to {n} in value.py.\"\nfiles = \"{case}\"\n\
             solution = [\"value.py\"]\ntests = [\"check.py\"]\n"
        );
        project = project
            .with(&format!("suite/{case}/value.py"), &format!("x = {}\n", n / 2 * 2))
            .with(&format!("suite/{case}/check.py"), &format!("import value\nassert value.x == {n}\n"));
    }
    project.with("suite/suite.toml", &suite)
}

/// The rewards of both attempts by case, from `results.jsonl`.
fn rewards(project: &Project, out: &str) -> BTreeMap<String, Vec<f64>> {
    let mut found: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    let mut runs = BTreeSet::new();
    for line in project.read(&format!("{out}/results.jsonl")).lines() {
        let result: Value = serde_json::from_str(line).unwrap();
        assert!(runs.insert(result["run"].to_string()), "a run counts twice: {line}");
        let passed = f64::from(u8::from(result["passed"].as_bool().unwrap()));
        found.entry(result["case"].as_str().unwrap().to_owned()).or_default().push(passed);
    }
    found
}

#[test]
#[ignore = "needs the real model: cargo xtask suites model"]
fn a_job_killed_twice_is_resumed_to_its_end_and_two_flows_are_compared() {
    let (served, project) = (Served::start(), ten_cases());
    let url = served.base_url();
    let bench = |args: &[&str]| {
        let command = project.command(env!("CARGO_BIN_EXE_fusee")).args(["bench"]).args(args);
        command.limit(Duration::from_secs(200))
    };
    let finished = |out: &str| {
        let text = std::fs::read_to_string(project.dir().join(out).join("results.jsonl"));
        text.unwrap_or_default().lines().count()
    };
    let job = ["run", "suite", "-m", "llama.cpp:smollm2", "--base-url", &url, "--attempts", "2"];
    let limits = ["--tries", "1", "--max-turns", "2"];
    let kill_after = |running: Running, trials: usize| {
        let begun = Instant::now();
        while finished("flat") < trials {
            assert!(begun.elapsed() < Duration::from_secs(120), "no result number {trials}");
            std::thread::sleep(Duration::from_millis(20));
        }
        running.signal(Signal::KILL);
        assert!(running.wait().was_killed());
        assert!(finished("flat") < 20, "the job ended before it was killed");
    };
    kill_after(bench(&job).args(limits).args(["--flow", "flat", "--out", "flat"]).start(), 4);
    kill_after(bench(&["resume", "flat"]).start(), 11);
    bench(&["resume", "flat"]).run().exits(0);
    bench(&job).args(limits).args(["--flow", "direct", "--out", "direct"]).run().exits(0);

    let (flat, direct) = (rewards(&project, "flat"), rewards(&project, "direct"));
    for found in [&flat, &direct] {
        assert!(found.len() == 10 && found.values().all(|attempts| attempts.len() == 2), "{found:?}");
    }
    let rate = |of: &BTreeMap<String, Vec<f64>>| of.values().flatten().sum::<f64>() / 20.0;
    let compared = bench(&["compare", "flat", "direct", "--json"]).run().exits(0);
    let compared: Value = serde_json::from_str(&compared.stdout).unwrap();
    let is = |field: &str, expected: f64| {
        assert!((compared[field].as_f64().unwrap() - expected).abs() < 1e-9, "{field}: {compared:#}");
    };
    is("cases", 10.0);
    is("a", rate(&flat));
    is("b", rate(&direct));
    is("difference", rate(&flat) - rate(&direct));
    // The exact paired permutation test: every way of swapping the two flows within the cases.
    let differences: Vec<f64> = flat
        .iter()
        .map(|(case, attempts)| attempts.iter().sum::<f64>() - direct[case].iter().sum::<f64>())
        .collect();
    let seen = differences.iter().sum::<f64>().abs();
    let extreme = (0..1_u32 << 10).filter(|swaps| {
        let sign = |n: usize| if swaps >> n & 1 == 1 { -1.0 } else { 1.0 };
        let sum: f64 = differences.iter().enumerate().map(|(n, difference)| sign(n) * difference).sum();
        sum.abs() >= seen - 1e-9
    });
    is("p", extreme.count() as f64 / 1024.0);
    let shown = bench(&["compare", "flat", "direct"]).run().exits(0).stdout;
    assert!(shown.contains(&format!("{:.1} %", 100.0 * rate(&flat))), "{shown}");
    assert!(shown.contains(&format!("{:.1} %", 100.0 * rate(&direct))), "{shown}");
}
