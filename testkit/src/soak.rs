//! A run of very many turns on a server that fails in every possible way, while the conversation is compacted
//! again and again. Memory, descriptors and threads are sampled on the way. A short version is a test, the
//! long one is `cargo xtask bench soak`.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde_json::json;

use crate::project::Project;
use crate::server::{Message, Prepared, ReceivedRequest, Reply, ReplyPosition, Server};

/// Number of files that are read, and lines in each.
const FILES: usize = 30;
const LINES: usize = 40;

/// Turns per fault, and turns per fault in which the server stays silent.
const FAULT_EVERY: usize = 5;
const SILENCE_EVERY: usize = 500;

/// Turns per sample; a sample is the minimum over them, because what comes and goes is no leak.
const LOOKS: usize = 10;

/// Resources the process held around one turn.
#[derive(Clone, Copy, Debug)]
pub struct MemorySample {
    /// Resident memory in KiB.
    pub resident_kb: u64,
    /// Number of open files, pipes and sockets.
    pub descriptors: usize,
    /// Number of threads.
    pub threads: usize,
}

impl MemorySample {
    fn at(pid: u32) -> Self {
        let count = |what: &str| fs::read_dir(format!("/proc/{pid}/{what}")).map_or(0, Iterator::count);
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
        let resident_kb = line.trim().trim_end_matches("kB").trim().parse().unwrap_or(0);
        Self { resident_kb, descriptors: count("fd"), threads: count("task") }
    }

    fn least(self, other: Self) -> Self {
        Self {
            resident_kb: self.resident_kb.min(other.resident_kb),
            descriptors: self.descriptors.min(other.descriptors),
            threads: self.threads.min(other.threads),
        }
    }
}

/// Result of a soak run.
#[derive(Debug)]
pub struct SoakResult {
    /// Sample after a fifth of the turns.
    pub early: MemorySample,
    /// Sample at the end.
    pub late: MemorySample,
    /// Median time of a read turn, around turn 100.
    pub early_turn: Duration,
    /// Median time of a read turn, at the end.
    pub late_turn: Duration,
    /// Number of injected server faults.
    pub faults: usize,
    /// Number of compactions.
    pub compactions: usize,
}

/// State of the scripted server.
struct SoakServer {
    turns: usize,
    turn: usize,
    struck: bool,
    faults: usize,
    pid: Arc<AtomicU32>,
    looks: [Option<MemorySample>; 2],
    /// When the last good reply was sent, if it called for a read.
    last: Option<Instant>,
    times: Vec<Duration>,
}

impl SoakServer {
    fn reply(&mut self, arrived: &ReceivedRequest) -> Arc<Prepared> {
        let waited = self.last.take().map(|last| last.elapsed());
        if self.turn % FAULT_EVERY == FAULT_EVERY - 1 && !self.struck && self.turn < self.turns {
            self.struck = true;
            self.faults += 1;
            return self.fault().prepare();
        }
        self.struck = false;
        if let Some(waited) = waited {
            self.times.push(waited);
        }
        self.look();
        let message = self.message().usage(arrived.body.len() as u64 / 4, 20);
        let reads = self.turn % 20 != 7 && self.turn % 20 != 13;
        self.turn += 1;
        self.last = (reads && self.turn % FAULT_EVERY != FAULT_EVERY - 1).then(Instant::now);
        message.stream().prepare()
    }

    fn message(&self) -> Message {
        let turn = self.turn;
        match turn % 20 {
            _ if turn >= self.turns => Message::text("All of it is done."),
            7 => Message::call("shell", json!({"command": format!("echo turn {turn}")})),
            13 => {
                let path = format!("notes{}.txt", turn % 7);
                Message::call("write_file", json!({"path": path, "content": format!("turn {turn}\n")}))
            }
            _ => {
                let (path, line) = (format!("part{}.txt", turn % FILES), turn / FILES % (LINES / 2) + 1);
                Message::call("read_file", json!({"path": path, "offset": line, "limit": LINES / 2}))
                    .reasoning("The next part.")
            }
        }
    }

    fn fault(&self) -> Reply {
        let reply = self.message().usage(1_000, 20).stream();
        let middle = ReplyPosition::Body(reply.body_len() / 2);
        match self.turn / FAULT_EVERY {
            n if n % (SILENCE_EVERY / FAULT_EVERY) == 50 => Reply::silence(),
            n if n % 8 == 0 => Reply::error(500, "oops"),
            n if n % 8 == 1 => Reply::error(429, "slow down").header("retry-after-ms", "2"),
            n if n % 8 == 2 => reply.closing(middle),
            n if n % 8 == 3 => reply.resetting(middle),
            n if n % 8 == 4 => reply.with_garbage(1, b"data: {\"choices\":[{\"del\xff\xfe\n\n"),
            n if n % 8 == 5 => Reply::events([]),
            n if n % 8 == 6 => reply.closing(ReplyPosition::Head(9)),
            _ => Reply::raw(502, "text/html", "<html><h1>Bad Gateway</h1></html>"),
        }
    }

    fn look(&mut self) {
        for (mark, look) in [self.turns / 5, self.turns].into_iter().zip(&mut self.looks) {
            if self.turn <= mark && self.turn + LOOKS > mark {
                let now = MemorySample::at(self.pid.load(Ordering::SeqCst));
                *look = Some(look.map_or(now, |least| least.least(now)));
            }
        }
    }
}

fn median(times: impl Iterator<Item = Duration>) -> Duration {
    let mut times: Vec<Duration> = times.collect();
    times.sort();
    times[times.len() / 2]
}

/// Runs the program for this many turns; panics if it does not complete.
pub fn soak(program: &Path, turns: usize) -> SoakResult {
    let text = "timeout_s = 1\nmax_tokens = 16000\n\n[retry_policy]\nmax_retries = 3\nbackoff_ms = 1\n";
    let mut project = Project::new().with("fusee.toml", text);
    for file in 0..FILES {
        let lines = (0..LINES).map(|line| format!("line {line} of part {file}, which is like the others\n"));
        project = project.with(&format!("part{file}.txt"), &lines.collect::<String>());
    }
    let pid = Arc::new(AtomicU32::new(0));
    let course = Arc::new(Mutex::new(SoakServer {
        turns,
        turn: 0,
        struck: false,
        faults: 0,
        pid: Arc::clone(&pid),
        looks: [None; 2],
        last: None,
        times: Vec::new(),
    }));
    let server = Server::unrecorded({
        let course = Arc::clone(&course);
        move |arrived| course.lock().reply(arrived)
    });
    let running = project
        .command(program)
        .args(["run", "Read all of it.", "--json", "--model", "openai:soak", "--api", "chat"])
        .args(["--sandbox", "off", "--max-turns", &(turns + 10).to_string(), "--base-url"])
        .args([server.base_url()])
        .env("OPENAI_API_KEY", "sk-soak-0123456789")
        .limit(Duration::from_secs(3_600))
        .start();
    pid.store(running.id(), Ordering::SeqCst);
    let outcome = running.wait();
    assert_eq!(outcome.code, Some(0), "{}\n{}", outcome.stderr, tail(&outcome.stdout));
    project.assert_no_process_left();
    let course = course.lock();
    let [Some(early), Some(late)] = course.looks else { panic!("the marks were never passed") };
    let of = |kind: &str| outcome.stdout.matches(&format!("\"type\":\"{kind}\"")).count();
    assert_eq!(of("retry"), course.faults, "each fault is one retry");
    assert_eq!(of("turn_complete"), turns + 1, "every turn comes once");
    let many = course.times.len();
    SoakResult {
        early,
        late,
        early_turn: median(course.times.iter().copied().skip(50).take(100)),
        late_turn: median(course.times.iter().copied().skip(many.saturating_sub(100))),
        faults: course.faults,
        compactions: of("compaction"),
    }
}

fn tail(text: &str) -> String {
    text.lines().rev().take(5).collect::<Vec<_>>().join("\n")
}
