//! Which model answers, where it is and with which key: from what was typed and configured to what the model
//! crate opens. Where nothing was said, [`crate::discover`] looks.

mod known;
mod local;
mod stand_in;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use fusee_engine::agent::Limits;
use fusee_engine::model::provider::{PROVIDERS, Provider};
use fusee_engine::model::{
    Model, Models, Price, Profile, Recorder, RequestOptions, Secret, Settings, Target, ToolFormat,
};
use fusee_engine::run;
use fusee_engine::text::near;

use crate::config::{self, Config, Kind, ModelEntry, Origin};
use crate::discover::{self, Found};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::{clock, output};

pub(crate) use known::{prices, profile};
pub(crate) use stand_in::StandIn;

#[cfg(test)]
mod tests;

/// The variable for a key that belongs to whatever server a command uses.
const ANY_KEY: &str = "FUSEE_API_KEY";

/// A model that was chosen and not yet opened.
#[derive(Debug)]
pub(crate) struct Choice {
    /// PROVIDER:MODEL, an id, local:FILE, script:FILE or replay:FILE. Names of the configuration are resolved, so that a run
    /// goes on with the model it began with although the configuration has changed.
    pub(crate) name: String,
    /// How it is reached.
    pub(crate) settings: Settings,
    /// The size of its context, where the configuration or its profile says.
    pub(crate) context_tokens: Option<u64>,
    /// What it costs, where that is known.
    pub(crate) price: Option<Price>,
    /// Whose it is, where that is known.
    pub(crate) provider: Option<&'static Provider>,
    profile: Profile,
}

impl Choice {
    /// The model that flags and configuration name, or else the one that is found here.
    pub(crate) async fn make(config: &Config, environment: &Environment) -> Result<Self, Failure> {
        if let Some(name) = config.text("model") {
            return Self::named(name, config, environment);
        }
        let found = discover::look(environment).await;
        let name = only(&found)?;
        output::error(&format!(
            "using {name}, the only model found on this machine (choose another with -m)\n"
        ));
        Self::named(&name, config, environment)
    }

    /// Nobody: for a workflow that begins no task.
    pub(crate) fn nobody() -> Self {
        let settings = Settings::default();
        let (context_tokens, price, profile) = (None, None, Profile::default());
        Self { name: run::NO_MODEL.to_owned(), settings, context_tokens, price, provider: None, profile }
    }

    /// The model called so.
    pub(crate) fn named(name: &str, config: &Config, environment: &Environment) -> Result<Self, Failure> {
        let entry = config.models().iter().find(|entry| entry.name == name);
        let said = config.value("base_url");
        // What was said for this one command goes before the entry, what stands in a file after it.
        let now = said.filter(|(_, origin)| matches!(origin, Origin::Flag(_) | Origin::Variable(_)));
        let base_url = now
            .map(|(value, _)| value.to_string())
            .or_else(|| entry.and_then(|entry| entry.base_url.clone()))
            .or_else(|| said.map(|(value, _)| value.to_string()));
        let api = match config.value("api") {
            Some((value, Origin::Flag(_) | Origin::Variable(_))) => Some(value.to_string()),
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

    /// The model of a run that continues another: the one named for this command, else that of the other.
    pub(crate) fn continued(
        earlier: &run::Settings,
        config: &Config,
        environment: &Environment,
    ) -> Result<Self, Failure> {
        match config.value("model") {
            Some((name, Origin::Flag(_) | Origin::Variable(_))) => {
                Self::named(&name.to_string(), config, environment)
            }
            _ => Self::again(earlier, config, environment),
        }
    }

    /// Whatever the server at this address has.
    pub(crate) fn at(url: &str, config: &Config, environment: &Environment) -> Result<Self, Failure> {
        match Kind::Url.read_text(url) {
            Ok(url) => Self::reach("any", Some(url.to_string()), None, config, environment),
            Err(misfit) => Err(Failure::usage(format!("--base-url: {}", misfit.message))),
        }
    }

    /// The model of a run that goes on.
    pub(crate) fn again(
        began: &run::Settings,
        config: &Config,
        environment: &Environment,
    ) -> Result<Self, Failure> {
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
    ) -> Result<Self, Failure> {
        let silence = Duration::from_secs(config.limits().timeout_s);
        let (named, model) = match Target::parse(name)? {
            Target::Server { provider, model } => (provider, model),
            Target::Local(path) => return Self::in_process(name, &path, entry, config, environment),
            Target::Script(_) | Target::Replay(_) => {
                let settings = Settings { silence, ..Settings::default() };
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
        // Whose format it is: that of the provider somebody named, or whose place it is. A server that only stands in
        // for a provider speaks what almost all speak.
        let speaker = named.or(provider.filter(|provider| host(provider.base_url) == host(address)));
        let profile = known::profile(speaker.map(|provider| provider.name), &model, environment)?;
        let settings = Settings {
            api_key,
            wire: speaker.map(|provider| provider.wire).unwrap_or_default(),
            traits: profile.traits(),
            proxy: proxy(address, environment),
            no_proxy: first_text(environment, &["NO_PROXY", "no_proxy"]),
            ca_file: environment.variable("SSL_CERT_FILE").map(Into::into),
            silence,
            base_url,
            ..Settings::default()
        };
        let known = known::price(speaker.map(|provider| provider.name), &model, environment)?;
        let price = config.price().or(known);
        let context_tokens = profile.context_tokens;
        Ok(Self { name: name.to_owned(), settings, context_tokens, price, provider: speaker, profile })
    }

    /// The knobs of its requests: what the user says, else what its profile does.
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

    /// The limits of a task with it: never more tokens than it can hold.
    pub(crate) fn limits(&self, config: &Config) -> Limits {
        let limits = config.limits();
        let max_tokens =
            self.context_tokens.map_or(limits.max_tokens, |context| context.min(limits.max_tokens));
        Limits { max_tokens, price: self.price, ..limits }
    }

    /// Opens it, recorded into a cassette if one is given.
    pub(crate) fn open(&self, record: Option<&Path>) -> Result<Arc<dyn Model>, Failure> {
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

/// The models that stages of a flow name, opened.
pub(crate) fn of_stages(
    settings: &run::Settings,
    config: &Config,
    environment: &Environment,
) -> Result<BTreeMap<String, Arc<dyn Model>>, Failure> {
    let mut models = BTreeMap::new();
    for stage in &settings.flow.stages {
        if let Some(name) = &stage.model
            && !models.contains_key(name)
        {
            let choice = Choice::named(name, config, environment).map_err(|failure| Failure {
                message: format!("stage `{}`: {}", stage.id, failure.message),
                ..failure
            })?;
            models.insert(name.clone(), choice.open(None)?);
        }
    }
    Ok(models)
}

/// Whose server it is, and where, if that is not the provider's own place.
fn server(
    name: &str,
    provider: Option<&'static Provider>,
    base_url: Option<String>,
    config: &Config,
    environment: &Environment,
) -> Result<(Option<&'static Provider>, Option<String>), Failure> {
    match (provider, base_url) {
        (None, Some(url)) => {
            // Keys go to the server they belong to and nowhere else.
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

/// The place in an address, port included; this machine has one name.
fn host(url: &str) -> Option<String> {
    let host = url.split("://").nth(1).and_then(|rest| rest.split('/').next())?;
    Some(host.replace("localhost:", "127.0.0.1:"))
}

/// Where the environment says that a provider's server is.
pub(crate) fn own_url(provider: &Provider, environment: &Environment) -> Result<Option<String>, Failure> {
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
        Err(misfit) => Err(Failure::usage(format!("{variable}: {}", misfit.message))),
    }
}

/// The variable by which Ollama itself is told where to listen, and its own client where it is.
const OLLAMA_HOST: &str = "OLLAMA_HOST";

/// The base URL in what stands there: a host, a port, both, or an address without the path of its version.
fn of_ollama_host(text: &str) -> String {
    let (scheme, rest) = text.trim().split_once("://").unwrap_or(("http", text.trim()));
    let place = rest.split('/').next().unwrap_or_default();
    let (host, port) = match place.rsplit_once(':').filter(|_| !place.ends_with(']')) {
        Some((host, port)) => (host, port),
        None if scheme == "https" => (place, "443"),
        None => (place, "11434"),
    };
    // What a server listens on everywhere is here, too.
    let host = if matches!(host, "" | "0.0.0.0" | "[::]") { "127.0.0.1" } else { host };
    format!("{scheme}://{host}:{port}/v1")
}

fn nowhere(name: &str, config: &Config) -> Failure {
    let providers = PROVIDERS.iter().map(|provider| provider.name);
    let word = name.split(':').next().unwrap_or(name);
    let near = near::did_you_mean(
        word,
        providers.clone().chain(config.models().iter().map(|entry| entry.name.as_str())),
    );
    let names = providers.collect::<Vec<_>>().join(", ");
    let advice = format!(
        "say where it is with --base-url URL, or who has it with PROVIDER:MODEL; providers are {names}; \
         local:FILE.gguf, script:FILE and replay:FILE need no server"
    );
    let help = near.map_or_else(|| advice.clone(), |near| format!("{near}\n{advice}"));
    Failure::usage(format!("no server is known for the model `{name}`")).help(help)
}

fn key(
    name: &str,
    provider: Option<&Provider>,
    base_url: Option<&str>,
    entry: Option<&ModelEntry>,
    environment: &Environment,
) -> Result<Option<Secret>, Failure> {
    if let Some(key) = environment.secret(ANY_KEY) {
        return Ok(Some(key));
    }
    if let Some(variable) = entry.and_then(|entry| entry.api_key_env.as_deref()) {
        return environment.secret(variable).map(Some).ok_or_else(|| {
            let entry = entry.map(|entry| entry.name.as_str()).unwrap_or_default();
            Failure::usage(format!("the key of the model `{entry}` is not set: {variable}"))
                .help(format!("export {variable}=…, or change api_key_env in [models.{entry}]"))
        });
    }
    let Some(variable) = provider.and_then(|provider| provider.key_variable) else { return Ok(None) };
    match environment.secret(variable) {
        Some(key) => Ok(Some(key)),
        // A server of one's own may need none.
        None if base_url.is_some() => Ok(None),
        None => Err(Failure::usage(format!("the model `{name}` needs a key: {variable} is not set"))
            .help(format!("export {variable}=…, or point --base-url at a server that needs none"))),
    }
}

/// The proxy for an address, as other programs understand the variables. This machine is never behind one.
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

/// The one model that may be used without being named: a server's of one's own. Nobody pays for that.
fn only(found: &Found) -> Result<String, Failure> {
    let models: Vec<String> = found
        .servers
        .iter()
        .flat_map(|server| server.models.iter().map(|model| format!("{}:{model}", server.provider.name)))
        .collect();
    match (models.as_slice(), found.keys.as_slice()) {
        ([only], _) => Ok(only.clone()),
        ([], []) => Err(Failure::usage("no model is configured, and none was found").help(nothing_found())),
        ([], keys) => {
            let lines = keys.iter().map(|provider| {
                let variable = provider.key_variable.unwrap_or_default();
                format!("{variable} is set: fusee run -m {}:MODEL …", provider.name)
            });
            let help = lines.chain(["or put model = \"PROVIDER:MODEL\" into the configuration".to_owned()]);
            Err(Failure::usage("no model is chosen, and none that costs money is taken unasked")
                .help(help.collect::<Vec<_>>().join("\n")))
        }
        (several, _) => {
            let lines = several.iter().take(10).map(|model| format!("fusee run -m {model} …"));
            Err(Failure::usage(format!("no model is chosen, and {} are there", several.len()))
                .help(lines.collect::<Vec<_>>().join("\n")))
        }
    }
}

/// What to do where there is no model.
pub(crate) fn nothing_found() -> String {
    let keys: Vec<&str> = PROVIDERS.iter().filter_map(|provider| provider.key_variable).collect();
    let own: Vec<&str> = PROVIDERS
        .iter()
        .filter(|provider| provider.key_variable.is_none())
        .map(|provider| provider.name)
        .collect();
    let named = |provider: &&Provider| provider.key_variable.is_some();
    let others: Vec<&str> = PROVIDERS.iter().filter(named).skip(1).map(|provider| provider.name).collect();
    // A line each, short enough for any terminal: this is the first that many people see.
    format!(
        "one of these will do\n\
         \u{20} start a server here: {}\n\
         \u{20} export {}=… and fusee -m openai:MODEL\n\
         \u{20}   (or {})\n\
         \u{20} fusee -m MODEL --base-url URL, wherever one is\n{}\
         fusee doctor says what works here, fusee demo needs no model",
        own.join(", "),
        keys.first().copied().unwrap_or_default(),
        others.join(", "),
        local::offered()
    )
}
