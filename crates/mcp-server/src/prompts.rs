//! Templates as prompts: the instructions of a template with its inputs filled in, for a client's own model.

use fusee::lang::Param;
use fusee::launch::{Launcher, NamedTask, NamedTaskKind};
use fusee::template::{self, Template};
use fusee::text::Source;
use rmcp::model::{ErrorData, GetPromptResult, JsonObject, Prompt, PromptArgument, PromptMessage, Role};
use serde_json::{Map, Value, json};

/// The templates of the project.
pub(crate) fn list(launcher: &dyn Launcher) -> Result<Vec<Prompt>, ErrorData> {
    let argument = |input: &Param| {
        let argument = PromptArgument::new(&input.name).with_required(input.required);
        match &input.doc {
            Some(text) => argument.with_description(text),
            None => argument,
        }
    };
    let prompt = |task: NamedTask| {
        Prompt::new(task.name, Some(task.description), Some(task.inputs.iter().map(argument).collect()))
    };
    Ok(templates(launcher)?.into_iter().map(prompt).collect())
}

/// One template, filled in.
pub(crate) fn get(
    launcher: &dyn Launcher,
    name: &str,
    arguments: &JsonObject,
) -> Result<GetPromptResult, ErrorData> {
    let wrong = |problem: String| ErrorData::invalid_params(problem, Some(json!({ "name": name })));
    let task = templates(launcher)?.into_iter().find(|task| task.name == name);
    let task = task.ok_or_else(|| wrong("there is no such template".to_owned()))?;
    let (template, problems) = Template::read(&Source::new(task.name.as_str(), task.text));
    let template = template.ok_or_else(|| {
        wrong(problems.iter().map(|problem| problem.message.clone()).collect::<Vec<_>>().join("; "))
    })?;
    let typed: Map<String, Value> =
        arguments.iter().map(|(name, value)| typed(&template, name, value)).collect();
    let inputs = template::bind(&template, &typed)
        .map_err(|problems| wrong(problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")))?;
    let filled = template.filled(&inputs).map_err(|problems| wrong(problems.join("; ")))?;
    let mut parts: Vec<String> = Vec::new();
    parts.extend(filled.system);
    parts.push(filled.instructions.unwrap_or_else(|| filled.description.clone()));
    parts.extend(filled.sections.iter().map(|section| format!("## {}\n\n{}", section.title, section.body)));
    parts.extend(filled.criteria.map(|criteria| format!("Criteria: {criteria}")));
    let message = PromptMessage::new_text(Role::User, parts.join("\n\n"));
    Ok(GetPromptResult::new(vec![message]).with_description(filled.description))
}

/// Clients send the arguments of prompts as text.
fn typed(template: &Template, name: &str, value: &Value) -> (String, Value) {
    let value = match (template.input(name), value) {
        (Some(input), Value::String(text)) => template::typed(input.kind, text),
        _ => value.clone(),
    };
    (name.to_owned(), value)
}

fn templates(launcher: &dyn Launcher) -> Result<Vec<NamedTask>, ErrorData> {
    let tasks = launcher.tasks(launcher.directory());
    let mut tasks = tasks.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
    tasks.retain(|task| task.kind == NamedTaskKind::Template);
    Ok(tasks)
}
