//! Model selection: which model flags and configuration name, and what they say about it. The model crate
//! resolves and opens it ([`Connection::resolve`]); the hints about flags and files are worded here. If nothing
//! is configured, [`crate::model_selection::discovery`] looks for models.

mod catalogs;
pub(crate) mod discovery;
mod local;

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use fusee::engine::model::connection::provider::{PROVIDERS, Provider};
use fusee::engine::model::{
    Connection, ConnectionOverrides, Model, ModelRef, Models, Recorder, ResolveError, ResolvedModel,
};
use fusee::engine::run;
use fusee::engine::text::suggest;
use fusee::system;

use crate::config::{self, Config, Kind, ModelEntry, ValueOrigin};
use crate::model_selection::discovery::DiscoveredModels;
use crate::process::environment::Environment;
use crate::process::error::CliError;
use crate::process::stdio;

pub(crate) use catalogs::{prices, profile};

#[cfg(test)]
mod tests;

/// The variable with an API key for whatever server a command uses.
const ANY_KEY: &str = "FUSEE_API_KEY";

/// The model named by flags or configuration, or else the only one found on this machine.
pub(crate) async fn select(config: &Config, environment: &Environment) -> Result<ResolvedModel, CliError> {
    let resolved = find(config, environment).await?;
    if config.text("model").is_none() {
        let name = &resolved.name;
        stdio::error(&format!(
            "using {name}, the only model found on this machine (choose another with -m)\n"
        ));
    }
    Ok(resolved)
}

/// Like [`select`], without a word.
pub(crate) async fn find(config: &Config, environment: &Environment) -> Result<ResolvedModel, CliError> {
    if let Some(name) = config.text("model") {
        return named(name, config, environment);
    }
    let found = discovery::probe_all(environment).await;
    named(&only_local_model(&found)?, config, environment)
}

/// The model with this name. A configured name is resolved, so that a run resumes with the model it started
/// with even if the configuration has changed.
pub(crate) fn named(
    name: &str,
    config: &Config,
    environment: &Environment,
) -> Result<ResolvedModel, CliError> {
    let entry = config.models().iter().find(|entry| entry.name == name);
    // Flags and variables override the `[models.NAME]` entry; a value from a file does not.
    let text = |key: &str, of_entry: Option<&String>| match config.value(key) {
        Some((value, ValueOrigin::Flag(_) | ValueOrigin::Variable(_))) => Some(value.to_string()),
        other => of_entry.cloned().or_else(|| other.map(|(value, _)| value.to_string())),
    };
    let wire = text("api", entry.and_then(|entry| entry.api.as_ref()));
    let tool_format = config.text("tool_format").or(entry.and_then(|entry| entry.tool_format.as_deref()));
    let overrides = ConnectionOverrides {
        base_url: text("base_url", entry.and_then(|entry| entry.base_url.as_ref())),
        wire: wire.as_deref().and_then(config::word),
        tool_format: tool_format.and_then(config::word),
        context_tokens: config.context_tokens().or(entry.and_then(|entry| entry.context_tokens)),
        ..ConnectionOverrides::default()
    };
    let target = entry.and_then(|entry| entry.model.as_deref()).unwrap_or(name);
    let target = local::expand_home(target, environment);
    let target = match provider_with_key(&target, &overrides, environment) {
        Some(provider) => format!("{}:{target}", provider.name),
        None => target,
    };
    resolve(&target, overrides, entry, config, environment)
}

/// The provider of a model that was named without one: the only provider that lists it and whose key is set.
fn provider_with_key(
    name: &str,
    overrides: &ConnectionOverrides,
    environment: &Environment,
) -> Option<&'static Provider> {
    let is_bare = matches!(ModelRef::parse(name), Ok(ModelRef::Server { provider: None, .. }));
    if !is_bare || overrides.base_url.is_some() {
        return None;
    }
    let prices = prices(environment).ok()?;
    let has_key = |provider: &&Provider| {
        provider.key_variable.is_some_and(|variable| environment.variable(variable).is_some())
    };
    let lists = |provider: &&Provider| prices.find(Some(provider.name), name).is_some();
    let mut fitting = PROVIDERS.iter().filter(has_key).filter(lists);
    match (fitting.next(), fitting.next()) {
        (Some(only), None) => Some(only),
        _ => None,
    }
}

/// The model of a run that continues another: the one named for this command, or else that of the earlier
/// run.
pub(crate) fn continued(
    earlier: &run::RunSpec,
    config: &Config,
    environment: &Environment,
) -> Result<ResolvedModel, CliError> {
    match config.value("model") {
        Some((name, ValueOrigin::Flag(_) | ValueOrigin::Variable(_))) => {
            named(&name.to_string(), config, environment)
        }
        _ => for_resume(earlier, config, environment),
    }
}

/// Any model of the server at this URL.
pub(crate) fn at(url: &str, config: &Config, environment: &Environment) -> Result<ResolvedModel, CliError> {
    match Kind::Url.read_text(url) {
        Ok(url) => {
            let overrides =
                ConnectionOverrides { base_url: Some(url.to_string()), ..ConnectionOverrides::default() };
            resolve("any", overrides, None, config, environment)
        }
        Err(misfit) => Err(CliError::usage(format!("--base-url: {}", misfit.message))),
    }
}

/// The model of a resumed run.
pub(crate) fn for_resume(
    began: &run::RunSpec,
    config: &Config,
    environment: &Environment,
) -> Result<ResolvedModel, CliError> {
    if began.model == run::NO_MODEL {
        return Ok(without_model());
    }
    let same = |entry: &&ModelEntry| {
        entry.model.as_deref() == Some(began.model.as_str()) && entry.base_url == began.base_url
    };
    let entry = config.models().iter().find(same);
    let overrides =
        ConnectionOverrides { base_url: began.base_url.clone(), ..ConnectionOverrides::default() };
    let mut resolved = resolve(&began.model, overrides, entry, config, environment)?;
    resolved.connection.wire = began.wire;
    resolved.connection.traits = began.traits;
    resolved.connection.silence = began.limits.silence();
    Ok(resolved)
}

/// No model, for a workflow that starts no task.
pub(crate) fn without_model() -> ResolvedModel {
    ResolvedModel::new(run::NO_MODEL, Connection::default())
}

/// Resolves a model with what configuration and environment say about any model.
fn resolve(
    name: &str,
    overrides: ConnectionOverrides,
    entry: Option<&ModelEntry>,
    config: &Config,
    environment: &Environment,
) -> Result<ResolvedModel, CliError> {
    let mut overrides = ConnectionOverrides {
        api_key: environment.secret(ANY_KEY),
        api_key_variable: entry.and_then(|entry| entry.api_key_env.clone()),
        price: config.price(),
        silence: Some(config.limits().silence()),
        ..overrides
    };
    if matches!(ModelRef::parse(name), Ok(ModelRef::Local(_) | ModelRef::Server { .. })) {
        overrides.profiles = catalogs::own_file("profiles.toml", environment)?;
        overrides.prices = catalogs::own_file("prices.toml", environment)?;
    }
    Connection::resolve(name, &overrides, &variables(environment))
        .map_err(|error| with_hint(error, entry, config))
}

/// Looks up variables, for the model crate.
fn variables(environment: &Environment) -> impl Fn(&str) -> Option<OsString> {
    |name| environment.variable(name).map(OsString::from)
}

/// An error with a hint about flags and configuration.
fn with_hint(error: ResolveError, entry: Option<&ModelEntry>, config: &Config) -> CliError {
    let own_key = entry.filter(|entry| entry.api_key_env.is_some());
    match (error, own_key) {
        (ResolveError::Open(error), _) => error.into(),
        (ResolveError::NoFile, _) => local::nothing_named(),
        (ResolveError::NoServer { model }, _) => unknown_server(&model, config),
        (ResolveError::MissingKey { variable, .. }, Some(ModelEntry { name, .. })) => {
            CliError::usage(format!("missing API key for model `{name}`: {variable} is not set"))
                .help(format!("export {variable}=…, or change api_key_env in [models.{name}]"))
        }
        (error @ ResolveError::MissingKey { .. }, None) => {
            let message = error.to_string();
            let ResolveError::MissingKey { variable, .. } = error else { return CliError::usage(message) };
            CliError::usage(message)
                .help(format!("export {variable}=…, or point --base-url at a server that needs no key"))
        }
        (error, _) => CliError::usage(error.to_string()),
    }
}

/// Opens a model, recording into a cassette if one is given.
pub(crate) fn open(resolved: &ResolvedModel, record: Option<&Path>) -> Result<Arc<dyn Model>, CliError> {
    if resolved.name == run::NO_MODEL {
        return Ok(run::no_model());
    }
    let model = Models::new(system::now).open(&resolved.name, &resolved.connection)?;
    match record {
        Some(path) => Ok(Arc::new(Recorder::open(model, path)?)),
        None => Ok(model),
    }
}

/// Whether a model plays replies from a file, each of them once.
pub(crate) fn is_script(resolved: &ResolvedModel) -> bool {
    ["script:", "replay:"].iter().any(|kind| resolved.name.starts_with(kind))
}

/// Adds the configured display to a model that knows how to use one.
pub(crate) fn with_display(
    mut resolved: ResolvedModel,
    config: &Config,
    environment: &Environment,
) -> Result<ResolvedModel, CliError> {
    if let Some(display) = config.display() {
        run::offer_display(&mut resolved, display, environment.x_authority().as_deref()).map_err(
            |problem| {
                CliError::usage(problem)
                    .help("start its server, or remove `computer.display` from the configuration")
            },
        )?;
    }
    Ok(resolved)
}

/// The base URL of a provider set in the environment.
pub(crate) fn own_url(provider: &Provider, environment: &Environment) -> Option<String> {
    provider.configured_url(&variables(environment)).ok().flatten()
}

fn unknown_server(name: &str, config: &Config) -> CliError {
    let providers = PROVIDERS.iter().map(|provider| provider.name);
    let word = name.split(':').next().unwrap_or(name);
    let near = suggest::did_you_mean(
        word,
        providers.clone().chain(config.models().iter().map(|entry| entry.name.as_str())),
    );
    let names = providers.collect::<Vec<_>>().join(", ");
    let advice = format!(
        "set its server with --base-url URL, or its provider with PROVIDER:MODEL; providers are {names}; \
         local:FILE.gguf, script:FILE and replay:FILE need no server"
    );
    let help = near.map_or_else(|| advice.clone(), |near| format!("{near}\n{advice}"));
    CliError::usage(format!("no server known for model `{name}`")).help(help)
}

/// The only model that may be used without being named: one on a local server, which costs nothing.
fn only_local_model(found: &DiscoveredModels) -> Result<String, CliError> {
    let models: Vec<String> = found
        .servers
        .iter()
        .flat_map(|server| server.models.iter().map(|model| format!("{}:{model}", server.provider.name)))
        .collect();
    match (models.as_slice(), found.keys.as_slice()) {
        ([only], _) => Ok(only.clone()),
        ([], []) => Err(CliError::usage("no model configured and none found").help(nothing_found())),
        ([], keys) => {
            let lines = keys.iter().map(|provider| {
                let variable = provider.key_variable.unwrap_or_default();
                format!("{variable} is set: fusee run -m {}:MODEL …", provider.name)
            });
            let help = lines.chain(["or set model = \"PROVIDER:MODEL\" in the configuration".to_owned()]);
            Err(CliError::usage("no model configured; paid models are never picked automatically")
                .help(help.collect::<Vec<_>>().join("\n")))
        }
        (several, _) => {
            let lines = several.iter().take(10).map(|model| format!("fusee run -m {model} …"));
            Err(CliError::usage(format!("no model configured, and {} are available", several.len()))
                .help(lines.collect::<Vec<_>>().join("\n")))
        }
    }
}

/// Hint for users without a model.
pub(crate) fn nothing_found() -> String {
    let keys: Vec<&str> = PROVIDERS.iter().filter_map(|provider| provider.key_variable).collect();
    let own: Vec<&str> = PROVIDERS
        .iter()
        .filter(|provider| provider.key_variable.is_none())
        .map(|provider| provider.name)
        .collect();
    let named = |provider: &&Provider| provider.key_variable.is_some();
    let others: Vec<&str> = PROVIDERS.iter().filter(named).skip(1).map(|provider| provider.name).collect();
    // Short lines that fit any terminal: this is the first output many users see.
    format!(
        "do one of the following\n\
         \u{20} start a local server: {}\n\
         \u{20} export {}=… and run fusee -m openai:MODEL\n\
         \u{20}   (or {})\n\
         \u{20} run fusee -m MODEL --base-url URL for another server\n{}\
         fusee doctor shows what works here; fusee demo needs no model",
        own.join(", "),
        keys.first().copied().unwrap_or_default(),
        others.join(", "),
        local::offered()
    )
}
