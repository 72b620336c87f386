//! Prompts and results of tasks that a program defines itself or describes in words. The task system handles
//! registered templates.

use fusee_journal::RunAborted;
use fusee_lang::{OutputFormat, ResumeInput, TaskCall, TaskTarget, ToolCall};
use fusee_model::Message;
use serde_json::{Map, Value as Json};

use super::driver::{EffectAnswer, WorkflowDriver};
use super::task_calls::{is_described, reply};
use crate::task_system::{
    ErrorCause, HistoryConfig, Mismatch, Reason, ResourceMetrics, TaskResult, TemplateTaskError, history_part,
};

/// A task's prompt.
pub(super) struct AtomPrompt {
    pub(super) name: String,
    pub(super) system: Option<String>,
    pub(super) request: String,
    pub(super) format: Option<OutputFormat>,
    pub(super) described: bool,
    /// Number of files included in the request.
    pub(super) files: usize,
    has_context: bool,
    /// Number of turns of the run's conversation in the request, if it asked for history.
    pub(super) history_turns: Option<usize>,
}

impl AtomPrompt {
    pub(super) fn context_source(&self) -> &'static str {
        match (self.files, self.has_context) {
            (0, false) => "none",
            (0, true) => "request",
            _ => "files",
        }
    }
}

/// Builds the prompt of a call, or reports what is wrong with its inputs.
pub(super) fn prompt(call: &TaskCall, history: &[Message]) -> Result<AtomPrompt, TemplateTaskError> {
    let name = call.callee().to_owned();
    let (system, mut request, format) = match &call.target {
        TaskTarget::Named(name) => {
            let message = format!("unknown task `{name}`");
            return Err(TemplateTaskError::invalid(Reason::TemplateNotFound, message));
        }
        TaskTarget::Described(words) => (None, described(words, &call.inputs), None),
        TaskTarget::Atom(atom) => {
            let mut missing = Vec::new();
            let request = substitute(&atom.instructions, &call.inputs, &mut missing);
            let system = atom.system.as_ref().map(|system| substitute(system, &call.inputs, &mut missing));
            if !missing.is_empty() {
                let names = missing.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
                let message = format!("`{}` has no value for {names}", atom.name);
                return Err(TemplateTaskError::invalid(Reason::InputValidationFailure, message));
            }
            (system, request, atom.output_format.clone())
        }
    };
    let own = match &call.target {
        TaskTarget::Atom(atom) => atom.model.clone().map(Json::from),
        TaskTarget::Named(_) | TaskTarget::Described(_) => None,
    };
    if let Some(model) = call.settings.get("model").filter(|model| !model.is_null()).or(own.as_ref()) {
        let message = format!("this run has only one model; `{}` requests {model}", call.callee());
        return Err(TemplateTaskError::failure(Reason::ConfigurationError, message));
    }
    let wanted = call.settings.get("history_config").filter(|wanted| !wanted.is_null());
    let wanted = wanted.map(|wanted| serde_json::from_value::<HistoryConfig>(wanted.clone())).transpose();
    let wanted = wanted.map_err(|error| {
        let message = format!("invalid `history_config`: {error}");
        TemplateTaskError::failure(Reason::ConfigurationError, message)
    })?;
    let told = history_part(history, wanted.as_ref());
    let history_turns = told.as_ref().map(|(_, turns)| *turns);
    if let Some(part) = told.and_then(|(part, _)| part) {
        request.push_str(&format!("\n\n## Context from {}\n\n{}", part.source, part.text));
    }
    let context = call.settings.get("context").map(shown).filter(|context| !context.is_empty());
    if let Some(context) = &context {
        request.push_str("\n\nContext:\n");
        request.push_str(context);
    }
    let has_context = context.is_some();
    let described = is_described(call);
    Ok(AtomPrompt { name, system, request, format, described, files: 0, has_context, history_turns })
}

fn described(words: &str, inputs: &Map<String, Json>) -> String {
    let mut request = words.to_owned();
    for (name, value) in inputs {
        request.push_str(&format!("\n\n{name}:\n{}", shown(value)));
    }
    request
}

/// Renders a value for a prompt: text as is, null as empty, the rest as JSON.
fn shown(value: &Json) -> String {
    match value {
        Json::String(text) => text.clone(),
        Json::Null => String::new(),
        other => other.to_string(),
    }
}

/// Replaces `{{name}}` and `{{name.field}}` with the inputs in one pass, so braces in a value have no effect.
/// `{{{{` is a literal `{{`.
pub fn substitute(text: &str, inputs: &Map<String, Json>, missing: &mut Vec<String>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("{{") {
        out.push_str(&rest[..at]);
        rest = &rest[at + 2..];
        if let Some(after) = rest.strip_prefix("{{") {
            out.push_str("{{");
            rest = after;
            continue;
        }
        let Some(end) = rest.find("}}") else {
            out.push_str("{{");
            break;
        };
        let name = rest[..end].trim();
        match lookup(inputs, name) {
            Some(value) => out.push_str(&shown(value)),
            None if !missing.iter().any(|known| known == name) => missing.push(name.to_owned()),
            None => {}
        }
        rest = &rest[end + 2..];
    }
    out.push_str(rest);
    out
}

fn lookup<'a>(inputs: &'a Map<String, Json>, name: &str) -> Option<&'a Json> {
    let mut parts = name.split('.');
    let mut value = inputs.get(parts.next()?)?;
    for part in parts {
        value = match value {
            Json::Array(items) => items.get(part.parse::<usize>().ok()?)?,
            other => other.get(part)?,
        };
    }
    Some(value)
}

impl WorkflowDriver<'_> {
    /// Adds the files that a call names; the runtime reads them as a step.
    pub(super) async fn with_files(
        &mut self,
        mut prompted: AtomPrompt,
        call: &TaskCall,
    ) -> Result<Result<AtomPrompt, EffectAnswer>, RunAborted> {
        let paths = call.settings.get("files").and_then(Json::as_array).cloned().unwrap_or_default();
        if paths.is_empty() {
            return Ok(Ok(prompted));
        }
        let count = paths.len();
        let arguments = Map::from_iter([("paths".to_owned(), Json::Array(paths))]);
        let read = ToolCall { name: "read_files".into(), arguments };
        match self.tool(read).await? {
            EffectAnswer::Go(ResumeInput::Reply(read)) if read.status != fusee_lang::Status::Failed => {
                prompted.request.push_str("\n\nFiles:\n");
                prompted.request.push_str(&read.content);
                prompted.files = count;
                Ok(Ok(prompted))
            }
            EffectAnswer::Go(ResumeInput::Reply(read)) => {
                let message = format!("cannot read the files of `{}`: {}", call.callee(), read.content);
                let error = TemplateTaskError::failure(Reason::ContextRetrievalFailure, message);
                Ok(Err(EffectAnswer::Go(ResumeInput::Reply(reply(TaskResult::failed(&error, ""))))))
            }
            other => Ok(Err(other)),
        }
    }
}

/// Builds the result of an answer in the declared format.
pub(super) fn formed(answer: String, format: Option<&OutputFormat>, metrics: ResourceMetrics) -> TaskResult {
    let mut result = TaskResult::complete(answer);
    let Some(format) = format.filter(|format| format.kind == "json") else { return result };
    let data = match serde_json::from_str::<Json>(unfenced(&result.content)) {
        Ok(data) => data,
        Err(error) => {
            result.note("parseError", error.to_string());
            return result;
        }
    };
    if let Some(schema) = format.schema.as_deref().filter(|schema| !fits(&data, schema)) {
        let message = format!("the answer is not of type {schema}");
        let mismatch = Mismatch {
            error_type: "type_mismatch".to_owned(),
            message: message.clone(),
            location: String::new(),
        };
        let error = TemplateTaskError::failure(Reason::OutputFormatFailure, message)
            .caused_by(ErrorCause::Mismatch(mismatch))
            .measured(metrics);
        return TaskResult::failed(&error, result.content);
    }
    result.parsed_content = Some(data);
    result
}

/// Returns the content of a code fence that spans the whole text.
fn unfenced(text: &str) -> &str {
    let text = text.trim();
    let inside = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    inside.and_then(|inside| inside.split_once('\n')).map_or(text, |(_, body)| body.trim())
}

fn fits(data: &Json, schema: &str) -> bool {
    match schema {
        "object" => data.is_object(),
        "array" | "[]" => data.is_array(),
        "string[]" => data.as_array().is_some_and(|items| items.iter().all(Json::is_string)),
        "number" => data.is_number(),
        "boolean" => data.is_boolean(),
        _ => true,
    }
}
