//! What trusting a project enables, for the user to review: settings of its `fusee.toml` that reach outside the
//! workspace, and its hooks, agent files, prompts and commands.

use std::path::{Path, PathBuf};

use fusee::engine::approval::rules::ApprovalRule;
use fusee::engine::text::render::{self, Colour};
use fusee::engine::text::{Diagnostics, Source};

use super::file::{self, FileContent, FileOwner};
use super::hooks;
use super::key::KeyScope;
use super::mcp::McpTransport;
use super::trust::{TrustedPart, agent_files, trusted_parts};
use super::{ModelEntry, Value};
use crate::process::error::CliError;

/// Commands that a project's settings make the runtime run.
const RUNTIME_COMMANDS: [&str; 3] = ["before.run", "verify", "after.run"];

/// Groups of what is enabled, each with its entries; empty groups are left out.
pub(crate) type TrustReport = Vec<(&'static str, Vec<String>)>;

/// Lists what trusting the project with this `fusee.toml` enables. An invalid file is an error.
pub(crate) fn report(file: &Path, describe: fn(&ApprovalRule) -> String) -> Result<TrustReport, CliError> {
    let home = file.parent().unwrap_or(Path::new("/"));
    let mut groups = TrustReport::new();
    if let Some(content) = read(file, FileOwner::TrustedProject)? {
        add_settings(&content, "", describe, &mut groups);
    }
    let hook_files = add_hooks(home, &mut groups)?;
    let parts = trusted_parts(home);
    let agents = agent_files(home);
    for TrustedPart { file, content } in &parts {
        let name = file.display();
        let ends = |end: &str| file.extension().is_some_and(|found| found == end);
        if hook_files.contains(file) {
            continue;
        }
        if agents.contains(&home.join(file)) {
            add(&mut groups, "agent files, for --agent", name.to_string());
            if let Some(content) = read(&home.join(file), FileOwner::Agent)? {
                add_settings(&content, &format!("{name}: "), describe, &mut groups);
            }
        } else if ends("xml") {
            add(&mut groups, "commands in templates and workflows", format!("{name}: {content}"));
        } else if ends("fusee") {
            add(
                &mut groups,
                "commands in templates and workflows",
                format!("{name}: a workflow that runs commands"),
            );
        } else {
            add(&mut groups, "prompts of agents", name.to_string());
        }
    }
    Ok(groups)
}

/// Lists the project's hooks; returns its file and the files they run. An invalid file is an error.
fn add_hooks(home: &Path, groups: &mut TrustReport) -> Result<Vec<PathBuf>, CliError> {
    let file = home.join(hooks::PROJECT_FILE);
    let mut problems = Diagnostics::new();
    let Some((source, found)) = hooks::read(&file, &file.display().to_string(), true, &mut problems) else {
        return Ok(Vec::new());
    };
    if problems.has_errors() {
        let find = |name: &str| Some(&source).filter(|source| &**source.name() == name);
        return Err(CliError::rendered(render::terminal(&problems.into_sorted(), find, Colour::Never)));
    }
    let real = home.canonicalize().unwrap_or_else(|_| home.to_owned());
    let mut files = vec![PathBuf::from(hooks::PROJECT_FILE)];
    for hook in found {
        let matcher = hook.matcher.as_deref().map(|matcher| format!(" ({matcher})")).unwrap_or_default();
        let entry = format!("{}{matcher}: {}", hook.event.name(), hook.command);
        add(groups, "hooks, which run outside the sandbox", entry);
        let named = hooks::files_of(&hook.command, &real, &real).into_keys();
        files.extend(named.map(|file| file.strip_prefix(&real).unwrap_or(&file).to_owned()));
    }
    Ok(files)
}

fn read(file: &Path, whose: FileOwner) -> Result<Option<FileContent>, CliError> {
    let mut problems = Diagnostics::new();
    let read = file::read(file, |_| whose, &mut problems);
    if !problems.has_errors() {
        return Ok(read.map(|(_, content)| content));
    }
    let source = read.map(|(source, _)| source);
    let find = |name: &str| source.as_ref().filter(|source: &&Source| &**source.name() == name);
    Err(CliError::rendered(render::terminal(&problems.into_sorted(), find, Colour::Never)))
}

fn add_settings(
    content: &FileContent,
    lead: &str,
    describe: fn(&ApprovalRule) -> String,
    groups: &mut TrustReport,
) {
    for (key, value, _) in &content.values {
        if key.reach == KeyScope::Outside {
            add(groups, "settings that reach outside the workspace", format!("{lead}{} = {value}", key.name));
        } else if RUNTIME_COMMANDS.contains(&key.name) {
            add(groups, "commands that the runtime runs", format!("{lead}{} = {value}", key.name));
        } else if let Value::Stages(stages) = value {
            for (stage, key, command) in stage_commands(stages) {
                let entry = format!("{lead}stage {stage}: {key} = {command}");
                add(groups, "commands that the runtime runs", entry);
            }
        }
    }
    for entry in &content.models {
        add(groups, "models and their servers", format!("{lead}{}", model(entry)));
    }
    for rule in &content.rules {
        let words = describe(rule);
        let words = if rule.then == fusee::engine::approval::rules::RuleDecision::Allow {
            format!("allow {words}")
        } else {
            words
        };
        add(groups, "rules for approvals", format!("{lead}{words}"));
    }
    for entry in &content.mcp {
        let how = match &entry.reach {
            McpTransport::Program { command, .. } => format!("starts {}", command.join(" ")),
            McpTransport::Address { url, .. } => format!("contacts {url}"),
        };
        add(groups, "MCP servers", format!("{lead}mcp.{}: {how}", entry.name));
    }
}

fn add(groups: &mut TrustReport, group: &'static str, entry: String) {
    match groups.iter_mut().find(|(name, _)| *name == group) {
        Some((_, entries)) => entries.push(entry),
        None => groups.push((group, vec![entry])),
    }
}

fn model(entry: &ModelEntry) -> String {
    let server = entry.base_url.as_deref().map(|url| format!(" at {url}")).unwrap_or_default();
    let key = entry.api_key_env.as_deref().map(|name| format!(", key in {name}")).unwrap_or_default();
    format!("models.{} = {}{server}{key}", entry.name, entry.model.as_deref().unwrap_or_default())
}

/// The commands of custom stages: stage, key, command.
fn stage_commands(stages: &serde_json::Value) -> Vec<(String, &'static str, String)> {
    let text = |value: Option<&serde_json::Value>| value.and_then(|value| value.as_str()).map(str::to_owned);
    let mut found = Vec::new();
    for stage in stages.as_array().into_iter().flatten() {
        let id = text(stage.get("id")).unwrap_or_default();
        for key in RUNTIME_COMMANDS {
            let pointer = format!("/{}", key.replace('.', "/"));
            found.extend(text(stage.pointer(&pointer)).map(|command| (id.clone(), key, command)));
        }
    }
    found
}
