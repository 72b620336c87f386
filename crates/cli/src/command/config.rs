//! `fusee config`.

use std::path::PathBuf;

use clap::Args;
use fusee::engine::approval::rules::{ApprovalRule, RuleDecision};
use fusee::engine::hook::HookSpec;
use fusee::engine::run::ExitStatus;
use fusee::engine::text::suggest;
use serde_json::{Value, json};

use crate::config::flags::DirectoryFlag;
use crate::config::{
    Config, KEYS, Key, KeyScope, Kind, McpEntry, McpTransport, ModelEntry, TABLES, ValueOrigin,
};
use crate::process::Process;
use crate::process::error::CliError;
use crate::process::stdio;
use crate::project::Project;
use crate::ui::{UiOptions, approval_prompt};

#[cfg(test)]
mod tests;

/// Show the effective settings and where each comes from.
///
/// Settings are built in, or come from your own file, the project's fusee.toml, an agent file, FUSEE_*
/// variables or flags, each overriding the ones before. With KEY, show the details of that key. With --all, print
/// every key with its description and default as a commented file, to copy from.
#[derive(Args)]
pub(crate) struct ConfigArgs {
    /// Show the details of this key
    #[arg(value_name = "KEY")]
    key: Option<String>,
    /// Print the settings as JSON
    #[arg(long)]
    json: bool,
    /// Print every key, commented out, in the format of fusee.toml
    #[arg(long, conflicts_with_all = ["key", "json", "agent"])]
    all: bool,
    /// Include the settings of this agent file
    #[arg(long, value_name = "FILE")]
    agent: Option<PathBuf>,
    #[command(flatten)]
    directory: DirectoryFlag,
}

/// Runs the command.
pub(crate) fn config(args: &ConfigArgs, process: &Process) -> Result<ExitStatus, CliError> {
    if args.all {
        stdio::print(&commented_file())?;
        return Ok(ExitStatus::Completed);
    }
    let environment = &process.environment;
    let project = Project::find(args.directory.directory.as_deref(), environment)?;
    let agent = args.agent.as_deref();
    let config = Config::gather_for(Some(&project.config_file()), agent, environment, Vec::new())?;
    config.flow()?;
    config.check_tools()?;
    UiOptions::new(false, &config, environment).warn(&config);
    if let Some(table) = TABLES.iter().find(|table| Some(table.name) == args.key.as_deref()) {
        let entries = table_entries(&config, table.name)?;
        let entries = if entries.is_empty() { "none set\n".to_owned() } else { entries };
        stdio::print(&format!("{entries}\n{}\n\n{}\n", table.heading, table.page()))?;
        return Ok(ExitStatus::Completed);
    }
    let keys: Vec<&Key> = match &args.key {
        None => KEYS.iter().collect(),
        Some(name) => vec![Key::named(name).ok_or_else(|| {
            let tables = TABLES.iter().map(|table| table.name);
            let near = suggest::did_you_mean(name, KEYS.iter().map(|key| key.name).chain(tables));
            CliError::usage(format!("unknown key `{name}`"))
                .help(near.unwrap_or_else(|| "run `fusee config` to list all keys".to_owned()))
        })?],
    };
    let text = match (&args.key, args.json) {
        (_, true) => format!("{:#}\n", as_json(&config, &keys)),
        (None, false) => listing(&config, &keys)?,
        (Some(_), false) => keys.iter().map(|key| description(&config, key)).collect(),
    };
    stdio::print_as(args.json, &text)?;
    Ok(ExitStatus::Completed)
}

/// Every key with its description and default, commented out.
fn commented_file() -> String {
    let mut text = String::from(
        "# Every key of fusee.toml and ~/.config/fusee/config.toml. A value is the default; … stands for a value of your\n\
         # own. Keys marked [needs trust] take effect in a project only after `fusee trust`.\n",
    );
    for key in KEYS {
        let value = match (key.default, key.kind) {
            (None, kind) => format!("…  # {kind}"),
            (Some(default), Kind::Text | Kind::Url | Kind::Word(_)) => format!("\"{default}\""),
            (Some(default), _) => default.to_owned(),
        };
        let trust = if key.reach == KeyScope::Outside { " [needs trust]" } else { "" };
        text.push_str(&format!("\n# {}{trust}\n# {} = {value}\n", key.doc, key.name));
    }
    for table in TABLES {
        if let Some(example) = table.commented_example() {
            text.push_str(&format!(
                "\n# {}: `fusee config {}` explains them. For example:\n",
                table.title, table.name
            ));
            text.push_str(&example);
        }
    }
    text
}

fn listing(config: &Config, keys: &[&Key]) -> Result<String, CliError> {
    let width = keys.iter().map(|key| key.name.len()).max().unwrap_or_default();
    let shown: Vec<(String, String)> = keys.iter().map(|key| effective(config, key)).collect();
    let values = shown.iter().map(|(value, _)| value.chars().count()).max().unwrap_or_default().min(40);
    let mut text = String::new();
    for (key, (value, origin)) in keys.iter().zip(&shown) {
        let line = format!("{:<width$}  {value:<values$}  {origin}", key.name);
        text.push_str(line.trim_end());
        text.push('\n');
    }
    for table in TABLES {
        text.push_str(&table_entries(config, table.name)?);
    }
    text.push('\n');
    for (path, found) in &config.files {
        let state = if *found { "read" } else { "not found" };
        text.push_str(&format!("{}  {state}\n", path.display()));
    }
    Ok(text)
}

/// The entries of a table, one per line.
fn table_entries(config: &Config, table: &str) -> Result<String, CliError> {
    Ok(match table {
        "rules" => config.rules().iter().map(|rule| format!("rules  {}\n", describe_rule(rule))).collect(),
        "mcp" => {
            let line = |entry: &McpEntry| {
                let how = match &entry.reach {
                    McpTransport::Program { command, .. } => command.join(" "),
                    McpTransport::Address { url, .. } => url.clone(),
                };
                format!("mcp.{}  {how}  {}\n", entry.name, entry.origin)
            };
            config.mcp().iter().map(line).collect()
        }
        "hooks" => {
            let line = |hook: &HookSpec| {
                let matcher =
                    hook.matcher.as_ref().map(|matcher| format!(" ({matcher})")).unwrap_or_default();
                let whose = if hook.of_project { "project" } else { "user" };
                format!("hooks.{}{matcher}  {}  {whose}\n", hook.event.name(), hook.command)
            };
            config.listed_hooks().iter().map(line).collect()
        }
        "flow" => {
            let stages = config.flow()?.stages;
            stages.iter().map(|stage| format!("flow  {}\n", stage.id)).collect()
        }
        _ => {
            let line = |entry: &ModelEntry| {
                let server = entry.base_url.as_deref().map(|url| format!(" at {url}")).unwrap_or_default();
                let model = entry.model.as_deref().unwrap_or_default();
                format!("models.{}  {model}{server}  {}\n", entry.name, entry.origin)
            };
            config.models().iter().map(line).collect()
        }
    })
}

fn describe_rule(rule: &ApprovalRule) -> String {
    let words = approval_prompt::describe(rule);
    if rule.then == RuleDecision::Allow { format!("allow {words}") } else { words }
}

fn effective(config: &Config, key: &Key) -> (String, String) {
    match config.value(key.name) {
        Some((value, origin)) => (value.to_string(), origin.to_string()),
        None => ("-".to_owned(), String::new()),
    }
}

fn description(config: &Config, key: &Key) -> String {
    let (value, origin) = effective(config, key);
    let mut text = format!("{} = {value}", key.name);
    if !origin.is_empty() {
        text.push_str(&format!("  ({origin})"));
    }
    text.push_str(&format!("\n\n{}\n\ntype      {}\n", key.doc, key.kind));
    text.push_str(&format!("default   {}\n", key.default.unwrap_or("not set")));
    text.push_str(&format!("variable  {}\n", key.variable()));
    if let Some(flag) = key.flag {
        text.push_str(&format!("flag      {flag}\n"));
    }
    text
}

fn as_json(config: &Config, keys: &[&Key]) -> Value {
    let keys: Vec<Value> = keys
        .iter()
        .map(|key| {
            let held = config.value(key.name);
            json!({
                "key": key.name,
                "value": held.map(|(value, _)| Value::from(value)),
                "origin": held.map(|(_, origin)| origin_name(origin)),
                "from": held.map(|(_, origin)| origin.to_string()),
            })
        })
        .collect();
    let models: Vec<Value> = config
        .models()
        .iter()
        .map(|entry| {
            json!({
                "name": entry.name,
                "model": entry.model,
                "base_url": entry.base_url,
                "api": entry.api,
                "api_key_env": entry.api_key_env,
                "context_tokens": entry.context_tokens,
                "from": entry.origin.to_string(),
            })
        })
        .collect();
    let files: Vec<Value> =
        config.files.iter().map(|(path, found)| json!({ "path": path, "found": found })).collect();
    json!({ "keys": keys, "models": models, "files": files })
}

fn origin_name(origin: &ValueOrigin) -> &'static str {
    match origin {
        ValueOrigin::BuiltIn => "built-in",
        ValueOrigin::File { .. } => "file",
        ValueOrigin::Variable(_) => "variable",
        ValueOrigin::Flag(_) => "flag",
    }
}
