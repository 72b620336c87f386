//! A tool made of an async function: `cargo run -p fusee --example custom_tool`.
#![expect(clippy::print_stdout, reason = "an example prints")]

use std::error::Error;

use fusee::{Agent, Effects, Event, tool};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Stock {
    /// Name of the article, in the singular.
    article: String,
}

/// Runs the example and returns what it prints.
pub(crate) async fn example() -> Result<String, Box<dyn Error>> {
    // A script instead of a server, so that the example runs anywhere; use `ollama:…` or `openai:…` here.
    let directory = tempfile::tempdir()?;
    let script = directory.path().join("script.jsonl");
    let lines = r#"{"tool_calls":[{"name":"stock","arguments":{"article":"lamp"}}]}
{"tool_calls":[{"name":"stock","arguments":{"article":"chair"}}]}
{"text":"Four lamps, no chairs."}"#;
    std::fs::write(&script, lines)?;

    let stock = tool("stock", "How many of an article are in stock.", |Stock { article }| async move {
        match article.as_str() {
            "lamp" => Ok(4),
            other => Err(format!("there is no article `{other}`; there is `lamp`"))?,
        }
    });
    let agent = Agent::builder(format!("script:{}", script.display()))
        .workspace(directory.path())
        .tool(stock.effects(Effects::ReadOnly))
        .build()?;
    let mut run = agent.start("What do we have?").await?;
    let mut printed = String::new();
    while let Some(event) = run.next().await {
        if let Event::ToolResult(result) = event {
            printed.push_str(&format!("{}: {}\n", if result.ok { "ok" } else { "error" }, result.content));
        }
    }
    printed.push_str(&run.outcome().await?.answer);
    Ok(printed)
}

#[tokio::main]
#[cfg_attr(test, expect(dead_code, reason = "the tests call `example`"))]
async fn main() -> Result<(), Box<dyn Error>> {
    println!("{}", example().await?);
    Ok(())
}
