//! `fusee trust`.

use std::path::Path;

use clap::Args;
use fusee::engine::run::ExitStatus;
use fusee::engine::tools::workspace::bounded_read;

use crate::config::flags::DirectoryFlag;
use crate::config::trust::Trust;
use crate::config::{Config, Key, ValueOrigin};
use crate::process::Process;
use crate::process::error::CliError;
use crate::process::stdio;
use crate::project::Project;

/// Trust this project's fusee.toml with settings that reach outside the workspace.
///
/// An untrusted project can configure how a task runs, but not where requests and keys are sent, which MCP
/// servers are started, how commands are sandboxed, or when you are asked for approval. `fusee trust` enables
/// these settings, but only for the current content of the file: review it first.
///
/// A journal that came with the project is trusted as well: its runs can then be resumed, continued and
/// undone.
#[derive(Args)]
pub(crate) struct TrustArgs {
    /// Revoke the trust
    #[arg(long)]
    revoke: bool,
    #[command(flatten)]
    place: DirectoryFlag,
}

/// Runs the command.
pub(crate) fn trust(args: &TrustArgs, process: &Process) -> Result<ExitStatus, CliError> {
    let environment = &process.environment;
    let project = Project::find(args.place.directory.as_deref(), environment)?;
    let file = project.config_file();
    let mut trust = Trust::read(environment);
    let ownership = project.ownership();
    if args.revoke {
        let was = trust.revoke(&file).map_err(|error| unsaved(&error))?;
        ownership.remove(&project.journal).map_err(|error| unsaved(&error))?;
        let words = if was { "is no longer trusted" } else { "was not trusted" };
        stdio::print(&format!("{} {words}\n", file.display()))?;
        return Ok(ExitStatus::Completed);
    }
    let is_foreign = project.journal.exists() && !ownership.covers(&project.journal);
    if is_foreign {
        ownership.add(&project.journal).map_err(|error| unsaved(&error))?;
        stdio::print(&format!(
            "{} is now trusted: its runs can be resumed, continued and undone\n",
            project.journal.display()
        ))?;
        if !file.exists() {
            return Ok(ExitStatus::Completed);
        }
    }
    let content = bounded_read::read_text(&file, crate::config::MOST_BYTES).map_err(|error| {
        CliError::usage(format!("nothing to trust: cannot read {}: {error}", file.display()))
            .help("a project without fusee.toml needs no trust; use -C to select another directory")
    })?;
    trust.grant(&file, &content).map_err(|error| unsaved(&error))?;
    // Report errors in the file, and do not trust an invalid one.
    let config = match Config::gather(Some(&file), environment, Vec::new()) {
        Ok(config) => config,
        Err(failure) => {
            trust.revoke(&file).map_err(|error| unsaved(&error))?;
            return Err(failure);
        }
    };
    stdio::print(&list_settings(&file, &config))?;
    Ok(ExitStatus::Completed)
}

fn unsaved(error: &std::io::Error) -> CliError {
    CliError::failed(format!("cannot save the list of trusted files: {error}"))
}

/// Lists the settings that are now in effect.
fn list_settings(file: &Path, config: &Config) -> String {
    let mut text = format!("{} is trusted with its current content\n", file.display());
    let is_its = |origin: &ValueOrigin| matches!(origin, ValueOrigin::File { path, .. } if path == file);
    let mut lines: Vec<String> = Key::outside_keys()
        .filter_map(|key| config.value(key.name).map(|(value, origin)| (key, value, origin)))
        .filter(|(_, _, origin)| is_its(origin))
        .map(|(key, value, _)| format!("  {} = {value}\n", key.name))
        .collect();
    for entry in config.models().iter().filter(|entry| is_its(&entry.origin)) {
        let server = entry.base_url.as_deref().map(|url| format!(" at {url}")).unwrap_or_default();
        let key = entry.api_key_env.as_deref().map(|name| format!(", key in {name}")).unwrap_or_default();
        let model = entry.model.as_deref().unwrap_or_default();
        lines.push(format!("  models.{} = {model}{server}{key}\n", entry.name));
    }
    if lines.is_empty() {
        text.push_str("it sets nothing that needs trust\n");
    } else {
        text.push_str("it sets:\n");
        text.extend(lines);
    }
    text
}
