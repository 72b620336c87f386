//! `fusee task --dry-run`: lists every call a workflow contains, in source order, with the size of each
//! prompt as far as it is known statically.

use std::fmt::Write as _;

use fusee::engine::lang::{Atom, PlannedCall};
use fusee::engine::model::tokens;
use fusee::engine::run::ExitStatus;
use fusee::engine::template::{LoadedTemplates, fill};
use serde_json::{Map, Value, json};

use super::forecast::Forecast;
use super::workflow_source::CheckedWorkflow;
use crate::process::error::CliError;
use crate::process::stdio;
use crate::project::Project;
use crate::ui::format;

/// Maximum number of characters of an argument shown.
const SHOWN: usize = 60;

/// One call of the plan.
struct DryRunEntry {
    at: String,
    callee: String,
    arguments: Vec<(String, Option<Value>)>,
    /// Tokens of its prompt, and whether all of it is known.
    prompt: Option<(usize, bool)>,
}

/// Prints the plan.
pub(super) async fn show(
    checked: &CheckedWorkflow,
    inputs: &Map<String, Value>,
    json: bool,
    loaded: &LoadedTemplates,
    project: &Project,
) -> Result<ExitStatus, CliError> {
    let text = match json {
        true => {
            let (entries, forecast) = plan(checked, inputs, loaded, project).await;
            as_json(&entries, inputs, forecast.as_ref())
        }
        false => describe(checked, inputs, loaded, project).await,
    };
    stdio::print_as(json, &text).map(|()| ExitStatus::Completed)
}

/// The plan as text.
pub(super) async fn describe(
    checked: &CheckedWorkflow,
    inputs: &Map<String, Value>,
    loaded: &LoadedTemplates,
    project: &Project,
) -> String {
    let (entries, forecast) = plan(checked, inputs, loaded, project).await;
    as_text(checked, &entries, forecast.as_ref())
}

async fn plan(
    checked: &CheckedWorkflow,
    inputs: &Map<String, Value>,
    loaded: &LoadedTemplates,
    project: &Project,
) -> (Vec<DryRunEntry>, Option<Forecast>) {
    let entries = checked.program.calls().map(|call| entry(&call)).collect();
    // `None` if inputs are missing; the plan can be shown without them.
    (entries, Forecast::estimate(checked, inputs, loaded, project).await)
}

fn entry(call: &PlannedCall<'_>) -> DryRunEntry {
    let arguments: Vec<_> =
        call.arguments.iter().map(|argument| (argument.key.to_string(), argument.literal.clone())).collect();
    let prompt = call.atom.map(|atom| prompt_of(atom, &arguments));
    DryRunEntry {
        at: call.location.to_string(),
        callee: call.callee.unwrap_or("(computed)").to_owned(),
        arguments,
        prompt,
    }
}

/// Counts the known tokens of a prompt; computed values are left out.
pub(super) fn prompt_of(atom: &Atom, arguments: &[(String, Option<Value>)]) -> (usize, bool) {
    let defaults = atom.params.iter().filter_map(|param| Some((param.name.clone(), param.default.clone()?)));
    let mut inputs: Map<String, Value> = defaults.collect();
    for (key, literal) in arguments {
        inputs.remove(key);
        if let Some(value) = literal {
            inputs.insert(key.clone(), value.clone());
        }
    }
    let mut missing = Vec::new();
    let texts = [Some(&atom.instructions), atom.system.as_ref()].into_iter().flatten();
    let count = texts
        .map(|text| fill(text, &inputs, &mut missing))
        // Without an exact count, estimate four bytes per token as elsewhere.
        .map(|text| tokens::exact_count(&text).unwrap_or(text.len() / 4))
        .sum();
    (count, missing.is_empty())
}

fn as_text(checked: &CheckedWorkflow, entries: &[DryRunEntry], forecast: Option<&Forecast>) -> String {
    let mut text = String::new();
    for entry in entries {
        let _ = write!(text, "{}  {}", entry.at, entry.callee);
        for (key, literal) in &entry.arguments {
            let value = literal.as_ref().map_or_else(|| "…".to_owned(), |value| cut(&value.to_string()));
            let _ = write!(text, " ({key} {value})");
        }
        match entry.prompt {
            Some((count, true)) => {
                let _ = write!(text, "  {count} tokens");
            }
            Some((count, false)) => {
                let _ = write!(text, "  {count} tokens plus computed values");
            }
            None => {}
        }
        text.push('\n');
    }
    let prompts: usize = entries.iter().filter_map(|entry| entry.prompt).map(|(count, _)| count).sum();
    let _ = writeln!(
        text,
        "{}: {} in the source, {} defined here, {prompts} known prompt tokens; nothing was run",
        checked.workflow.name,
        format::count(entries.len() as u64, "call"),
        format::count(checked.program.atoms().len() as u64, "task"),
    );
    text.push_str(&forecast.map(Forecast::as_text).unwrap_or_default());
    text
}

fn as_json(entries: &[DryRunEntry], inputs: &Map<String, Value>, forecast: Option<&Forecast>) -> String {
    let calls: Vec<Value> = entries
        .iter()
        .map(|entry| {
            let arguments: Map<String, Value> = entry
                .arguments
                .iter()
                .map(|(key, literal)| (key.clone(), literal.clone().unwrap_or_default()))
                .collect();
            let mut call = json!({ "at": entry.at, "callee": entry.callee, "arguments": arguments });
            if let Some((count, whole)) = entry.prompt {
                call["prompt_tokens"] = count.into();
                call["prompt_complete"] = whole.into();
            }
            call
        })
        .collect();
    let forecast = forecast.map(Forecast::as_json);
    format!("{}\n", json!({ "inputs": inputs, "calls": calls, "forecast": forecast }))
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}
