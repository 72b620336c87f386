//! Runs one program once against the scripted server and measures time and memory.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use fusee_testkit::project::Project;
use fusee_testkit::server::{Message, Prepared, Server};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use serde_json::json;

/// Paths of the release binaries.
pub(crate) struct Programs {
    pub(crate) fusee: PathBuf,
    pub(crate) floor: PathBuf,
    /// Runs many tasks in one process.
    pub(crate) many_tasks: PathBuf,
    /// Measures the agent loop in isolation.
    pub(crate) loop_cost: PathBuf,
    /// Measures the memory taken by one request.
    pub(crate) request_cost: PathBuf,
    pub(crate) search_cost: PathBuf,
    pub(crate) sandbox_cost: PathBuf,
    pub(crate) copy_cost: PathBuf,
    /// Scans for changes on request.
    pub(crate) look: PathBuf,
    /// Measures the file index and the templates.
    pub(crate) index: PathBuf,
    /// Measures the workflow language.
    pub(crate) fib: PathBuf,
    /// Renders a long prompt.
    pub(crate) render_prompt: PathBuf,
}

/// Which program runs.
#[derive(Clone, Copy)]
pub(crate) enum Who {
    Fusee,
    /// The bare loop, with requests padded by this many bytes to match our prompt and tools.
    Floor(usize),
}

/// Tool call in every reply.
#[derive(Clone, Copy)]
pub(crate) enum Work {
    /// A command, as in real work; both programs support it.
    Commands,
    /// A read of one line: the cheapest tool call, so that the remaining cost is the loop's own.
    Reads,
}

/// Replies of a run: `turns` replies with a call, then an answer.
pub(crate) fn replies(turns: usize, work: Work, latency: Duration) -> Vec<Arc<Prepared>> {
    let call = |turn: usize| match work {
        Work::Commands => Message::call("shell", json!({"command": format!("echo turn {turn}")})),
        Work::Reads => {
            Message::call("read_file", json!({"path": "lines.txt", "offset": turn % 40 + 1, "limit": 1}))
        }
    };
    let message = |turn: usize| if turn < turns { call(turn) } else { Message::text("Done.") };
    (0..=turns)
        .map(|turn| {
            let reply = message(turn).usage(1000, 20).stream_in_deltas_of(64);
            reply.after(latency).prepare()
        })
        .collect()
}

/// Measurements of one run.
pub(crate) struct Measured {
    pub(crate) wall: Duration,
    /// User and system time of the process and of the children it waited for.
    pub(crate) cpu: Duration,
    /// Peak resident memory, read when the last request arrives.
    pub(crate) peak_mb: f64,
    /// From process start to the first byte of the first request.
    pub(crate) first_request: Duration,
    /// From the end of each reply to the first byte of the next request.
    pub(crate) gaps: Vec<Duration>,
    /// Length of the first request in bytes.
    pub(crate) first_length: usize,
}

/// A run that is set up but not started, so that creating the project and server is not measured.
pub(crate) struct Ready {
    command: Command,
    pid: Arc<AtomicU32>,
    server: Server,
    peak_kb: Arc<AtomicU64>,
    turns: usize,
    project: Project,
}

/// A started run.
pub(crate) struct Started {
    child: Child,
    begun: Instant,
    server: Server,
    peak_kb: Arc<AtomicU64>,
    turns: usize,
    project: Project,
}

impl Programs {
    /// Runs a program to its end.
    pub(crate) fn run(&self, who: Who, replies: &[Arc<Prepared>]) -> Measured {
        self.ready(who, replies, &[]).start().finish()
    }

    /// Creates a new project and server; `wrapper` is a command that launches the program.
    pub(crate) fn ready(&self, who: Who, replies: &[Arc<Prepared>], wrapper: &[&str]) -> Ready {
        let lines: String = (1..=50).map(|n| format!("line {n} of a small file\n")).collect();
        let project = Project::new().with("lines.txt", &lines);
        let (pid, peak_kb) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU64::new(0)));
        let server = Server::with_answer_check({
            let (pid, peak_kb, replies) = (Arc::clone(&pid), Arc::clone(&peak_kb), replies.to_vec());
            move |turn, _| {
                let last = replies.len() - 1;
                if turn >= last {
                    peak_kb.store(high_water_kb(pid.load(Ordering::SeqCst)), Ordering::SeqCst);
                }
                Arc::clone(&replies[turn.min(last)])
            }
        });
        let (program, args) = match who {
            Who::Fusee => (&self.fusee, fusee_args(&server)),
            Who::Floor(length) => (&self.floor, vec![server.port().to_string(), length.to_string()]),
        };
        let mut command = match wrapper {
            [] => Command::new(program),
            [first, rest @ ..] => {
                let mut command = Command::new(first);
                command.args(rest).arg(program);
                command
            }
        };
        command
            .args(args)
            .current_dir(project.dir())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", project.home())
            .env("OPENAI_API_KEY", "sk-bench-0123456789")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs::File::create(stderr_of(&project)).expect("a file for stderr"));
        Ready { command, pid, server, peak_kb, turns: replies.len() - 1, project }
    }
}

impl Ready {
    /// Working directory of the run.
    pub(crate) fn directory(&self) -> PathBuf {
        self.project.dir()
    }

    pub(crate) fn start(mut self) -> Started {
        let begun = Instant::now();
        let child = self.command.spawn().expect("the release binaries were built");
        self.pid.store(child.id(), Ordering::SeqCst);
        let Self { server, peak_kb, turns, project, .. } = self;
        Started { child, begun, server, peak_kb, turns, project }
    }
}

impl Started {
    /// Waits for the end and takes the figures. CPU time is only correct if no other child is waited for
    /// meanwhile.
    pub(crate) fn finish(mut self) -> Measured {
        let before = children_cpu();
        let status = self.child.wait().expect("a child can be waited for");
        let wall = self.begun.elapsed();
        let cpu = children_cpu().saturating_sub(before);
        let requests = self.server.requests();
        let said = fs::read_to_string(stderr_of(&self.project)).unwrap_or_default();
        assert!(status.success(), "the run failed ({status}): {said}");
        assert_eq!(requests.len(), self.turns + 1, "unexpected number of requests: {said}");
        let gaps = requests
            .windows(2)
            .map(|pair| pair[1].began.saturating_duration_since(pair[0].answered.unwrap_or(pair[1].began)))
            .collect();
        Measured {
            wall,
            cpu,
            peak_mb: self.peak_kb.load(Ordering::SeqCst) as f64 / 1024.0,
            first_request: requests[0].began - self.begun,
            gaps,
            first_length: requests[0].arrived.body.len(),
        }
    }

    /// Waits for the end and returns stderr.
    pub(crate) fn finish_stderr(mut self) -> String {
        let status = self.child.wait().expect("a child can be waited for");
        let said = fs::read_to_string(stderr_of(&self.project)).unwrap_or_default();
        assert!(status.success(), "the run failed ({status}): {said}");
        said
    }
}

fn fusee_args(server: &Server) -> Vec<String> {
    let base = server.base_url();
    let fixed = ["run", "Do the work.", "--model", "openai:scripted", "--api", "chat", "--sandbox", "off"];
    // High limits, so that no budget ends the run.
    let limits = ["--max-turns", "100000", "--max-tokens", "100000000", "--timeout", "3600"];
    fixed.into_iter().chain(limits).chain(["--base-url", &base]).map(str::to_owned).collect()
}

fn stderr_of(project: &Project) -> PathBuf {
    project.home().join("stderr")
}

fn children_cpu() -> Duration {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).expect("usage of children");
    let micros = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    Duration::from_micros(u64::try_from(micros).unwrap_or(0))
}

fn high_water_kb(pid: u32) -> u64 {
    let status =
        fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    line.trim().trim_end_matches("kB").trim().parse().unwrap_or(0)
}

/// Median; the upper of the two middle values for an even count.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Converts to fractional milliseconds.
pub(crate) fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}
