//! `fusee models`: lists the available models.

use clap::Args;
use fusee::engine::model::{ModelRef, Models, Price, ServedModel};
use fusee::engine::run::ExitStatus;
use fusee::system;
use serde::Serialize;

use crate::config::Config;
use crate::config::flags::DirectoryFlag;
use crate::model_selection;
use crate::model_selection::discovery::{self, DiscoveredModels};
use crate::process::Process;
use crate::process::environment::Environment;
use crate::process::error::CliError;
use crate::process::stdio;
use crate::project::Project;
use crate::ui::UiOptions;

#[cfg(test)]
mod tests;

/// Maximum number of models listed per source without a filter.
const LISTED: usize = 40;

/// List the available models.
///
/// Queries servers on this machine, providers whose key is set and the models in your configuration, and
/// prints what is known about each: size, context, price. Models get no request; `fusee doctor` sends one.
#[derive(Args)]
pub(crate) struct ModelsArgs {
    /// Only list models whose name contains NAME, or a model file: local:FILE.gguf
    #[arg(value_name = "NAME")]
    filter: Option<String>,
    /// Query this server instead of the default ones
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,
    /// Print the models as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    directory: DirectoryFlag,
}

/// An available model.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct ModelRow {
    /// The name `-m` takes.
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    size_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    context_tokens: Option<u64>,
    /// US dollars per million tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    price: Option<Price>,
    /// Where it was found.
    source: String,
}

/// Runs the command.
pub(crate) async fn models(args: &ModelsArgs, process: &Process) -> Result<ExitStatus, CliError> {
    let environment = &process.environment;
    let project = Project::find(args.directory.directory.as_deref(), environment)?;
    let config = Config::gather(Some(&project.config_file()), environment, Vec::new())?;
    let ui_options = UiOptions::new(args.json, &config, environment);
    ui_options.warn(&config);
    let filter = args.filter.as_deref().unwrap_or_default();
    let (mut rows, errors) = gather(args.base_url.as_deref(), filter, &config, environment).await?;
    let wanted = filter.to_lowercase();
    rows.retain(|row| row.name.to_lowercase().contains(&wanted));
    for error in errors {
        stdio::error(&format!("{error}\n"));
    }
    if args.json {
        let value = serde_json::to_value(&rows).unwrap_or_default();
        stdio::print_json(&format!("{value:#}\n"))?;
    } else if rows.is_empty() {
        stdio::error(&format!("no model found\n{}\n", model_selection::nothing_found()));
    } else {
        stdio::print(&table(&rows, wanted.is_empty()))?;
    }
    Ok(ExitStatus::Completed)
}

/// All models, and errors of sources that could not be queried.
async fn gather(
    base_url: Option<&str>,
    filter: &str,
    config: &Config,
    environment: &Environment,
) -> Result<(Vec<ModelRow>, Vec<String>), CliError> {
    let (mut rows, mut errors) = (Vec::new(), Vec::new());
    let sources = match base_url {
        Some(url) => vec![url.to_owned()],
        None => {
            rows.extend(configured(config, environment));
            rows.extend(file(filter, config, environment)?);
            providers_to_query(&discovery::probe_all(environment).await)
        }
    };
    let prices = model_selection::prices(environment)?;
    let models = Models::new(system::now);
    for place in sources {
        // A provider is addressed by a placeholder model that is never used; or it is a URL.
        let (chosen, source) = match base_url {
            Some(url) => (model_selection::at(url, config, environment)?, url.to_owned()),
            None => (model_selection::named(&format!("{place}:any"), config, environment)?, place.clone()),
        };
        match models.list(&chosen.name, &chosen.connection).await {
            Ok(listed) => {
                rows.extend(listed.into_iter().map(|ServedModel { id, size_bytes, context_tokens }| {
                    let provider = chosen.provider.map(|provider| provider.name);
                    let profile = model_selection::profile(provider, &id, environment).unwrap_or_default();
                    ModelRow {
                        price: prices.find(provider, &id),
                        name: if base_url.is_some() { id } else { format!("{place}:{id}") },
                        size_bytes,
                        context_tokens: context_tokens.or(profile.context_tokens),
                        source: source.clone(),
                    }
                }))
            }
            Err(error) => errors.push(format!("{source}: {error}")),
        }
    }
    Ok((rows, errors))
}

/// Names of the providers that a running server or a key makes available.
fn providers_to_query(found: &DiscoveredModels) -> Vec<String> {
    let servers = found.servers.iter().map(|server| server.provider.name);
    servers.chain(found.keys.iter().map(|provider| provider.name)).map(str::to_owned).collect()
}

fn configured(config: &Config, environment: &Environment) -> Vec<ModelRow> {
    let entries = config.models().iter().map(|entry| {
        let choice = model_selection::named(&entry.name, config, environment).ok();
        ModelRow {
            name: entry.name.clone(),
            size_bytes: choice.as_ref().and_then(|choice| size_of_file(&choice.name)),
            context_tokens: choice.as_ref().and_then(|choice| choice.context_tokens),
            price: choice.as_ref().and_then(|choice| choice.price),
            source: "configuration".to_owned(),
        }
    });
    entries.collect()
}

/// A model file given by name; files are not searched for.
fn file(name: &str, config: &Config, environment: &Environment) -> Result<Option<ModelRow>, CliError> {
    if !matches!(ModelRef::parse(name), Ok(ModelRef::Local(_))) {
        return Ok(None);
    }
    let choice = model_selection::named(name, config, environment)?;
    model_selection::open(&choice, None)?;
    Ok(Some(ModelRow {
        name: name.to_owned(),
        size_bytes: size_of_file(&choice.name),
        context_tokens: choice.context_tokens,
        price: choice.price,
        source: "file".to_owned(),
    }))
}

fn size_of_file(name: &str) -> Option<u64> {
    let Ok(ModelRef::Local(path)) = ModelRef::parse(name) else { return None };
    std::fs::metadata(path).ok().map(|found| found.len())
}

fn table(rows: &[ModelRow], shorten: bool) -> String {
    let mut text = String::new();
    let width = rows.iter().map(|row| row.name.chars().count()).max().unwrap_or_default();
    let mut sources: Vec<&str> = Vec::new();
    for row in rows {
        if !sources.contains(&row.source.as_str()) {
            sources.push(&row.source);
        }
    }
    for source in sources {
        let all: Vec<&ModelRow> = rows.iter().filter(|row| row.source == source).collect();
        let shown = if shorten { all.len().min(LISTED) } else { all.len() };
        for row in &all[..shown] {
            let line = format!(
                "{:<width$}  {:>8}  {:>10}  {}",
                row.name,
                row.size_bytes.map(bytes).unwrap_or_default(),
                row.context_tokens.map(|tokens| format!("{tokens} tok")).unwrap_or_default(),
                row.price.map(price).unwrap_or_default(),
            );
            text.push_str(line.trim_end());
            text.push('\n');
        }
        if shown < all.len() {
            text.push_str(&format!("… and {} more of {source}: fusee models NAME\n", all.len() - shown));
        }
    }
    text
}

fn bytes(count: u64) -> String {
    match count {
        1_000_000_000.. => format!("{:.1} GB", count as f64 / 1e9),
        _ => format!("{:.0} MB", count as f64 / 1e6),
    }
}

fn price(price: Price) -> String {
    if price.is_free() {
        return "free".to_owned();
    }
    format!("${} in, ${} out per million", price.input, price.output)
}
