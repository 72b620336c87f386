//! The product with a real model in its own process: SmolLM2 from its file, temperature 0. Its replies are
//! not judged. `cargo xtask local` installs the model, builds with the feature and runs these tests.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "a test panics when it fails, and does not go through the product's seams"
)]

use std::path::PathBuf;
use std::time::Duration;

use fusee_testkit::events::of_type;
use fusee_testkit::project::{Command, Project};
use serde_json::{Value, json};

fn name() -> String {
    let folder = std::env::var_os("FUSEE_REAL_MODEL");
    let folder = PathBuf::from(folder.expect("FUSEE_REAL_MODEL: run `cargo xtask local`, which installs it"));
    format!("local:{}", folder.join("model.gguf").display())
}

fn run<'p>(project: &'p Project, request: &str) -> Command<'p> {
    project
        .command(env!("CARGO_BIN_EXE_fusee"))
        .args(["run", request, "-m", &name(), "--sandbox", "off", "--json", "--max-turns", "2"])
        .limit(Duration::from_secs(180))
}

fn project() -> Project {
    Project::new().with("fusee.toml", "temperature = 0\nmax_output_tokens = 60\n")
}

#[test]
#[ignore = "needs the real model: cargo xtask local"]
fn a_run_streams_counts_and_can_be_replayed_without_the_model() {
    let project = project();
    let outcome = run(&project, "What is the capital of France? Answer in one sentence.")
        .env("FUSEE_TOOL_FORMAT", "native")
        .run();
    let events = outcome.events();
    let pieces: Vec<&str> =
        of_type(&events, "message_delta").iter().filter_map(|event| event["text"].as_str()).collect();
    let said: Vec<&str> =
        of_type(&events, "message").iter().filter_map(|event| event["text"].as_str()).collect();
    assert!(!said.is_empty() && !said[0].trim().is_empty(), "{}", outcome.stdout);
    assert!(pieces.len() > 3 && pieces.concat().starts_with(said[0]), "{pieces:?}");
    let last = events.last().unwrap();
    assert!(last["total_tokens"].as_u64().unwrap() > 50, "{last}");
    assert_eq!(last["cost_usd"], json!(0.0));
    let id = events[0]["run"].as_str().unwrap();
    project.command(env!("CARGO_BIN_EXE_fusee")).args(["replay", id]).run().exits(0);
}

#[test]
#[ignore = "needs the real model: cargo xtask local"]
fn a_run_calls_by_schema_unless_somebody_says_otherwise() {
    let project = project().with("a.txt", "hello\n");
    let outcome = run(&project, "Read a.txt.").run();
    let events = outcome.events();
    let calls = of_type(&events, "tool_call");
    let answered = events.last().unwrap()["status"] == "completed";
    assert!(!calls.is_empty() || answered, "a call or an answer: {}", outcome.stdout);
    assert!(calls.iter().all(|call| call["arguments"].is_object()), "{calls:?}");
}

#[test]
#[ignore = "needs the real model: cargo xtask local"]
fn it_is_listed_and_examined() {
    let project = project();
    let fusee = || project.command(env!("CARGO_BIN_EXE_fusee")).limit(Duration::from_secs(120));
    let listed = fusee().args(["models", "--json", &name()]).run().exits(0);
    let rows: Value = serde_json::from_str(&listed.stdout).unwrap();
    assert_eq!(rows.as_array().unwrap().len(), 1, "{rows}");
    assert_eq!(rows[0]["name"], json!(name()));
    assert!(rows[0]["size_bytes"].as_u64().unwrap() > 90_000_000, "{rows}");
    let examined = fusee().args(["doctor"]).env("FUSEE_MODEL", name()).run();
    assert!(examined.stdout.contains("answers in "), "{}", examined.stdout);
}
