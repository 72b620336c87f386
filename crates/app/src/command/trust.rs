//! `fusee trust`.

use std::path::Path;

use clap::Args;
use fusee_engine::run::Exit;
use fusee_engine::tools::plain;

use super::Process;
use crate::arguments::shared::Place;
use crate::config::{Config, Key, Origin};
use crate::failure::Failure;
use crate::output;
use crate::project::Project;
use crate::trust::Trust;

/// Let this project's fusee.toml decide what reaches outside the workspace.
///
/// A project that came from somewhere may set how a task runs, but not where requests and keys go, which programs are
/// started as servers, what confines commands, or when you are asked. Those of its settings count only once you said so
/// here, and only as long as the file stays as it is now: look at it first.
///
/// A journal that came with the project is taken for yours as well: its runs can then be resumed, continued and undone.
#[derive(Args)]
pub(crate) struct TrustArgs {
    /// Take it back
    #[arg(long)]
    revoke: bool,
    #[command(flatten)]
    place: Place,
}

/// Trusts it, or takes that back.
pub(crate) fn trust(args: &TrustArgs, process: &Process) -> Result<Exit, Failure> {
    let environment = &process.environment;
    let project = Project::find(args.place.directory.as_deref(), environment)?;
    let file = project.config_file();
    let mut trust = Trust::read(environment);
    let ownership = project.ownership();
    if args.revoke {
        let was = trust.revoke(&file).map_err(|error| unsaved(&error))?;
        ownership.remove(&project.journal).map_err(|error| unsaved(&error))?;
        let words = if was { "is trusted no longer" } else { "was not trusted" };
        output::print(&format!("{} {words}\n", file.display()))?;
        return Ok(Exit::Completed);
    }
    let is_foreign = project.journal.exists() && !ownership.covers(&project.journal);
    if is_foreign {
        ownership.add(&project.journal).map_err(|error| unsaved(&error))?;
        output::print(&format!(
            "{} is taken for yours: its runs can be gone on with\n",
            project.journal.display()
        ))?;
        if !file.exists() {
            return Ok(Exit::Completed);
        }
    }
    let content = plain::read_text(&file, crate::config::MOST_BYTES).map_err(|error| {
        Failure::usage(format!("there is nothing to trust: cannot read {}: {error}", file.display()))
            .help("a project that sets nothing needs no trust; -C names another directory")
    })?;
    trust.grant(&file, &content).map_err(|error| unsaved(&error))?;
    // What is wrong in the file is told, and a file that is not whole is not trusted.
    let config = match Config::gather(Some(&file), environment, Vec::new()) {
        Ok(config) => config,
        Err(failure) => {
            trust.revoke(&file).map_err(|error| unsaved(&error))?;
            return Err(failure);
        }
    };
    output::print(&said(&file, &config))?;
    Ok(Exit::Completed)
}

fn unsaved(error: &std::io::Error) -> Failure {
    Failure::failed(format!("cannot write down what is trusted: {error}"))
}

/// What it now decides.
fn said(file: &Path, config: &Config) -> String {
    let mut text = format!("{} is trusted as it is now\n", file.display());
    let is_its = |origin: &Origin| matches!(origin, Origin::File { path, .. } if path == file);
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
        text.push_str("it sets nothing that needs it\n");
    } else {
        text.push_str("it decides:\n");
        text.extend(lines);
    }
    text
}
