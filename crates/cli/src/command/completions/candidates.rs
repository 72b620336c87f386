//! What a word can be completed to: commands and flags from the parser, values from the project and the machine. A
//! problem with any of these leaves its candidates out; there is nowhere to report it.

use clap::{Arg, Command};
use fusee::engine::model::connection::provider::PROVIDERS;
use fusee::engine::workflow::standard_tools;

use super::position::{Expects, Position};
use crate::command::manual;
use crate::config::{Config, KEYS, Key, Kind};
use crate::model_selection::discovery;
use crate::process::Process;
use crate::project::{Project, find_run, template_source, workflow_registry};

/// Maximum number of runs that are offered.
const MAX_RUNS: usize = 50;

/// A word and its description, which may be empty.
pub(super) struct Candidate {
    pub(super) word: String,
    pub(super) about: String,
}

impl Candidate {
    fn new(word: impl Into<String>, about: impl Into<String>) -> Self {
        Self { word: word.into(), about: about.into() }
    }
}

/// Everything that fits at a position, whatever was typed of it.
pub(super) async fn candidates(position: &Position<'_>, process: &Process) -> Vec<Candidate> {
    match position.expects {
        Expects::Flag => flags(position.command),
        Expects::Value(argument) => values(argument, position, process).await,
        Expects::Word { subcommand, argument } => {
            let mut found = if subcommand { subcommands(position.command) } else { Vec::new() };
            if let Some(argument) = argument {
                found.extend(values(argument, position, process).await);
            }
            found
        }
    }
}

fn subcommands(command: &Command) -> Vec<Candidate> {
    let visible = command.get_subcommands().filter(|command| !command.is_hide_set());
    let about = |command: &Command| command.get_about().map(ToString::to_string).unwrap_or_default();
    visible.map(|command| Candidate::new(command.get_name(), about(command))).collect()
}

fn flags(command: &Command) -> Vec<Candidate> {
    let visible = command.get_arguments().filter(|argument| !argument.is_hide_set());
    let about = |argument: &Arg| argument.get_help().map(ToString::to_string).unwrap_or_default();
    visible
        .flat_map(|argument| {
            let long = argument.get_long().map(|name| format!("--{name}"));
            let short = argument.get_short().map(|letter| format!("-{letter}"));
            long.into_iter()
                .chain(short)
                .map(|flag| Candidate::new(flag, about(argument)))
                .collect::<Vec<_>>()
        })
        .collect()
}

/// The values of an argument: those the parser knows, or what its name stands for.
async fn values(argument: &Arg, position: &Position<'_>, process: &Process) -> Vec<Candidate> {
    let fixed = argument.get_possible_values();
    if !fixed.is_empty() && argument.get_action().takes_values() {
        let visible = fixed.iter().filter(|value| !value.is_hide_set());
        let about = |value: &clap::builder::PossibleValue| value.get_help().map(ToString::to_string);
        return visible
            .map(|value| Candidate::new(value.get_name(), about(value).unwrap_or_default()))
            .collect();
    }
    let directory = position.value("directory").map(std::path::Path::new);
    let Ok(project) = Project::find(directory, &process.environment) else { return Vec::new() };
    let name = argument.get_value_names().and_then(|names| names.first()).map(|name| name.as_str());
    match (name.unwrap_or_default(), position.command.get_name(), argument.get_id().as_str()) {
        ("RUN" | "RUN|QUESTION" | "OTHER", ..) => runs(&project),
        ("MODEL", ..) => models(&project, process).await,
        ("MODE", ..) => flows(),
        ("TASK", ..) => tasks(&project, process),
        (_, "run", "template") | (_, "show", "name") => templates(&project, process),
        ("KEY=VALUE", ..) => {
            let task = position.value("task").or(position.value("template"));
            task.map(|task| inputs(task, &project, process)).unwrap_or_default()
        }
        ("KEY", "config", _) => KEYS.iter().map(|key| Candidate::new(key.name, key.doc)).collect(),
        (_, "docs", "page") => {
            manual::page_titles().into_iter().map(|(name, title)| Candidate::new(name, title)).collect()
        }
        _ => Vec::new(),
    }
}

fn runs(project: &Project) -> Vec<Candidate> {
    let rows =
        project.read_journal().ok().flatten().and_then(|journal| journal.runs().ok()).unwrap_or_default();
    let length = find_run::short_length(&rows);
    let short = |id: &str| id.get(..length).unwrap_or(id).to_owned();
    let newest = rows.first().map(|row| Candidate::new("last", format!("{}: {}", row.status, row.title)));
    let named = rows.iter().take(MAX_RUNS);
    let named =
        named.map(|row| Candidate::new(short(row.id.as_str()), format!("{}: {}", row.status, row.title)));
    newest.into_iter().chain(named).collect()
}

/// Configured models, those of servers on this machine, and the prefixes of providers whose key is set.
async fn models(project: &Project, process: &Process) -> Vec<Candidate> {
    let environment = &process.environment;
    let mut found = Vec::new();
    if let Ok(config) = Config::gather(Some(&project.config_file()), environment, Vec::new()) {
        let configured = config.models().iter();
        found.extend(
            configured
                .map(|entry| Candidate::new(entry.name.as_str(), entry.model.clone().unwrap_or_default())),
        );
    }
    let answering = discovery::probe_all(environment).await;
    for server in answering.servers {
        let provider = server.provider.name;
        found
            .extend(server.models.into_iter().map(|model| Candidate::new(format!("{provider}:{model}"), "")));
    }
    let keyed =
        PROVIDERS.iter().filter(|provider| answering.keys.iter().any(|keyed| keyed.name == provider.name));
    found.extend(keyed.map(|provider| Candidate::new(format!("{}:", provider.name), "")));
    for (prefix, about) in
        [("local:", "a model file"), ("script:", "a file with replies"), ("replay:", "a cassette")]
    {
        found.push(Candidate::new(prefix, about));
    }
    found
}

fn flows() -> Vec<Candidate> {
    match Key::named("task_flow_mode").map(|key| key.kind) {
        Some(Kind::Word(modes)) => modes.iter().map(|mode| Candidate::new(*mode, "")).collect(),
        _ => Vec::new(),
    }
}

/// Templates, workflows and tools.
fn tasks(project: &Project, process: &Process) -> Vec<Candidate> {
    let mut found = templates(project, process);
    found.extend(
        workflow_registry::workflows(project, &process.environment)
            .into_iter()
            .map(|workflow| Candidate::new(workflow.name, "workflow")),
    );
    found.extend(standard_tools().definitions().map(|tool| Candidate::new(tool.name.as_ref(), "tool")));
    found.sort_by(|one, other| one.word.cmp(&other.word));
    found.dedup_by(|one, other| one.word == other.word);
    found
}

fn templates(project: &Project, process: &Process) -> Vec<Candidate> {
    let loaded = template_source::gather(project, &process.environment);
    let all = loaded.registry.all().into_iter();
    all.map(|found| Candidate::new(found.template.name.as_str(), found.template.description.as_str()))
        .collect()
}

/// The inputs of a template or workflow.
fn inputs(task: &str, project: &Project, process: &Process) -> Vec<Candidate> {
    let loaded = template_source::gather(project, &process.environment);
    let mut known = template_source::callables(&loaded.registry);
    let workflows = workflow_registry::workflows(project, &process.environment);
    known.extend(workflows.iter().map(workflow_registry::NamedWorkflow::callable));
    let named = known.iter().find(|known| known.name == task);
    let params = named.into_iter().flat_map(|task| &task.params);
    params
        .map(|param| Candidate::new(format!("{}=", param.name), param.doc.clone().unwrap_or_default()))
        .collect()
}
