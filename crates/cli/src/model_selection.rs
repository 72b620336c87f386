//! Model selection: resolves flags and configuration to a model, its server and its key, for the model crate
//! to open. If nothing is configured, [`crate::model_selection::discovery`] looks for models.

mod catalogs;
pub(crate) mod discovery;
mod local;
mod renamed_model;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use fusee_engine::agent::{Limits, PricedModel};
use fusee_engine::model::provider::{PROVIDERS, Provider};
use fusee_engine::model::{
    Connection, Model, ModelRef, Models, Price, Profile, Recorder, RequestOptions, Secret, ToolFormat,
};
use fusee_engine::run;
use fusee_engine::text::suggest;

use crate::cli::clock;
use crate::cli::environment::Environment;
use crate::cli::error::CliError;
use crate::config::{self, Config, Kind, ModelEntry, ValueOrigin};
use crate::model_selection::discovery::DiscoveredModels;
use crate::ui::stdio;

pub(crate) use catalogs::{prices, profile};
pub(crate) use renamed_model::RenamedModel;

#[cfg(test)]
mod tests;

/// The variable with an API key for whatever server a command uses.
const ANY_KEY: &str = "FUSEE_API_KEY";

/// A model that is selected but not yet opened.
#[derive(Debug)]
pub(crate) struct ModelSelection {
    /// PROVIDER:MODEL, an id, local:FILE, script:FILE or replay:FILE. Configured names are resolved, so that
    /// a run resumes with the model it started with even if the configuration has changed.
    pub(crate) name: String,
    /// Connection settings.
    pub(crate) settings: Connection,
    /// Context size, if configured or known from the profile.
    pub(crate) context_tokens: Option<u64>,
    /// Token price, if known.
    pub(crate) price: Option<Price>,
    /// Provider, if known.
    pub(crate) provider: Option<&'static Provider>,
    profile: Profile,
}

impl ModelSelection {
    /// The model named by flags or configuration, or else the only one found on this machine.
    pub(crate) async fn make(config: &Config, environment: &Environment) -> Result<Self, CliError> {
        if let Some(name) = config.text("model") {
            return Self::named(name, config, environment);
        }
        let found = discovery::look(environment).await;
        let name = only(&found)?;
        stdio::error(&format!(
            "using {name}, the only model found on this machine (choose another with -m)\n"
        ));
        Self::named(&name, config, environment)
    }

    /// No model, for a workflow that starts no task.
    pub(crate) fn nobody() -> Self {
        let settings = Connection::default();
        let (context_tokens, price, profile) = (None, None, Profile::default());
        Self { name: run::NO_MODEL.to_owned(), settings, context_tokens, price, provider: None, profile }
    }

    /// The model with this name.
    pub(crate) fn named(name: &str, config: &Config, environment: &Environment) -> Result<Self, CliError> {
        let entry = config.models().iter().find(|entry| entry.name == name);
        let said = config.value("base_url");
        // Flags and variables override the `[models.NAME]` entry; a value from a file does not.
        let now =
            said.filter(|(_, origin)| matches!(origin, ValueOrigin::Flag(_) | ValueOrigin::Variable(_)));
        let base_url = now
            .map(|(value, _)| value.to_string())
            .or_else(|| entry.and_then(|entry| entry.base_url.clone()))
            .or_else(|| said.map(|(value, _)| value.to_string()));
        let api = match config.value("api") {
            Some((value, ValueOrigin::Flag(_) | ValueOrigin::Variable(_))) => Some(value.to_string()),
            other => {
                let file = other.map(|(value, _)| value.to_string());
                entry.and_then(|entry| entry.api.clone()).or(file)
            }
        };
        let target = entry.and_then(|entry| entry.model.as_deref()).unwrap_or(name);
        let target = local::at_home(target, environment);
        let mut choice = Self::reach(&target, base_url, entry, config, environment)?;
        if let Some(wire) = api.as_deref().and_then(config::wire) {
            choice.settings.wire = wire;
        }
        let of_entry = entry.and_then(|entry| entry.context_tokens);
        choice.context_tokens = config.context_tokens().or(of_entry).or(choice.context_tokens);
        let traits = &mut choice.settings.traits;
        let said = config.text("tool_format").or(entry.and_then(|entry| entry.tool_format.as_deref()));
        traits.tool_format = match said {
            Some("native") => ToolFormat::Native,
            Some("text") => ToolFormat::Text,
            Some("schema") => ToolFormat::Schema,
            _ => traits.tool_format,
        };
        Ok(choice)
    }

    /// The model of a run that continues another: the one named for this command, or else that of the earlier
    /// run.
    pub(crate) fn continued(
        earlier: &run::RunSpec,
        config: &Config,
        environment: &Environment,
    ) -> Result<Self, CliError> {
        match config.value("model") {
            Some((name, ValueOrigin::Flag(_) | ValueOrigin::Variable(_))) => {
                Self::named(&name.to_string(), config, environment)
            }
            _ => Self::again(earlier, config, environment),
        }
    }

    /// Any model of the server at this URL.
    pub(crate) fn at(url: &str, config: &Config, environment: &Environment) -> Result<Self, CliError> {
        match Kind::Url.read_text(url) {
            Ok(url) => Self::reach("any", Some(url.to_string()), None, config, environment),
            Err(misfit) => Err(CliError::usage(format!("--base-url: {}", misfit.message))),
        }
    }

    /// The model of a resumed run.
    pub(crate) fn again(
        began: &run::RunSpec,
        config: &Config,
        environment: &Environment,
    ) -> Result<Self, CliError> {
        if began.model == run::NO_MODEL {
            return Ok(Self::nobody());
        }
        let same = |entry: &&ModelEntry| {
            entry.model.as_deref() == Some(began.model.as_str()) && entry.base_url == began.base_url
        };
        let entry = config.models().iter().find(same);
        let mut choice = Self::reach(&began.model, began.base_url.clone(), entry, config, environment)?;
        choice.settings.wire = began.wire;
        choice.settings.traits = began.traits;
        choice.settings.silence = Duration::from_secs(began.limits.timeout_s);
        Ok(choice)
    }

    fn reach(
        name: &str,
        base_url: Option<String>,
        entry: Option<&ModelEntry>,
        config: &Config,
        environment: &Environment,
    ) -> Result<Self, CliError> {
        let silence = Duration::from_secs(config.limits().timeout_s);
        let (named, model) = match ModelRef::parse(name)? {
            ModelRef::Server { provider, model } => (provider, model),
            ModelRef::Local(path) => return Self::in_process(name, &path, entry, config, environment),
            ModelRef::Script(_) | ModelRef::Replay(_) => {
                let settings = Connection { silence, ..Connection::default() };
                let (context_tokens, price, provider, profile) =
                    (None, config.price(), None, Profile::default());
                return Ok(Self {
                    name: name.to_owned(),
                    settings,
                    context_tokens,
                    price,
                    provider,
                    profile,
                });
            }
        };
        let (provider, base_url) = server(name, named, base_url, config, environment)?;
        let api_key = key(name, provider, base_url.as_deref(), entry, environment)?;
        let address = base_url.as_deref().or(provider.map(|provider| provider.base_url)).unwrap_or_default();
        // The wire format is that of the named provider, or of the provider that owns the server. A server
        // that merely stands in for a provider speaks the default format.
        let speaker = named.or(provider.filter(|provider| host(provider.base_url) == host(address)));
        let profile = catalogs::profile(speaker.map(|provider| provider.name), &model, environment)?;
        let settings = Connection {
            api_key,
            wire: speaker.map(|provider| provider.wire).unwrap_or_default(),
            traits: profile.traits(),
            proxy: proxy(address, environment),
            no_proxy: first_text(environment, &["NO_PROXY", "no_proxy"]),
            ca_file: environment.variable("SSL_CERT_FILE").map(Into::into),
            silence,
            base_url,
            ..Connection::default()
        };
        let known = catalogs::price(speaker.map(|provider| provider.name), &model, environment)?;
        let price = config.price().or(known);
        let context_tokens = profile.context_tokens;
        Ok(Self { name: name.to_owned(), settings, context_tokens, price, provider: speaker, profile })
    }

    /// Sampling options: from the configuration, or else from the profile.
    pub(crate) fn options(&self, config: &Config) -> RequestOptions {
        let said = config.options();
        RequestOptions {
            temperature: said.temperature.or(self.profile.temperature),
            top_p: said.top_p.or(self.profile.top_p),
            max_output_tokens: said.max_output_tokens.or(self.profile.max_output_tokens),
            reasoning_effort: said.reasoning_effort.or_else(|| self.profile.reasoning_effort.clone()),
            ..said
        }
    }

    /// Limits of a task with this model; `max_tokens` is capped at the context size.
    pub(crate) fn limits(&self, config: &Config) -> Limits {
        let limits = config.limits();
        let max_tokens =
            self.context_tokens.map_or(limits.max_tokens, |context| context.min(limits.max_tokens));
        Limits { max_tokens, price: self.price, ..limits }
    }

    /// Opens the model, recording into a cassette if one is given.
    pub(crate) fn open(&self, record: Option<&Path>) -> Result<Arc<dyn Model>, CliError> {
        if self.name == run::NO_MODEL {
            return Ok(run::no_model());
        }
        let model = Models::new(clock::now).open(&self.name, &self.settings)?;
        match record {
            Some(path) => Ok(Arc::new(Recorder::open(model, path)?)),
            None => Ok(model),
        }
    }
}

/// Opens the models named by the stages of a flow.
pub(crate) fn stage_models(
    settings: &run::RunSpec,
    config: &Config,
    environment: &Environment,
) -> Result<BTreeMap<String, PricedModel>, CliError> {
    let mut models = BTreeMap::new();
    for stage in &settings.flow.stages {
        if let Some(name) = &stage.model
            && !models.contains_key(name)
        {
            let choice = ModelSelection::named(name, config, environment).map_err(|failure| CliError {
                message: format!("stage `{}`: {}", stage.id, failure.message),
                ..failure
            })?;
            models.insert(name.clone(), PricedModel { model: choice.open(None)?, price: choice.price });
        }
    }
    Ok(models)
}

/// The provider of a server, and its URL if that is not the provider's default.
fn server(
    name: &str,
    provider: Option<&'static Provider>,
    base_url: Option<String>,
    config: &Config,
    environment: &Environment,
) -> Result<(Option<&'static Provider>, Option<String>), CliError> {
    match (provider, base_url) {
        (None, Some(url)) => {
            // An API key is sent only to the server it belongs to.
            let known = PROVIDERS.iter().find(|provider| host(provider.base_url) == host(&url));
            Ok((known, Some(url)))
        }
        (Some(provider), Some(url)) => Ok((Some(provider), Some(url))),
        (Some(provider), None) => Ok((Some(provider), own_url(provider, environment)?)),
        (None, None) => {
            let openai = Provider::named("openai");
            let url = openai.map(|provider| own_url(provider, environment)).transpose()?.flatten();
            match url {
                Some(url) => Ok((openai, Some(url))),
                None if name == local::WORD => Err(local::nothing_named()),
                None => Err(nowhere(name, config)),
            }
        }
    }
}

/// Host and port of a URL, with `localhost` normalized to `127.0.0.1`.
fn host(url: &str) -> Option<String> {
    let host = url.split("://").nth(1).and_then(|rest| rest.split('/').next())?;
    Some(host.replace("localhost:", "127.0.0.1:"))
}

/// The base URL of a provider set in the environment.
pub(crate) fn own_url(provider: &Provider, environment: &Environment) -> Result<Option<String>, CliError> {
    let variable = provider.url_variable();
    let (variable, text) = match environment.text(&variable) {
        Some(text) => (variable, text.to_owned()),
        None if provider.name == "ollama" => match environment.text(OLLAMA_HOST).map(of_ollama_host) {
            Some(url) => (OLLAMA_HOST.to_owned(), url),
            None => return Ok(None),
        },
        None => return Ok(None),
    };
    match Kind::Url.read_text(&text) {
        Ok(url) => Ok(Some(url.to_string())),
        Err(misfit) => Err(CliError::usage(format!("{variable}: {}", misfit.message))),
    }
}

/// The variable that tells Ollama where to listen, and its own client where to connect.
const OLLAMA_HOST: &str = "OLLAMA_HOST";

/// The base URL for an `OLLAMA_HOST` value: a host, a port, both, or a URL without the version path.
fn of_ollama_host(text: &str) -> String {
    let (scheme, rest) = text.trim().split_once("://").unwrap_or(("http", text.trim()));
    let place = rest.split('/').next().unwrap_or_default();
    let (host, port) = match place.rsplit_once(':').filter(|_| !place.ends_with(']')) {
        Some((host, port)) => (host, port),
        None if scheme == "https" => (place, "443"),
        None => (place, "11434"),
    };
    // A server that listens on all interfaces is reached on the loopback interface.
    let host = if matches!(host, "" | "0.0.0.0" | "[::]") { "127.0.0.1" } else { host };
    format!("{scheme}://{host}:{port}/v1")
}

fn nowhere(name: &str, config: &Config) -> CliError {
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

fn key(
    name: &str,
    provider: Option<&Provider>,
    base_url: Option<&str>,
    entry: Option<&ModelEntry>,
    environment: &Environment,
) -> Result<Option<Secret>, CliError> {
    if let Some(key) = environment.secret(ANY_KEY) {
        return Ok(Some(key));
    }
    if let Some(variable) = entry.and_then(|entry| entry.api_key_env.as_deref()) {
        return environment.secret(variable).map(Some).ok_or_else(|| {
            let entry = entry.map(|entry| entry.name.as_str()).unwrap_or_default();
            CliError::usage(format!("missing API key for model `{entry}`: {variable} is not set"))
                .help(format!("export {variable}=…, or change api_key_env in [models.{entry}]"))
        });
    }
    let Some(variable) = provider.and_then(|provider| provider.key_variable) else { return Ok(None) };
    match environment.secret(variable) {
        Some(key) => Ok(Some(key)),
        // A self-hosted server may need no key.
        None if base_url.is_some() => Ok(None),
        None => Err(CliError::usage(format!("missing API key for model `{name}`: {variable} is not set"))
            .help(format!("export {variable}=…, or point --base-url at a server that needs no key"))),
    }
}

/// The proxy for an address, from the usual variables. The loopback interface is never proxied.
fn proxy(address: &str, environment: &Environment) -> Option<String> {
    let (scheme, rest) = address.split_once("://")?;
    let host = rest.split(['/', ':']).next().unwrap_or_default();
    if matches!(host, "localhost" | "127.0.0.1" | "[") || rest.starts_with("[::1]") {
        return None;
    }
    match scheme {
        "https" => first_text(environment, &["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"]),
        _ => first_text(environment, &["http_proxy", "HTTP_PROXY", "ALL_PROXY", "all_proxy"]),
    }
}

fn first_text(environment: &Environment, names: &[&str]) -> Option<String> {
    names.iter().find_map(|name| environment.text(name)).map(str::to_owned)
}

/// The only model that may be used without being named: one on a local server, which costs nothing.
fn only(found: &DiscoveredModels) -> Result<String, CliError> {
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
