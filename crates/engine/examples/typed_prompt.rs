//! A task with its own type and prompt, run from a program: `cargo run -p fusee-engine --example
//! typed_prompt`. The model opens a section before it answers.
#![expect(clippy::print_stdout, reason = "an example prints")]

use std::sync::Arc;

use fusee_engine::embed;
use fusee_engine::journal::event::Event;
use fusee_engine::prompt::{PlanningStrategy, Prompt, PromptSection, SectionDisplay, Visibility};
use schemars::JsonSchema;
use serde::Serialize;

/// A customer inquiry.
#[derive(Serialize, JsonSchema)]
struct Inquiry {
    /// The customer's words.
    request: String,
    /// Known facts about the customer.
    #[serde(skip_serializing_if = "Option::is_none")]
    background: Option<String>,
    /// Articles the customer has bought.
    articles: Vec<String>,
    /// How soon the customer needs an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    urgency: Option<String>,
}

fn prompt() -> Result<Prompt<Inquiry>, String> {
    let terms = PromptSection::literal("terms", "Terms", "Lamps are taken back within 30 days. It costs $5.");
    let prices = PromptSection::text("prices", "Prices", "What we ask for ${articles}: see the list.");
    let urgent = |value: &dyn Fn(&str) -> Option<String>| value("urgency").is_some();
    // The handbook is shown in full when there is no time to open it.
    let visibility = Visibility::Decided(Arc::new(move |value| {
        if urgent(value) { SectionDisplay::Full } else { SectionDisplay::Summary }
    }));
    Prompt::builder()
        .section(PromptSection::text(
            "guidance",
            "Guidance",
            "You answer customers who bought ${articles}. Be brief.",
        ))
        .section(
            PromptSection::text("handbook", "Handbook", "How we work.")
                .with_summary("Our terms and prices.", visibility)
                .child(terms)
                .child(prices),
        )
        .section(PlanningStrategy::React.section())
        .section(PromptSection::task().named("inquiry", "Inquiry"))
        .build()
        .map_err(|problems| problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let inquiry = Inquiry {
        request: "Can I give it back?".to_owned(),
        background: Some("Bought last week.".to_owned()),
        articles: vec!["a lamp".to_owned()],
        urgency: None,
    };
    // A script instead of a server, so that the example runs anywhere; use `llama.cpp:…` or `openai:…` here.
    let directory = std::env::temp_dir().join(format!("fusee-typed-prompt-{}", std::process::id()));
    std::fs::create_dir_all(&directory)?;
    let script = directory.join("script.jsonl");
    std::fs::write(
        &script,
        r#"{"tool_calls":[{"name":"open_sections","arguments":{"section_keys":["handbook.terms"],"reason":"The terms decide it"}}]}
{"text":"Yes, within 30 days, for 5 dollars."}"#,
    )?;
    let model = format!("script:{}", script.display());
    let task = embed::Task::prompted(&prompt()?, &inquiry, &model, &directory)?;
    let outcome = task
        .run(|stamped| {
            if let Event::Expansion { section_keys, reason, .. } = &stamped.event {
                println!("opened {}: {reason}", section_keys.join(", "));
            }
        })
        .await?;
    println!("{}", outcome.answer);
    std::fs::remove_dir_all(&directory)?;
    Ok(())
}
