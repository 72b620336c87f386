//! Measures the memory of many tasks in one process for `cargo xtask bench`. Arguments: tasks, turns per
//! task. Prints the peak memory of the process in KiB before and after the tasks.
#![expect(
    clippy::print_stdout,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "a program that measures"
)]

use std::sync::Arc;

use fusee_engine::agent::Limits;
use fusee_engine::run::{RunBuilder, RunSpec, SandboxMode};
use fusee_journal::{Clock, Journal, JournalOptions};
use fusee_model::Models;

struct Now;

impl Clock for Now {
    fn now_ms(&self) -> i64 {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
        i64::try_from(now.as_millis()).expect("before the year 292 million")
    }
}

fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find(|line| line.starts_with("VmHWM")).expect("a peak");
    line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).expect("a number")
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<usize>().expect("a number"));
    let (tasks, turns) = (arguments.next().unwrap_or(100), arguments.next().unwrap_or(10));
    let directory = tempfile::tempdir().expect("a directory");
    let look = "{\"text\":\"I look around once more.\",\"tool_calls\":[{\"name\":\"find_files\",\"arguments\":{\"pattern\":\"*NUMBER*\"}}],\"delay_ms\":5}\n";
    let mut script = String::new();
    for n in 0..tasks * turns {
        script.push_str(&look.replace("NUMBER", &n.to_string()));
    }
    script.push_str(&"{\"text\":\"Done.\"}\n".repeat(tasks));
    let file = directory.path().join("script.jsonl");
    std::fs::write(&file, script).expect("the script");
    let name = format!("script:{}", file.display());
    let model = Models::new(std::time::SystemTime::now)
        .open(&name, &fusee_model::Connection::default())
        .expect("a script");
    let journal =
        Journal::open(&directory.path().join(".fusee/journal.db"), JournalOptions::default(), Arc::new(Now));
    let journal = journal.expect("a journal");
    let before = peak_kib();
    let running: Vec<_> = (0..tasks)
        .map(|n| {
            let settings = RunSpec {
                limits: Limits { max_turns: u32::MAX, ..Limits::default() },
                sandbox: SandboxMode::Off,
                sandbox_state: "off".into(),
                commands_preapproved: true,
                ..RunSpec::new(format!("task {n}"), name.clone(), directory.path())
            };
            let builder = RunBuilder::new(settings, journal.clone(), Arc::clone(&model));
            tokio::spawn(async move {
                let run = format!("run-{n}").parse().expect("a run id");
                builder.start(&run).await.expect("it starts").outcome().await.exit() as u8
            })
        })
        .collect();
    for task in running {
        assert_eq!(task.await.expect("it ends"), 0);
    }
    println!("{before} {}", peak_kib());
}
