//! search_text and find_files against `rg` on a tree of 50 000 files, in one run, as medians. Prints one line
//! each, with the ratio of our time to that of `rg`. `cargo xtask bench search` runs this and knows the
//! target.
//!
//! The tree is created once in the system's temporary directory and reused.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a benchmark that also starts its baseline"
)]

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fusee_tools::{CallContext, CallLimits, CommandSettings, Toolbox, Workspace};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

const FILES: usize = 50_000;
const ROUNDS: usize = 9;

fn main() {
    let root = std::env::temp_dir().join(format!("fusee-search-bench-{FILES}"));
    make_tree(&root);
    let toolbox = Toolbox::standard(CommandSettings::default());
    let context = CallContext {
        workspace: Arc::new(Workspace::open(&root).unwrap()),
        call_id: "bench".to_owned(),
        cancel: CancellationToken::new(),
        progress: Arc::new(|_| {}),
        limits: CallLimits::default(),
        trace_parent: None,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let ours = |tool: &str, arguments: Value| {
        runtime.block_on(async {
            let tool = toolbox.find(tool).unwrap();
            let prepared = tool.prepare(arguments, &context).await.unwrap();
            assert!(tool.perform(prepared, &context).await.ok);
        });
    };
    let theirs = |arguments: &[&str]| {
        let output = Command::new("rg").args(arguments).current_dir(&root).output().unwrap();
        assert!(!output.stdout.is_empty() || arguments.contains(&"nowhere_at_all"));
    };
    compare(
        "search, rare word",
        || ours("search_text", json!({"pattern": "needle_\\d+"})),
        || theirs(&["-n", "needle_\\d+"]),
    );
    compare(
        "search, no match",
        || ours("search_text", json!({"pattern": "nowhere_at_all"})),
        || theirs(&["-n", "nowhere_at_all"]),
    );
    compare(
        "search, common word",
        || ours("search_text", json!({"pattern": "value"})),
        || theirs(&["-n", "value"]),
    );
    compare(
        "search, one kind of file",
        || ours("search_text", json!({"pattern": "needle", "include": "*.py"})),
        || theirs(&["-n", "-g", "*.py", "needle"]),
    );
    compare(
        "find, by name",
        || ours("find_files", json!({"pattern": "*05.py"})),
        || theirs(&["--files", "-g", "*05.py"]),
    );
    compare("find, everything", || ours("find_files", json!({"pattern": "*"})), || theirs(&["--files"]));
}

fn make_tree(root: &Path) {
    if root.join("complete").exists() {
        return;
    }
    for number in 0..FILES {
        let directory = root.join(format!("d{}/e{}", number % 50, number / 50 % 40));
        std::fs::create_dir_all(&directory).unwrap();
        let mut text = String::new();
        for line in 0..30 {
            let _ = writeln!(
                text,
                "    let value_{line} = compute({number}, {line}); // some words to fill the line"
            );
        }
        if number % 997 == 0 {
            let _ = writeln!(text, "needle_{number}");
        }
        let ending = ["rs", "py", "txt", "md"][number % 4];
        std::fs::write(directory.join(format!("file_{number}.{ending}")), text).unwrap();
    }
    assert_eq!(walk(root), FILES);
    std::fs::write(root.join(".gitignore"), "*.log\n/target\n").unwrap();
    std::fs::write(root.join("complete"), "").unwrap();
}

fn walk(directory: &Path) -> usize {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap());
    entries.map(|entry| if entry.file_type().unwrap().is_dir() { walk(&entry.path()) } else { 1 }).sum()
}

fn compare(what: &str, ours: impl Fn(), theirs: impl Fn()) {
    let (mut our_times, mut their_times) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        our_times.push(timed(&ours));
        their_times.push(timed(&theirs));
    }
    let (our_time, their_time) = (median(our_times), median(their_times));
    let ratio = our_time.as_secs_f64() / their_time.as_secs_f64();
    let mut out = std::io::stdout();
    writeln!(out, "{what}\t{ratio:.3}").unwrap();
    let _ = writeln!(std::io::stderr(), "{what}: {our_time:.1?}, rg {their_time:.1?}");
}

fn timed(work: impl Fn()) -> Duration {
    let begun = Instant::now();
    work();
    begun.elapsed()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}
