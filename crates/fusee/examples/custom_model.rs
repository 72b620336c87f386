//! A model of one's own: `cargo run -p fusee --example custom_model`. It calls a tool, then answers with the result.
#![expect(clippy::print_stdout, reason = "an example prints")]

use std::error::Error;

use fusee::Agent;
use fusee::model::{
    BoxFuture, CancellationToken, Conversation, Dialect, Message, Model, ModelError, Reply, ReplyDelta,
    RequestOptions, ToolCall,
};

struct Lister;

impl Model for Lister {
    fn name(&self) -> &str {
        "lister"
    }

    fn dialect(&self) -> Dialect {
        Dialect::default()
    }

    fn send<'a>(
        &'a self,
        conversation: &'a Conversation,
        _options: &'a RequestOptions,
        sink: &'a mut (dyn FnMut(ReplyDelta<'_>) + Send),
        _cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Reply, ModelError>> {
        Box::pin(async move {
            let last = conversation.messages().last();
            let Some(Message::Tool { content, .. }) = last else {
                let call = ToolCall {
                    id: "call-1".to_owned(),
                    name: "list_dir".to_owned(),
                    arguments: "{}".to_owned(),
                };
                return Ok(Reply { tool_calls: vec![call], ..Reply::default() });
            };
            let text = format!("The directory contains: {}", content.trim());
            // Fragments passed to the sink become delta events while the reply is under way.
            sink(ReplyDelta::Text(&text));
            Ok(Reply { text, ..Reply::default() })
        })
    }
}

/// Runs the example and returns what it prints.
pub(crate) async fn example() -> Result<String, Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    std::fs::write(directory.path().join("notes.txt"), "remember the milk\n")?;
    let agent = Agent::with_model(Lister).workspace(directory.path()).build()?;
    let run = agent.start("What is here?").await?;
    Ok(run.outcome().await?.answer)
}

#[tokio::main]
#[cfg_attr(test, expect(dead_code, reason = "the tests call `example`"))]
async fn main() -> Result<(), Box<dyn Error>> {
    println!("{}", example().await?);
    Ok(())
}
