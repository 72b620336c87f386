//! A task with two custom tools, run from a program: `cargo run -p fusee-engine --example custom_tools`.
#![expect(clippy::print_stdout, reason = "an example prints")]

use std::sync::Arc;

use fusee_engine::embed::{self, SimpleTool, ToolAnswer};
use serde_json::json;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let stock = SimpleTool::new(
        "stock",
        "How many of an article are in stock.",
        json!({ "type": "object", "properties": { "article": { "type": "string" } }, "required": ["article"] }),
        |arguments| match arguments["article"].as_str() {
            Some("lamp") => ToolAnswer::done("4"),
            other => ToolAnswer::error(format!("There is no article {other:?}; there is `lamp`.")),
        },
    );
    let price = SimpleTool::new(
        "price",
        "The price of an article, in cents.",
        json!({ "type": "object", "properties": { "article": { "type": "string" } }, "required": ["article"] }),
        |_| ToolAnswer::done("1999"),
    );
    // A script instead of a server, so that the example runs anywhere; use `llama.cpp:…` or `openai:…` here.
    let script = std::env::temp_dir().join("fusee-custom-tools.jsonl");
    std::fs::write(
        &script,
        r#"{"tool_calls":[{"name":"stock","arguments":{"article":"lamp"}},{"name":"price","arguments":{"article":"lamp"}}]}
{"text":"Four lamps, 19.99 each: 79.96 in all."}"#,
    )?;
    let directory = std::env::temp_dir();
    let outcome = embed::Task::new(
        "What are all our lamps worth?",
        &format!("script:{}", script.display()),
        &directory,
    )
    .tool(Arc::new(stock))
    .tool(Arc::new(price))
    .run(|event| println!("{}", serde_json::to_string(event).unwrap_or_default()))
    .await?;
    println!("{}\n{:?}", outcome.answer, outcome.resource_metrics());
    Ok(())
}
