//! A template from a string: `cargo run -p fusee --example template`.
#![expect(clippy::print_stdout, reason = "an example prints")]

use std::error::Error;

use fusee::{Agent, Task};

const GREET: &str = r#"<task name="greet" type="atomic">
  <description>Greet somebody</description>
  <inputs>
    <input name="who"/>
    <input name="times" type="number" default="1"/>
  </inputs>
  <instructions>Greet {{who}}, {{times}} times.</instructions>
</task>"#;

/// Runs the example and returns what it prints.
pub(crate) async fn example() -> Result<String, Box<dyn Error>> {
    // A script instead of a server, so that the example runs anywhere.
    let directory = tempfile::tempdir()?;
    let script = directory.path().join("script.jsonl");
    std::fs::write(&script, r#"{"match":"Greet Ann, 2 times","text":"Hello, Ann! Hello, Ann!"}"#)?;

    let agent = Agent::builder(format!("script:{}", script.display())).workspace(directory.path()).build()?;
    let run = agent.start(Task::template(GREET).input("who", "Ann").input("times", 2)).await?;
    Ok(run.outcome().await?.answer)
}

#[tokio::main]
#[cfg_attr(test, expect(dead_code, reason = "the tests call `example`"))]
async fn main() -> Result<(), Box<dyn Error>> {
    println!("{}", example().await?);
    Ok(())
}
