//! `fusee doctor MODEL`: tests one model with four requests and derives a profile from its replies. `--write` stores
//! the profile in the user's `profiles.toml`, where every later run finds it.

use std::io;
use std::time::{Duration, Instant};

use fusee::engine::model::{
    CancellationToken, Conversation, Message, Model, ModelError, ModelRef, Reply, RequestOptions, StopReason,
    ToolFormat,
};
use serde::Serialize;
use serde_json::{Value, json};

use super::probe::{self, CallStyle};
use super::{CheckState, DoctorCheck};
use crate::config::Config;
use crate::model_selection;
use crate::process::environment::Environment;
use crate::process::error::CliError;
use crate::ui::format;

/// Time limit for one reply; a model may have to be loaded first.
const TIMEOUT: Duration = Duration::from_secs(180);

/// Maximum number of tokens of the short replies, and of the long one.
const SHORT: u32 = 256;
const LONG: u32 = 1200;

/// Output limit of a model that did not end its long reply.
const ENDLESS_TOKENS: u32 = 4096;

const FILE_TASK: &str = "The files:\n\ngreet.py\n```\ndef greet(name):\n    return \"Hello, \" + name\n```\n\nMake greet say \
    Goodbye instead of Hello.\n\nAnswer with the complete new content of each file that has to change: first the file's path on \
    a line of its own, then the whole file in a fenced block.";
const SCHEMA_TASK: &str = "Tell me a short joke about bread.";
const LONG_TASK: &str = "Write the numbers from 1 to 150, one per line, and nothing else.";

/// What a model can do, as far as the tests show.
#[derive(Debug, Serialize)]
pub(crate) struct ModelReport {
    pub(crate) model: String,
    pub(crate) checks: Vec<DoctorCheck>,
    /// The profile in the format of `profiles.toml`.
    pub(crate) profile: String,
    /// The file it was written to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) written: Option<String>,
}

/// The parts of a profile that the tests determine.
#[derive(Debug, Default, PartialEq)]
pub(super) struct FoundProfile {
    tool_format: ToolFormat,
    text_calls: bool,
    whole_files: bool,
    small: bool,
    context_tokens: Option<u64>,
    max_output_tokens: Option<u32>,
}

/// Tests a model.
pub(crate) async fn test(
    name: &str,
    config: &Config,
    environment: &Environment,
) -> Result<ModelReport, CliError> {
    let mut resolved = model_selection::named(name, config, environment)?;
    resolved.connection.silence = TIMEOUT;
    let small = resolved.connection.traits.small;
    // The server's own handling of calls and limits is tested, not ours.
    resolved.connection.traits.tool_format = ToolFormat::Native;
    resolved.connection.traits.text_calls = false;
    let model = model_selection::open(&resolved, None)?;
    let mut checks = Vec::new();
    let style = match probe::call(&*model).await {
        Ok(reply) => probe::call_style(&reply),
        Err(error) => {
            checks.push(DoctorCheck::new("tool call", CheckState::Broken, error.to_string()));
            return Ok(ModelReport { model: name.to_owned(), checks, profile: String::new(), written: None });
        }
    };
    checks.push(match style {
        CallStyle::Native => DoctorCheck::new("tool call", CheckState::Ready, "makes a native tool call"),
        CallStyle::Text => DoctorCheck::new("tool call", CheckState::Ready, "writes the tool call as text"),
        CallStyle::Words => DoctorCheck::new("tool call", CheckState::Absent, "makes no tool call"),
    });
    let fenced = answered(&*model, FILE_TASK, SHORT, None).await.map(|(reply, _)| is_whole_file(&reply.text));
    checks.push(check("fenced file", fenced, "answers with the whole file", "does not answer with the file"));
    let schema = json!({
        "type": "object",
        "properties": { "kind": { "type": "string", "enum": ["pun", "story"] }, "lines": { "type": "integer" } },
        "required": ["kind", "lines"],
        "additionalProperties": false,
    });
    let constrained = answered(&*model, SCHEMA_TASK, SHORT, Some(schema)).await;
    let constrained = constrained.map(|(reply, _)| follows_schema(&reply.text));
    checks.push(check(
        "constrained reply",
        constrained,
        "the server constrains replies to a schema",
        "the server does not constrain replies",
    ));
    let long = answered(&*model, LONG_TASK, LONG, None).await;
    let (long_check, ends) = long_reply(long);
    checks.push(long_check);
    let found = FoundProfile {
        tool_format: match (style, constrained) {
            (CallStyle::Native, _) => ToolFormat::Native,
            (CallStyle::Words, Some(true)) => ToolFormat::Schema,
            (CallStyle::Text | CallStyle::Words, _) => ToolFormat::Text,
        },
        text_calls: style == CallStyle::Text,
        whole_files: fenced == Some(true),
        small: small || style != CallStyle::Native,
        context_tokens: model.context_tokens().await,
        max_output_tokens: (!ends).then_some(ENDLESS_TOKENS),
    };
    if let Some(tokens) = found.context_tokens {
        checks.push(DoctorCheck::new("context", CheckState::Ready, format!("{tokens} tokens")));
    }
    if let Some(slots) = model.slots().await {
        checks.push(DoctorCheck::new(
            "slots",
            CheckState::Ready,
            format!("{} at once", format::count(slots.into(), "request")),
        ));
    }
    let (provider, id) = match ModelRef::parse(&resolved.name) {
        Ok(ModelRef::Server { provider, model }) => (provider.map(|provider| provider.name), model),
        _ => (None, resolved.name.clone()),
    };
    let profile = found.render(provider, &id);
    Ok(ModelReport { model: name.to_owned(), checks, profile, written: None })
}

/// Sends one request. `None` if it failed.
async fn answered(
    model: &dyn Model,
    request: &str,
    max_output_tokens: u32,
    schema: Option<Value>,
) -> Option<(Reply, Duration)> {
    let mut conversation =
        Conversation::new(model.dialect(), "You are a careful software engineer.".to_owned(), Vec::new());
    conversation.push(Message::user(request.to_owned()));
    let options = RequestOptions {
        max_output_tokens: Some(max_output_tokens),
        temperature: Some(0.0),
        output_schema: schema,
        ..RequestOptions::default()
    };
    let begun = Instant::now();
    let (mut nothing, cancel) = (|_: fusee::engine::model::ReplyDelta<'_>| {}, CancellationToken::new());
    let sent = model.send(&conversation, &options, &mut nothing, &cancel);
    let reply: Result<Reply, ModelError> = tokio::time::timeout(TIMEOUT, sent).await.ok()?;
    reply.ok().map(|reply| (reply, begun.elapsed()))
}

fn check(name: &str, result: Option<bool>, yes: &str, no: &str) -> DoctorCheck {
    match result {
        Some(true) => DoctorCheck::new(name, CheckState::Ready, yes),
        Some(false) => DoctorCheck::new(name, CheckState::Absent, no),
        None => DoctorCheck::new(name, CheckState::Broken, "no answer"),
    }
}

/// Whether a reply has the changed file in a fenced block.
fn is_whole_file(reply: &str) -> bool {
    let blocks = reply.split("```").skip(1).step_by(2);
    blocks.into_iter().any(|block| block.contains("def greet") && block.contains("Goodbye"))
}

fn follows_schema(reply: &str) -> bool {
    let value: Value = serde_json::from_str(reply.trim()).unwrap_or_default();
    let kind = value["kind"].as_str();
    kind.is_some_and(|kind| ["pun", "story"].contains(&kind)) && value["lines"].is_i64()
}

/// Judges a long reply: whether it ends by itself, and how fast it was.
fn long_reply(long: Option<(Reply, Duration)>) -> (DoctorCheck, bool) {
    let Some((reply, time)) = long else {
        return (DoctorCheck::new("long reply", CheckState::Broken, "no answer"), false);
    };
    let ends = reply.stop != StopReason::Length;
    let tokens = reply.usage.map_or(reply.text.len() as u64 / 4, |usage| usage.output_tokens);
    let speed = tokens as f64 / time.as_secs_f64().max(0.001);
    let how = if ends { "ends by itself" } else { "does not end, and is cut off" };
    let state = if ends { CheckState::Ready } else { CheckState::Absent };
    (DoctorCheck::new("long reply", state, format!("{how}; {tokens} tokens, {speed:.0} a second")), ends)
}

impl FoundProfile {
    /// The profile as an entry of `profiles.toml`.
    pub(super) fn render(&self, provider: Option<&str>, id: &str) -> String {
        let mut lines = vec!["[[profile]]".to_owned()];
        lines.extend(provider.map(|provider| format!("provider = [{}]", json!(provider))));
        lines.push(format!("model = [{}]", json!(id)));
        let tool_format = serde_json::to_value(self.tool_format).unwrap_or_default();
        lines.push(format!("tool_format = {tool_format}"));
        lines.push(format!("text_calls = {}", self.text_calls));
        lines.push(format!("small = {}", self.small));
        if self.whole_files && self.small {
            lines.push("edit_format = \"whole\"".to_owned());
        }
        lines.extend(self.context_tokens.map(|tokens| format!("context_tokens = {tokens}")));
        lines.extend(self.max_output_tokens.map(|tokens| format!("max_output_tokens = {tokens}")));
        lines.join("\n") + "\n"
    }
}

/// Appends the profile to the user's own; later entries override earlier ones. Returns the file.
pub(crate) fn write(report: &ModelReport, environment: &Environment) -> Result<String, CliError> {
    let folder = environment
        .config_folder()
        .ok_or_else(|| CliError::usage("there is no configuration folder: set HOME or XDG_CONFIG_HOME"))?;
    let path = folder.join("profiles.toml");
    let failed = |error: io::Error| CliError::usage(format!("cannot write {}: {error}", path.display()));
    std::fs::create_dir_all(&folder).map_err(failed)?;
    let mut text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(failed(error)),
    };
    if !text.is_empty() {
        text = format!("{}\n\n", text.trim_end());
    }
    text.push_str(&format!("# Found by `fusee doctor {}`.\n{}", report.model, report.profile));
    std::fs::write(&path, text).map_err(failed)?;
    Ok(path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_is_an_entry_that_the_catalog_reads() {
        let found = FoundProfile {
            tool_format: ToolFormat::Schema,
            whole_files: true,
            small: true,
            context_tokens: Some(8192),
            max_output_tokens: Some(4096),
            ..FoundProfile::default()
        };
        let text = found.render(Some("llama.cpp"), "tiny \"x\"");
        let mut profiles = fusee::engine::model::Profiles::builtin_for(Some("llama.cpp")).unwrap();
        profiles.add("profiles.toml", &text).unwrap();
        let profile = profiles.resolve(Some("llama.cpp"), "tiny \"x\"");
        let traits = profile.traits();
        assert!(traits.small && traits.tool_format == ToolFormat::Schema);
        assert_eq!((profile.context_tokens, profile.max_output_tokens), (Some(8192), Some(4096)));
    }

    #[test]
    fn files_and_schemas_are_recognised() {
        assert!(is_whole_file("greet.py\n```python\ndef greet(name):\n    return \"Goodbye, \" + name\n```"));
        assert!(!is_whole_file("Use Goodbye in def greet."));
        assert!(follows_schema("{\"kind\": \"pun\", \"lines\": 2}"));
        assert!(!follows_schema("Why did the bread rise?"));
    }
}
