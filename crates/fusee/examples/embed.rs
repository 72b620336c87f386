//! Fusee as a library: a task with a custom tool, printing events as they arrive.
//!
//! `cargo run --example embed -- DIRECTORY MODEL REQUEST`, with MODEL as in `fusee run -m`. The journal is in
//! DIRECTORY/.fusee, so `fusee runs` and `fusee show` list the run.
#![expect(clippy::print_stdout, reason = "a program of its own")]

use std::path::Path;
use std::sync::Arc;

use fusee::embed::{SimpleTool, Task, ToolAnswer};
use serde_json::json;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [directory, model, request] = arguments.as_slice() else {
        return Err("embed DIRECTORY MODEL REQUEST".into());
    };
    let add = SimpleTool::new(
        "add",
        "Adds two numbers.",
        json!({
            "type": "object",
            "properties": { "a": { "type": "number" }, "b": { "type": "number" } },
            "required": ["a", "b"],
            "additionalProperties": false
        }),
        |numbers| match (numbers["a"].as_f64(), numbers["b"].as_f64()) {
            (Some(a), Some(b)) => ToolAnswer::done((a + b).to_string()),
            _ => ToolAnswer::error("`a` and `b` must be numbers."),
        },
    );
    let outcome = Task::new(request, model, &Path::new(directory).canonicalize()?)
        .tool(Arc::new(add))
        .run(|event| println!("{}", json!(event)))
        .await?;
    println!("{}", outcome.answer);
    Ok(())
}
