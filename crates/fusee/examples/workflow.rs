//! A workflow from a string, with tools, parameters and a template: `cargo run -p fusee --example workflow`.
#![expect(clippy::print_stdout, reason = "an example prints")]

use std::error::Error;

use fusee::{Agent, Task};

const SUMMARISE: &str = r#"<task name="summarise" type="atomic">
  <description>Summarise a text</description>
  <inputs><input name="text"/></inputs>
  <instructions>Summarise in one sentence: {{text}}</instructions>
</task>"#;

/// Runs the example and returns what it prints.
pub(crate) async fn example() -> Result<String, Box<dyn Error>> {
    // A script instead of a server, so that the example runs anywhere.
    let directory = tempfile::tempdir()?;
    let script = directory.path().join("script.jsonl");
    std::fs::write(&script, r#"{"match":"remember the milk","text":"It is about milk."}"#)?;
    std::fs::write(directory.path().join("notes.txt"), "remember the milk\n")?;

    let agent = Agent::builder(format!("script:{}", script.display()))
        .workspace(directory.path())
        .template(SUMMARISE)
        .build()?;
    let workflow = Task::workflow("(params (file string)) (summarise (text (read_file (path file))))");
    let run = agent.start(workflow.input("file", "notes.txt")).await?;
    Ok(run.outcome().await?.answer)
}

#[tokio::main]
#[cfg_attr(test, expect(dead_code, reason = "the tests call `example`"))]
async fn main() -> Result<(), Box<dyn Error>> {
    println!("{}", example().await?);
    Ok(())
}
