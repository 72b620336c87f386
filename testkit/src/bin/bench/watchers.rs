//! What ten watchers of a run on its web page cost the process that works on it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use fusee_testkit::project::Project;
use fusee_testkit::server::{Message, Server};
use serde_json::{Value, json};

use super::Figure;
use super::measure::Programs;

const WATCHERS: usize = 10;
/// Replies of the run, each with some text and a call.
const TURNS: usize = 200;
/// A fast model; a slower one leaves more time between the events.
const LATENCY: Duration = Duration::from_millis(10);
/// Pairs of runs; the figures are medians.
const REPEATS: usize = 5;

/// CPU and wall time of a run with ten watchers, compared with those of a run with none.
pub(crate) fn cost(programs: &Programs) -> Vec<Figure> {
    let text = "What the model says about the line that it reads next, in a few words. ".repeat(4);
    let ask = Message::call("write_file", json!({"path": "begun.txt", "content": "x"}));
    let ask = ask.usage(1000, 20).stream_in_deltas_of(64).prepare();
    let calls: Vec<_> = (1..=40)
        .map(|offset| {
            let arguments = json!({"path": "lines.txt", "offset": offset, "limit": 1});
            let call = Message::text(&text).and_call("read_file", arguments);
            call.usage(1000, 20).stream_in_deltas_of(16).after(LATENCY).prepare()
        })
        .collect();
    let done = Message::text("Done.").usage(1000, 20).stream_in_deltas_of(64).prepare();
    let server = Server::unrecorded(move |request| {
        match request.body.windows(14).filter(|part| part == b"\"role\":\"tool\",").count() {
            0 => ask.clone(),
            turn if turn < TURNS => calls[turn % calls.len()].clone(),
            _ => done.clone(),
        }
    });
    let (mut alone, mut watched) = (Vec::new(), Vec::new());
    for _ in 0..REPEATS {
        alone.push(run(programs, &server, 0));
        watched.push(run(programs, &server, WATCHERS));
    }
    let (alone, watched) = (median(alone), median(watched));
    vec![
        Figure::shown("200 turns without watchers, CPU", alone.0, "ms"),
        Figure::shown("200 turns with ten watchers, CPU", watched.0, "ms"),
        Figure::at_most("ten watchers, CPU of the run's process", watched.0 / alone.0, "x", 1.1),
        Figure::at_most("ten watchers, time of the run", watched.1 / alone.1, "x", 1.1),
    ]
}

/// CPU and wall time in milliseconds from the approval to the end of a run.
fn run(programs: &Programs, server: &Server, watchers: usize) -> (f64, f64) {
    let project = Project::new();
    project.write("lines.txt", &"a line\n".repeat(40));
    let mut child = Command::new(&programs.fusee)
        .args(["serve", "--sandbox", "off", "-m", "openai:scripted", "--api", "chat"])
        .args(["--base-url", &server.base_url(), "--max-turns", "1000"])
        .env_clear()
        .envs(project.environment())
        .env("OPENAI_API_KEY", "sk-bench")
        .current_dir(project.dir())
        .stdout(Stdio::piped())
        .spawn()
        .expect("fusee was built");
    let site = Site::of(&mut child);
    let started = site.send("POST", "/api/runs", &json!({"request": "Read the file.", "approve": "ask"}));
    let id = started["run"].as_str().expect("a run was started").to_owned();
    let question = loop {
        let waiting = site.send("GET", "/api/approvals", &Value::Null);
        match waiting.get(0) {
            Some(question) => break question["id"].clone(),
            None => std::thread::sleep(Duration::from_millis(20)),
        }
    };
    let path = format!("/api/runs/{id}/stream?from=0");
    let streams: Vec<_> = (0..watchers).map(|_| site.open("GET", &path, "")).collect();
    let readers: Vec<_> = streams
        .into_iter()
        .map(|mut stream| std::thread::spawn(move || std::io::copy(&mut stream, &mut std::io::sink())))
        .collect();
    std::thread::sleep(Duration::from_millis(200));
    let (cpu, begun) = (cpu_ms(child.id()), Instant::now());
    site.send("POST", &format!("/api/runs/{id}/approve"), &json!({"id": question, "decision": "allow"}));
    // Asking seldom, so that the questions cost little.
    while site.send("GET", &format!("/api/runs/{id}"), &Value::Null)["state"] != "completed" {
        std::thread::sleep(Duration::from_millis(200));
    }
    let measured = (cpu_ms(child.id()) - cpu, begun.elapsed().as_secs_f64() * 1000.0);
    child.kill().expect("the server runs");
    child.wait().expect("a child can be waited for");
    readers.into_iter().for_each(|reader| drop(reader.join()));
    measured
}

/// A server and its token.
struct Site {
    address: SocketAddr,
    token: String,
}

impl Site {
    fn of(child: &mut Child) -> Self {
        let mut line = String::new();
        let stdout = child.stdout.take().expect("stdout is a pipe");
        BufReader::new(stdout).read_line(&mut line).expect("fusee prints its URL");
        let url = line.trim().strip_prefix("http://").and_then(|url| url.split_once("/#token="));
        let (address, token) = url.expect("fusee prints its URL");
        Self { address: address.parse().expect("an address"), token: token.to_owned() }
    }

    fn open(&self, method: &str, path: &str, body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).expect("the server listens");
        let (address, token, length) = (self.address, &self.token, body.len());
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        stream.write_all(head.as_bytes()).expect("the server reads");
        stream
    }

    fn send(&self, method: &str, path: &str, body: &Value) -> Value {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let mut answer = String::new();
        self.open(method, path, &body).read_to_string(&mut answer).expect("the server answers");
        let (_, body) = answer.split_once("\r\n\r\n").expect("an answer has a head");
        serde_json::from_str(body).expect("answers are JSON")
    }
}

/// CPU time of a process's threads so far, in milliseconds. `/proc/PID/stat` counts in hundredths of a second, which
/// is a tenth of what is measured here.
fn cpu_ms(pid: u32) -> f64 {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).expect("the server runs");
    let nanoseconds = tasks.filter_map(|task| {
        // A thread that ends meanwhile has no file any more.
        let schedstat = std::fs::read_to_string(task.ok()?.path().join("schedstat")).ok()?;
        schedstat.split_whitespace().next()?.parse::<f64>().ok()
    });
    nanoseconds.sum::<f64>() / 1e6
}

fn median(mut runs: Vec<(f64, f64)>) -> (f64, f64) {
    let middle = runs.len() / 2;
    runs.sort_by(|a, b| a.0.total_cmp(&b.0));
    let cpu = runs[middle].0;
    runs.sort_by(|a, b| a.1.total_cmp(&b.1));
    (cpu, runs[middle].1)
}
