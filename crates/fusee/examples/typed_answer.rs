//! An answer of one's own type: `cargo run -p fusee --example typed_answer`.
#![expect(clippy::print_stdout, reason = "an example prints")]

use std::error::Error;

use fusee::Agent;

#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
struct Review {
    /// From 1 (poor) to 5 (excellent).
    score: u8,
    /// Proposed change.
    suggestions: Vec<String>,
}

/// Runs the example and returns what it prints.
pub(crate) async fn example() -> Result<String, Box<dyn Error>> {
    // A script instead of a server, so that the example runs anywhere. Its first answer is not of the type, so the
    // model is asked once more.
    let directory = tempfile::tempdir()?;
    let script = directory.path().join("script.jsonl");
    let lines = r#"{"text":"Quite good."}
{"text":"```json\n{\"score\": 4, \"suggestions\": [\"name the units\"]}\n```"}"#;
    std::fs::write(&script, lines)?;

    let agent = Agent::builder(format!("script:{}", script.display())).workspace(directory.path()).build()?;
    let review: Review = agent.ask("Review src/").await?;
    Ok(format!("{} of 5; {}", review.score, review.suggestions.join(", ")))
}

#[tokio::main]
#[cfg_attr(test, expect(dead_code, reason = "the tests call `example`"))]
async fn main() -> Result<(), Box<dyn Error>> {
    println!("{}", example().await?);
    Ok(())
}
