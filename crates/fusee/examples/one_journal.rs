//! Many tasks at once on one journal: `cargo run -p fusee --example one_journal`.
#![expect(clippy::print_stdout, reason = "an example prints")]

use std::error::Error;

use fusee::{Agent, TaskStatus};
use futures_util::future::try_join_all;

const TASKS: usize = 50;

/// Runs the example and returns what it prints.
pub(crate) async fn example() -> Result<String, Box<dyn Error>> {
    // A script instead of a server, so that the example runs anywhere.
    let directory = tempfile::tempdir()?;
    let script = directory.path().join("script.jsonl");
    std::fs::write(&script, "{\"text\":\"Done.\"}\n".repeat(2 * TASKS))?;
    let model = format!("script:{}", script.display());

    let writer = Agent::builder(model.as_str()).workspace(directory.path()).build()?;
    let reviewer =
        Agent::builder(model).workspace(directory.path()).journal(writer.journal().clone()).build()?;
    let tasks =
        (0..TASKS).flat_map(|n| [(&writer, format!("Write {n}")), (&reviewer, format!("Review {n}"))]);
    let runs = try_join_all(tasks.map(|(agent, request)| agent.start(request))).await?;
    let outcomes = try_join_all(runs.into_iter().map(|run| run.outcome())).await?;
    let done = outcomes.iter().filter(|outcome| outcome.status == TaskStatus::Completed).count();
    Ok(format!("{done} tasks done, {} runs in the journal", writer.journal().runs()?.len()))
}

#[tokio::main]
#[cfg_attr(test, expect(dead_code, reason = "the tests call `example`"))]
async fn main() -> Result<(), Box<dyn Error>> {
    println!("{}", example().await?);
    Ok(())
}
