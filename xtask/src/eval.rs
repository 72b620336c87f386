//! `cargo xtask eval`: compares the ways of prompting a small model. Ten small repair tasks
//! (`testkit/eval_tasks`), each in every way, on an already running server with a real coding model. Not part of
//! the tests: it takes long, and it measures the model as much as Fusee.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::{Outcome, root, step, target_dir};

const USAGE: &str = "Usage: cargo xtask eval BASE_URL MODEL [WAY…]

Requires a running server; testkit/real_model/serve.py MODEL.gguf PORT serves a GGUF file. Example BASE_URL:
http://127.0.0.1:8080/v1, example MODEL: llama.cpp:qwen2.5-coder-1.5b. Ways: native, schema, staged, direct, and
direct-again, which retries once after a failure [default: all]. Run only one instance at a time, because all
use the same temporary directory.";

/// A way of prompting: tool format, additional flags, and retries of a failed task.
struct Way {
    name: &'static str,
    tool_format: &'static str,
    flags: &'static [&'static str],
    tries: &'static str,
}

const WAYS: &[Way] = &[
    Way { name: "native", tool_format: "native", flags: &[], tries: "0" },
    Way { name: "schema", tool_format: "schema", flags: &[], tries: "0" },
    Way { name: "staged", tool_format: "schema", flags: &["--flow", "staged"], tries: "0" },
    Way { name: "direct", tool_format: "native", flags: &["--flow", "direct"], tries: "0" },
    Way { name: "direct-again", tool_format: "native", flags: &["--flow", "direct"], tries: "1" },
];

/// Flags shared by all ways: the tests cannot be changed, and the task ends when they pass.
const COMMON: &[&str] =
    &["--json", "--max-turns", "12", "--benchmark", "--verify", "python3 -m unittest -q test_solution"];

/// Measurements of one task, or their sum.
#[derive(Default)]
struct Figures {
    solved: u32,
    turns: u64,
    tokens: u64,
    cached: u64,
    seconds: f64,
}

pub(crate) fn run(args: &[String]) -> Outcome {
    let [base_url, model, names @ ..] = args else { return Err(USAGE.to_owned()) };
    step::run("build", step::cargo(), ["build", "--locked", "--release", "-p", "fusee-cli"])?;
    let binary = target_dir().join("release/fusee");
    let ways = WAYS.iter().filter(|way| names.is_empty() || names.iter().any(|name| name == way.name));
    println!("| way | solved | turns | tokens | cached | seconds |\n|---|---|---|---|---|---|");
    for way in ways {
        let mut sum = Figures::default();
        let tasks = tasks()?;
        for task in &tasks {
            let one = attempt(&binary, task, way, base_url, model)?;
            let name = task.file_name().unwrap_or_default().to_string_lossy();
            eprintln!("{} {name}: {} in {} turns, {:.0} s", way.name, one.solved, one.turns, one.seconds);
            sum.solved += one.solved;
            sum.turns += one.turns;
            sum.tokens += one.tokens;
            sum.cached += one.cached;
            sum.seconds += one.seconds;
        }
        let Figures { solved, turns, tokens, cached, seconds } = sum;
        let share = cached * 100 / tokens.max(1);
        println!(
            "| {} | {solved} of {} | {turns} | {tokens} | {share} % | {seconds:.0} |",
            way.name,
            tasks.len()
        );
    }
    Ok(())
}

fn tasks() -> Result<Vec<PathBuf>, String> {
    let folder = root().join("testkit/eval_tasks");
    let entries = std::fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut tasks: Vec<PathBuf> =
        entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    tasks.sort();
    Ok(tasks)
}

fn attempt(binary: &Path, task: &Path, way: &Way, base_url: &str, model: &str) -> Result<Figures, String> {
    let fault = |error: std::io::Error| format!("{}: {error}", task.display());
    // The same directory for all: it is part of the prompt, and another name changes what a small model does.
    let work = std::env::temp_dir().join("fusee-effect").join("project");
    let _ = std::fs::remove_dir_all(&work);
    std::fs::create_dir_all(work.join(".fusee")).map_err(fault)?;
    for name in ["solution.py", "test_solution.py"] {
        std::fs::copy(task.join(name), work.join(name)).map_err(fault)?;
    }
    let request = std::fs::read_to_string(task.join("request.txt")).map_err(fault)?;
    let begun = Instant::now();
    let output = Command::new(binary)
        .args(["run", request.trim(), "-m", model, "--base-url", base_url])
        .args(COMMON)
        .args(way.flags)
        .env("FUSEE_TOOL_FORMAT", way.tool_format)
        .env("FUSEE_TASK_REPLAN_MAX", way.tries)
        .env("FUSEE_TEMPERATURE", "0")
        .current_dir(&work)
        .stdin(Stdio::null())
        .output()
        .map_err(fault)?;
    let seconds = begun.elapsed().as_secs_f64();
    // Events are on stderr, because stdout has the benchmark's result line.
    let text = String::from_utf8_lossy(&output.stderr);
    let last = text.lines().rfind(|line| line.contains("\"task_complete\"")).unwrap_or_default();
    // Judge by the original tests, in case the copy was changed.
    std::fs::copy(task.join("test_solution.py"), work.join("test_solution.py")).map_err(fault)?;
    let passed = Command::new("python3")
        .args(["-m", "unittest", "-q", "test_solution"])
        .current_dir(&work)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .map_err(fault)?
        .success();
    let _ = std::fs::remove_dir_all(&work);
    Ok(Figures {
        solved: u32::from(passed),
        turns: number(last, "total_turns"),
        tokens: number(last, "total_tokens"),
        cached: number(last, "cached_tokens"),
        seconds,
    })
}

/// Extracts a number from the JSON text of an event.
fn number(line: &str, key: &str) -> u64 {
    let after = line.split_once(&format!("\"{key}\":")).map_or("", |(_, after)| after);
    after.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap_or(0)
}
