//! One round trip to a model: whether it answers, how fast, and in which way it makes a call. From that follows how it
//! should be asked.

use std::time::{Duration, Instant};

use fusee_engine::model::{
    CancellationToken, Conversation, Message, Model, ModelError, Reply, RequestOptions, ToolFormat, ToolSpec,
    text_calls,
};
use serde_json::json;

use super::{Finding, State};
use crate::choice::Choice;
use crate::config::Config;
use crate::discover::Found;
use crate::environment::Environment;

/// A model that has not answered by then is not waited for: it may have to be loaded first.
const PATIENCE: Duration = Duration::from_secs(30);

/// Models are asked, one after the other, for so long altogether: each may have to be loaded. The rest are named.
const ALTOGETHER: Duration = Duration::from_secs(120);

/// Enough for a call.
const TOKENS: u32 = 128;

/// What a model did when it was asked for a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    /// It called, through its server.
    Native,
    /// It wrote the call as text.
    Text,
    /// It spoke of something else.
    Words,
}

/// Asks the models of servers on this machine. Those that cost money are never asked unasked.
pub(super) async fn found(found: &Found, config: &Config, environment: &Environment) -> Vec<Finding> {
    let (mut findings, begun) = (Vec::new(), Instant::now());
    for server in &found.servers {
        for model in &server.models {
            let name = format!("{}:{model}", server.provider.name);
            findings.push(if begun.elapsed() < ALTOGETHER {
                ask(&name, config, environment).await
            } else {
                let seconds = ALTOGETHER.as_secs();
                Finding::new(&name, State::Absent, format!("not asked: the others took {seconds} s"))
            });
        }
    }
    findings
}

/// Asks one model.
pub(super) async fn ask(name: &str, config: &Config, environment: &Environment) -> Finding {
    let opened = Choice::named(name, config, environment).and_then(|mut choice| {
        choice.settings.silence = PATIENCE;
        // What its server makes of a call is the question, not what we would.
        let tool_format = std::mem::take(&mut choice.settings.traits.tool_format);
        choice.settings.traits.text_calls = false;
        choice.open(None).map(|model| (model, tool_format))
    });
    let (model, chosen) = match opened {
        Ok(opened) => opened,
        Err(failure) => return Finding::new(name, State::Broken, failure.message),
    };
    let begun = Instant::now();
    let reply = tokio::time::timeout(PATIENCE, call(&*model)).await;
    let seconds = begun.elapsed().as_secs_f64();
    match reply {
        Err(_) => Finding::new(name, State::Broken, format!("no answer within {} s", PATIENCE.as_secs())),
        Ok(Err(error)) => Finding::new(name, State::Broken, error.to_string()),
        Ok(Ok(reply)) => {
            let detail = format!("answers in {seconds:.1} s; {}", advice(manner(&reply), chosen));
            Finding::new(name, State::Ready, detail)
        }
    }
}

async fn call(model: &dyn Model) -> Result<Reply, ModelError> {
    let tool = ToolSpec {
        name: "ping".to_owned(),
        description: "Shows that tools can be called.".to_owned(),
        parameters: json!({ "type": "object", "properties": { "word": { "type": "string" } }, "required": ["word"] }),
    };
    let mut conversation = Conversation::new(model.dialect(), "You call tools.".to_owned(), vec![tool]);
    conversation.push(Message::User { text: "Call the tool `ping` with the word `pong`.".to_owned() });
    let options = RequestOptions {
        max_output_tokens: Some(TOKENS),
        temperature: Some(0.0),
        ..RequestOptions::default()
    };
    model.send(&conversation, &options, &mut |_| {}, &CancellationToken::new()).await
}

pub(super) fn manner(reply: &Reply) -> Manner {
    if !reply.tool_calls.is_empty() {
        Manner::Native
    } else if text_calls::find(&reply.text, &|name| name == "ping")
        .is_some_and(|found| !found.calls.is_empty())
    {
        Manner::Text
    } else {
        Manner::Words
    }
}

/// What to make of it.
pub(super) fn advice(manner: Manner, chosen: ToolFormat) -> &'static str {
    match (manner, chosen) {
        (_, ToolFormat::Schema) => "its replies are constrained (tool_format schema)",
        (_, ToolFormat::Text) => "it is asked for calls in its text (tool_format text)",
        (Manner::Native, _) => "it calls tools",
        (Manner::Text, _) => "it writes calls as text, which is understood",
        (Manner::Words, _) => "it made no call: try tool_format = \"schema\"",
    }
}

#[cfg(test)]
mod tests;
