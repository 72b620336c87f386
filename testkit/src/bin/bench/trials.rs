//! 500 concurrent trials of `fusee bench` in one process, on a model that needs 200 ms per reply.

use std::process::Command;
use std::time::{Duration, Instant};

use fusee_testkit::project::Project;
use fusee_testkit::server::{Message, Server};
use serde_json::json;

use super::Figure;
use super::measure::Programs;

const TRIALS: usize = 500;
/// Replies per trial: enough for the waiting, and not the tests at the end, to be what a trial consists of.
const TURNS: usize = 60;
const LATENCY: Duration = Duration::from_millis(200);

/// Time of a job compared with the time that its replies take, and its peak memory.
pub(crate) fn throughput(programs: &Programs) -> Vec<Figure> {
    let project = Project::new();
    let mut suite = "test = \"true\"\n".to_owned();
    for n in 0..TRIALS {
        suite.push_str(&format!(
            "[[case]]\nname = \"c{n}\"\nprompt = \"Read the file.\"\nfiles = \"files\"\n"
        ));
    }
    project.write("suite/suite.toml", &suite);
    project.write("suite/files/lines.txt", "a line\n");
    let call = Message::call("read_file", json!({"path": "lines.txt", "limit": 1}));
    let call = call.usage(1000, 20).stream_in_deltas_of(64).after(LATENCY).prepare();
    let done = Message::text("Done.").usage(1000, 20).stream_in_deltas_of(64).after(LATENCY).prepare();
    // The number of calls in a request is the number of its turn.
    let server = Server::unrecorded(move |request| {
        let turn = request.body.windows(14).filter(|part| part == b"\"role\":\"tool\",").count();
        if turn + 1 < TURNS { call.clone() } else { done.clone() }
    });
    let mut command = Command::new(&programs.fusee);
    command
        .args([
            "bench",
            "run",
            "suite",
            "-m",
            "openai:scripted",
            "--api",
            "chat",
            "--out",
            "out",
            "--tries",
            "1",
        ])
        .args(["--base-url", &server.base_url(), "-n", &TRIALS.to_string(), "--max-turns", "1000"])
        .env_clear()
        .envs(project.environment())
        .env("OPENAI_API_KEY", "sk-bench")
        .current_dir(project.dir())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::piped());
    let begun = Instant::now();
    let child = command.spawn().expect("fusee was built");
    let (pid, mut peak) = (child.id(), 0.0f64);
    let watcher = std::thread::spawn(move || child.wait_with_output().expect("a child can be waited for"));
    while !watcher.is_finished() {
        peak = peak.max(peak_mb(pid).unwrap_or_default());
        std::thread::sleep(Duration::from_millis(20));
    }
    let output = watcher.join().expect("the watcher does not panic");
    let took = begun.elapsed().as_secs_f64();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let ideal = LATENCY.as_secs_f64() * TURNS as f64;
    vec![
        Figure::shown("500 trials, 60 replies of 200 ms each: ideal", ideal, "s"),
        Figure::at_most("500 trials, 60 replies of 200 ms each: fusee bench", took, "s", ideal / 0.8),
        Figure::at_most("memory, 500 trials in one process", peak, "MB", 500.0),
    ]
}

fn peak_mb(pid: u32) -> Option<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.split_whitespace().next()?.parse::<f64>().ok()? / 1024.0)
}
