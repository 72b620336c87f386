//! `fusee task TOOL key=value…`: one tool call without a model, run as a workflow with one form.

use fusee::engine::run::ExitStatus;
use fusee::engine::text::suggest;
use fusee::engine::tools::{ToolDefinition, Toolbox};
use serde_json::Value;

use crate::process::error::CliError;
use crate::process::stdio;

/// The call as workflow text, or all errors in its parameters.
pub(super) fn call(name: &str, words: &[String], tools: &Toolbox) -> Result<String, String> {
    let Some(tool) = tools.find(name) else { return Err(format!("unknown tool `{name}`")) };
    let definition = tool.definition();
    let (mut given, mut problems, mut text) = (Vec::new(), Vec::new(), format!("({name}"));
    for word in words {
        let Some((key, value)) = word.split_once('=') else {
            problems.push(format!("`{word}` is not a parameter; expected KEY=VALUE"));
            continue;
        };
        match named(key, definition) {
            None => {
                let known = properties(definition).map(|(name, _)| name);
                let near =
                    suggest::did_you_mean(key, known).map(|near| format!("; {near}")).unwrap_or_default();
                problems.push(format!("unknown parameter `{key}`{near}"));
            }
            Some(parameter) => {
                text.push_str(&format!(
                    " ({parameter} {})",
                    form(value, &definition.parameters["properties"][parameter])
                ));
                given.push(parameter);
            }
        }
    }
    let missing = required(definition).filter(|name| !given.contains(name));
    problems.extend(missing.map(|name| format!("missing `{name}`")));
    if problems.is_empty() {
        return Ok(text + ")");
    }
    Err(format!("invalid parameters for `{name}`: {}", problems.join("; ")))
}

/// Prints the usage of the tool.
pub(super) fn help(definition: &ToolDefinition) -> Result<ExitStatus, CliError> {
    let required: Vec<&str> = required(definition).collect();
    let word =
        |name: &str| if required.contains(&name) { format!(" {name}=…") } else { format!(" [{name}=…]") };
    let usage: String = properties(definition).map(|(name, _)| word(name)).collect();
    let width = properties(definition).map(|(name, _)| name.chars().count()).max().unwrap_or_default();
    let lines: String = properties(definition)
        .map(|(name, schema)| {
            let kind = schema["type"].as_str().unwrap_or("any");
            let about = schema["description"].as_str().unwrap_or_default();
            let need = if required.contains(&name) { " (required)" } else { "" };
            format!("  {name:<width$}  {kind}{need}  {about}").trim_end().to_owned() + "\n"
        })
        .collect();
    let ToolDefinition { name, description, .. } = definition;
    stdio::print(&format!("{description}\n\nUsage: fusee task {name}{usage}\n\nParameters:\n{lines}"))?;
    Ok(ExitStatus::Completed)
}

/// The parameter with this name or alias.
fn named<'a>(key: &'a str, definition: &'a ToolDefinition) -> Option<&'a str> {
    let known = properties(definition).map(|(name, _)| name).find(|name| *name == key);
    known.or_else(|| definition.parameter_aliases.iter().find(|(alias, _)| *alias == key).map(|_| key))
}

fn properties(definition: &ToolDefinition) -> impl Iterator<Item = (&str, &Value)> {
    definition.parameters["properties"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, it)| (name.as_str(), it))
}

fn required(definition: &ToolDefinition) -> impl Iterator<Item = &str> {
    definition.parameters["required"].as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// A value as a form of the workflow language.
fn form(value: &str, schema: &Value) -> String {
    let is_text = schema["type"].as_str().is_none_or(|kind| kind == "string");
    let value: Value = match serde_json::from_str(value) {
        Ok(value) if !is_text => value,
        _ => Value::String(value.to_owned()),
    };
    match &value {
        Value::Array(_) | Value::Object(_) => format!("(json-parse {})", Value::String(value.to_string())),
        other => other.to_string(),
    }
}
