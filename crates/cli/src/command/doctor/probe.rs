//! Sends one request to a model: whether it answers, how fast, and how it makes a tool call. The result
//! suggests a `tool_format`.

use std::time::{Duration, Instant};

use fusee::engine::model::{
    CancellationToken, Conversation, Message, Model, ModelError, Reply, RequestOptions, ToolFormat, ToolSpec,
    text_calls,
};
use serde_json::json;

use super::{CheckState, DoctorCheck};
use crate::config::Config;
use crate::model_selection;
use crate::model_selection::discovery::DiscoveredModels;
use crate::process::environment::Environment;

/// Time limit for one answer; a model may have to be loaded first.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Time limit for probing all models, one after the other; the rest are listed without a probe.
const TOTAL_TIMEOUT: Duration = Duration::from_secs(120);

/// Maximum number of reply tokens; enough for a tool call.
const TOKENS: u32 = 128;

/// How a model responded to the request for a tool call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallStyle {
    /// A native tool call.
    Native,
    /// A tool call written as text.
    Text,
    /// No tool call.
    Words,
}

/// Probes the models of local servers. Paid models are never probed.
pub(super) async fn found(
    found: &DiscoveredModels,
    config: &Config,
    environment: &Environment,
) -> Vec<DoctorCheck> {
    let (mut findings, begun) = (Vec::new(), Instant::now());
    for server in &found.servers {
        for model in &server.models {
            let name = format!("{}:{model}", server.provider.name);
            findings.push(if begun.elapsed() < TOTAL_TIMEOUT {
                ask(&name, config, environment).await
            } else {
                let seconds = TOTAL_TIMEOUT.as_secs();
                DoctorCheck::new(
                    &name,
                    CheckState::Absent,
                    format!("not tested: the others took {seconds} s"),
                )
            });
        }
    }
    findings
}

/// Probes one model.
pub(super) async fn ask(name: &str, config: &Config, environment: &Environment) -> DoctorCheck {
    let opened = model_selection::named(name, config, environment).and_then(|mut choice| {
        choice.connection.silence = TIMEOUT;
        // Test the server's own handling of tool calls, not ours.
        let tool_format = std::mem::take(&mut choice.connection.traits.tool_format);
        choice.connection.traits.text_calls = false;
        model_selection::open(&choice, None).map(|model| (model, tool_format))
    });
    let (model, chosen) = match opened {
        Ok(opened) => opened,
        Err(failure) => return DoctorCheck::new(name, CheckState::Broken, failure.message),
    };
    let begun = Instant::now();
    let reply = tokio::time::timeout(TIMEOUT, call(&*model)).await;
    let seconds = begun.elapsed().as_secs_f64();
    match reply {
        Err(_) => {
            DoctorCheck::new(name, CheckState::Broken, format!("no answer within {} s", TIMEOUT.as_secs()))
        }
        Ok(Err(error)) => DoctorCheck::new(name, CheckState::Broken, error.to_string()),
        Ok(Ok(reply)) => {
            let detail = format!("answers in {seconds:.1} s; {}", advice(call_style(&reply), chosen));
            DoctorCheck::new(name, CheckState::Ready, detail)
        }
    }
}

/// Asks a model for a tool call.
pub(super) async fn call(model: &dyn Model) -> Result<Reply, ModelError> {
    let tool = ToolSpec {
        name: "ping".to_owned(),
        description: "Shows that tools can be called.".to_owned(),
        parameters: json!({ "type": "object", "properties": { "word": { "type": "string" } }, "required": ["word"] }),
    };
    let mut conversation = Conversation::new(model.dialect(), "You call tools.".to_owned(), vec![tool]);
    conversation.push(Message::user("Call the tool `ping` with the word `pong`.".to_owned()));
    let options = RequestOptions {
        max_output_tokens: Some(TOKENS),
        temperature: Some(0.0),
        ..RequestOptions::default()
    };
    model.send(&conversation, &options, &mut |_| {}, &CancellationToken::new()).await
}

pub(super) fn call_style(reply: &Reply) -> CallStyle {
    if !reply.tool_calls.is_empty() {
        CallStyle::Native
    } else if text_calls::find(&reply.text, &|name| name == "ping")
        .is_some_and(|found| !found.calls.is_empty())
    {
        CallStyle::Text
    } else {
        CallStyle::Words
    }
}

/// Explains the result to the user.
pub(super) fn advice(manner: CallStyle, chosen: ToolFormat) -> &'static str {
    match (manner, chosen) {
        (_, ToolFormat::Schema) => "replies are constrained (tool_format schema)",
        (_, ToolFormat::Text) => "tool calls are requested as text (tool_format text)",
        (CallStyle::Native, _) => "makes tool calls",
        (CallStyle::Text, _) => "writes tool calls as text, which is supported",
        (CallStyle::Words, _) => "made no tool call; try tool_format = \"schema\"",
    }
}

#[cfg(test)]
mod tests;
