//! Exports a run as a cassette: the model's replies, attempt by attempt, in the model crate's format.
//! Requests have no hashes because the journal stores only what each request added, not its bytes; such a
//! cassette is played in order.

use fusee::engine::journal::{Journal, RunId, StepKind, StepRow};
use fusee::engine::model::{ErrorKind, ModelError, Reply};
use fusee::engine::run::{self, RunSpec};
use serde_json::{Map, Value, json};

use crate::process::error::CliError;

/// The header and one line per attempt.
pub(crate) fn lines(settings: &RunSpec, steps: &[StepRow]) -> Result<Vec<Value>, CliError> {
    let mut header = json!({ "cassette": 1, "model": settings.model, "wire": settings.wire });
    if !settings.traits.is_default() {
        header["traits"] = json!(settings.traits);
    }
    let context =
        steps.iter().find(|step| step.kind == StepKind::Environment && step.callee == "context_tokens");
    if let Some(tokens) = context.and_then(|step| step.result.as_ref()).and_then(Value::as_u64) {
        header["context_tokens"] = tokens.into();
    }
    let mut lines = vec![header];
    // In order of time across all branches, which is how a cassette is played.
    let mut attempts: Vec<&StepRow> = steps.iter().filter(|step| step.kind == StepKind::Model).collect();
    attempts.sort_by_key(|step| step.at_ms);
    for step in attempts {
        let Some(result) = &step.result else { continue };
        lines.extend(attempt(result).map_err(|error| {
            CliError::failed(format!("cannot export {} to a cassette: {error}", step.key))
        })?);
    }
    Ok(lines)
}

/// The cassette of a run as text.
pub(crate) fn text(journal: &Journal, run: &RunId) -> Result<String, CliError> {
    let settings = run::settings_of(journal, run)?;
    let lines = lines(&settings, &journal.steps(run)?)?;
    Ok(lines.iter().map(|line| format!("{line}\n")).collect())
}

/// One attempt; `None` if we cancelled it ourselves, since that is no reply of the model.
fn attempt(result: &Value) -> Result<Option<Value>, serde_json::Error> {
    if let Some(reply) = result.get("reply") {
        let reply: Reply = serde_json::from_value(reply.clone())?;
        return Ok(Some(answered(&reply)));
    }
    let Some(error) = result.get("error").and_then(|failed| failed.get("error")) else { return Ok(None) };
    let error: ModelError = serde_json::from_value(error.clone())?;
    Ok((error.kind != ErrorKind::Cancelled).then(|| failed(&error)))
}

fn answered(reply: &Reply) -> Value {
    let mut line = Map::new();
    if let Some(reasoning) = &reply.reasoning {
        if !reasoning.text.is_empty() {
            line.insert("reasoning".into(), reasoning.text.as_str().into());
        }
        if !reasoning.opaque.is_empty() {
            line.insert("opaque".into(), reasoning.opaque.clone().into());
        }
    }
    if !reply.text.is_empty() {
        line.insert("text".into(), reply.text.as_str().into());
    }
    if !reply.tool_calls.is_empty() {
        let calls = reply.tool_calls.iter();
        let calls: Vec<Value> = calls
            .map(|call| json!({ "id": call.id, "name": call.name, "arguments": call.arguments }))
            .collect();
        line.insert("tool_calls".into(), calls.into());
    }
    if let Some(usage) = &reply.usage {
        line.insert("usage".into(), json!(usage));
    }
    line.insert("stop".into(), json!(reply.stop));
    line.into()
}

fn failed(error: &ModelError) -> Value {
    let mut fields = Map::new();
    fields.insert("kind".into(), json!(error.kind));
    if let Some(status) = error.status {
        fields.insert("status".into(), status.into());
    }
    if let Some(ms) = error.retry_after_ms {
        fields.insert("retry_after".into(), (ms as f64 / 1_000.0).into());
    }
    fields.insert("message".into(), error.message.as_str().into());
    json!({ "error": fields })
}
