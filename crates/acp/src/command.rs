//! Slash commands of a session: templates, workflows and Markdown files by name, and what acts on the session itself. They are handled
//! before a model sees them.

use agent_client_protocol_schema::v1::{AvailableCommand, AvailableCommandInput, UnstructuredCommandInput};
use fusee::lang::Param;
use fusee::launch::{INIT_REQUEST, LaunchWork, NamedTask};
use fusee::text::suggest;
use serde_json::{Map, Value};

use crate::report::SessionReport;

/// Commands that every session has: name, hint for the input, description.
const OWN: [(&str, &str, &str); 10] = [
    ("task", "NAME [KEY=VALUE…]", "Run a template or workflow by name, or a workflow in parentheses"),
    ("review", "[what to look at]", "Review the code of the project"),
    ("model", "[NAME]", "Show the model, or switch to another"),
    ("flow", "[MODE]", "Show the flow, or set it"),
    ("approve", "[auto|ask|never]", "Show or set when to ask for approval"),
    ("init", "", "Let the model write AGENTS.md, which tells agents about this project"),
    ("status", "", "Show the session, its directory and its settings"),
    ("cost", "", "Show the tokens and the cost of this session"),
    ("undo", "", "Undo the file changes of the last message"),
    ("help", "", "List the commands"),
];

/// What a line of a prompt means.
#[derive(Debug, PartialEq)]
pub(crate) enum Meaning {
    /// It starts a run.
    Run(LaunchWork),
    /// It stands for the text of a Markdown command.
    Markdown,
    /// It sets an option of the session; without a value it shows it.
    Setting { id: &'static str, value: Option<String> },
    /// It reports on the session.
    Report(SessionReport),
    /// It is answered with this text.
    Reply(String),
}

/// All commands, for the client to offer. `markdown` are the Markdown commands with a line about each.
pub(crate) fn available(tasks: &[NamedTask], markdown: &[(String, String)]) -> Vec<AvailableCommand> {
    let command = |name: &str, hint: &str, description: &str| {
        let command = AvailableCommand::new(name, description);
        match hint {
            "" => command,
            hint => {
                let input = UnstructuredCommandInput::new(hint);
                command.input(AvailableCommandInput::Unstructured(input))
            }
        }
    };
    let own = OWN.iter().map(|(name, hint, description)| command(name, hint, description));
    let named = tasks
        .iter()
        .filter(|task| !is_own(&task.name))
        .map(|task| command(&task.name, &hint(&task.inputs), first_line(&task.description)));
    let written = markdown
        .iter()
        .filter(|(name, _)| !is_own(name) && !tasks.iter().any(|task| task.name == *name))
        .map(|(name, summary)| command(name, "[arguments]", summary));
    own.chain(named).chain(written).collect()
}

/// Interprets a prompt.
pub(crate) fn meaning(text: &str, tasks: &[NamedTask], markdown: &[(String, String)]) -> Meaning {
    let line = text.trim();
    if line.starts_with('(') {
        return Meaning::Run(LaunchWork::Workflow(line.to_owned()));
    }
    // A path or a lone slash is not a command.
    let Some(command) = line.strip_prefix('/').filter(|rest| is_command(rest)) else {
        return Meaning::Run(LaunchWork::Request(text.to_owned()));
    };
    let (name, rest) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
    let rest = rest.trim();
    let value = || Some(rest.to_owned()).filter(|rest| !rest.is_empty());
    match name {
        "task" if rest.starts_with('(') => Meaning::Run(LaunchWork::Workflow(rest.to_owned())),
        "task" => {
            let (name, inputs) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
            named(name, inputs, tasks, &[])
        }
        "review" => {
            Meaning::Run(LaunchWork::Review { request: rest.to_owned(), base: None, paths: Vec::new() })
        }
        "model" => Meaning::Setting { id: "model", value: value() },
        "flow" => Meaning::Setting { id: "flow", value: value() },
        "approve" => Meaning::Setting { id: "approval", value: value() },
        "init" => Meaning::Run(LaunchWork::Request(INIT_REQUEST.to_owned())),
        "status" => Meaning::Report(SessionReport::Status),
        "cost" => Meaning::Report(SessionReport::Cost),
        "undo" => Meaning::Report(SessionReport::Undo),
        "help" => Meaning::Reply(help(tasks, markdown)),
        name => named(name, rest, tasks, markdown),
    }
}

fn is_command(rest: &str) -> bool {
    let name = rest.split(char::is_whitespace).next().unwrap_or_default();
    !name.is_empty() && !name.contains('/')
}

fn is_own(name: &str) -> bool {
    OWN.iter().any(|(own, ..)| *own == name)
}

fn named(name: &str, words: &str, tasks: &[NamedTask], markdown: &[(String, String)]) -> Meaning {
    let Some(task) = tasks.iter().find(|task| task.name == name) else {
        if markdown.iter().any(|(known, _)| known == name) {
            return Meaning::Markdown;
        }
        let names = OWN.iter().map(|(name, ..)| *name).chain(tasks.iter().map(|task| task.name.as_str()));
        let names = names.chain(markdown.iter().map(|(name, _)| name.as_str()));
        let hint = suggest::did_you_mean(name, names).map(|hint| format!("; {hint}")).unwrap_or_default();
        return Meaning::Reply(format!(
            "Unknown command or task `{name}`{hint}. `/help` lists the commands."
        ));
    };
    match inputs(&task.inputs, words) {
        Ok(inputs) => Meaning::Run(LaunchWork::Named { name: task.name.clone(), inputs }),
        Err(problem) => Meaning::Reply(format!("/{name}: {problem}. It takes: {}", hint(&task.inputs))),
    }
}

/// Inputs as `KEY=VALUE`; without a key, the whole text is the first input that must be given.
fn inputs(params: &[Param], words: &str) -> Result<Map<String, Value>, String> {
    let mut inputs = Map::new();
    let words = words.trim();
    if words.is_empty() {
        return Ok(inputs);
    }
    let key_of = |word: &str| {
        let (key, value) = word.split_once('=')?;
        params.iter().find(|param| param.name == key).map(|param| (param, value.to_owned()))
    };
    let mut open: Option<(&Param, String)> = None;
    let mut close = |open: Option<(&Param, String)>| -> Result<(), String> {
        if let Some((param, text)) = open {
            inputs.insert(param.name.clone(), param.kind.parse(&text)?);
        }
        Ok(())
    };
    for word in words.split(' ') {
        match (key_of(word), &mut open) {
            (Some(next), _) => close(open.replace(next))?,
            // A value goes on until the next key.
            (None, Some((_, text))) => {
                text.push(' ');
                text.push_str(word);
            }
            (None, None) => {
                let first = params.iter().find(|param| param.required).or(params.first());
                let first = first.ok_or_else(|| "it takes no inputs".to_owned())?;
                open = Some((first, word.to_owned()));
            }
        }
    }
    close(open)?;
    Ok(inputs)
}

fn hint(params: &[Param]) -> String {
    let word = |param: &Param| {
        if param.required { format!("{}=…", param.name) } else { format!("[{}=…]", param.name) }
    };
    params.iter().map(word).collect::<Vec<_>>().join(" ")
}

fn first_line(text: &str) -> &str {
    text.trim().lines().next().unwrap_or_default()
}

fn help(tasks: &[NamedTask], markdown: &[(String, String)]) -> String {
    let lines = available(tasks, markdown)
        .into_iter()
        .map(|command| format!("- `/{}`: {}", command.name, command.description));
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests;
