//! How to reach a model: [`Connection::resolve`] finds out server, wire format, profile, price and key of a
//! model from its name, for the command line and for embedders alike. [`Models`](crate::Models) opens the result.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use crate::connection::provider::{PROVIDERS, Provider, UrlError};
use crate::{
    Dialect, ModelRef, ModelTraits, OpenError, Price, Prices, Profile, Profiles, RequestOptions, Secret,
    ToolFormat, Wire,
};

pub mod provider;
#[cfg(test)]
mod tests;

/// The prefix of models in files, and the provider name of their profiles and prices.
pub const LOCAL: &str = "local";

/// How to reach a model.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Connection {
    /// Base URL including the version path (`http://127.0.0.1:8080/v1`); defaults to the provider's.
    pub base_url: Option<String>,
    /// Sent as `Authorization: Bearer …`.
    pub api_key: Option<Secret>,
    /// Additional headers. Values are redacted, because some are keys.
    pub headers: Vec<(String, Secret)>,
    /// API format of the server.
    pub wire: Wire,
    /// Traits from the model's profile.
    pub traits: ModelTraits,
    /// Proxy for all requests.
    pub proxy: Option<String>,
    /// Hosts that bypass the proxy, in the usual comma-separated form.
    pub no_proxy: Option<String>,
    /// PEM file with additional certificate authorities.
    pub ca_file: Option<PathBuf>,
    /// Maximum time a server may send nothing.
    pub silence: Duration,
    /// Context size of an in-process model in tokens; servers determine their own.
    pub context_tokens: Option<u64>,
    /// Number of threads of an in-process model; defaults to the number of available processors.
    pub threads: Option<usize>,
}

impl Default for Connection {
    fn default() -> Self {
        Connection {
            base_url: None,
            api_key: None,
            headers: Vec::new(),
            wire: Wire::Chat,
            traits: ModelTraits::default(),
            proxy: None,
            no_proxy: None,
            ca_file: None,
            silence: Duration::from_secs(300),
            context_tokens: None,
            threads: None,
        }
    }
}

impl Connection {
    pub(crate) fn dialect(&self) -> Result<Dialect, OpenError> {
        if self.traits.tool_format != ToolFormat::Native && self.wire != Wire::Chat {
            return Err(OpenError::Settings(
                "tool_format text and schema require the chat completions API; set api to `chat`, or tool_format to \
                 native"
                    .into(),
            ));
        }
        Ok(Dialect { wire: self.wire, traits: self.traits })
    }

    /// Finds out everything about the model called `name`: its provider, wire format, profile, price and key.
    /// `overrides` take precedence over what is known about it. `secrets` looks up environment variables by
    /// name, because keys, addresses and proxies are usually configured there; a caller that reads no
    /// environment passes `&|_| None`.
    pub fn resolve(
        name: &str,
        overrides: &ConnectionOverrides,
        secrets: &dyn Fn(&str) -> Option<OsString>,
    ) -> Result<ResolvedModel, ResolveError> {
        let silence = overrides.silence.unwrap_or(Connection::default().silence);
        let usual = Connection { silence, ..Connection::default() };
        let mut resolved = match ModelRef::parse(name)? {
            ModelRef::Script(_) | ModelRef::Replay(_) => ResolvedModel::new(name, usual),
            ModelRef::Local(path) => {
                // A file has no server and no key; its profile and price are looked up by file name.
                let file = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
                let mut resolved = ResolvedModel::new(name, usual);
                resolved.look_up(Some(LOCAL), &file.unwrap_or_default(), overrides)?;
                resolved.connection.context_tokens = overrides.context_tokens.or(resolved.context_tokens);
                resolved
            }
            ModelRef::Server { provider, model } => {
                let (owner, base_url) = server(name, provider, overrides, secrets)?;
                let api_key = key(name, owner, base_url.as_deref(), overrides, secrets)?;
                let default_url = owner.map(|owner| owner.base_url);
                let address = base_url.as_deref().or(default_url).unwrap_or_default();
                // The wire format is that of the named provider, or of the provider that owns the server. A
                // server that merely stands in for a provider speaks the default format.
                let speaker = provider.or(owner.filter(|owner| host(owner.base_url) == host(address)));
                let connection = Connection {
                    api_key,
                    wire: speaker.map(|provider| provider.wire).unwrap_or_default(),
                    proxy: proxy(address, secrets),
                    no_proxy: first_text(&["NO_PROXY", "no_proxy"], secrets),
                    ca_file: secrets("SSL_CERT_FILE").filter(|file| !file.is_empty()).map(PathBuf::from),
                    base_url,
                    ..usual
                };
                let mut resolved = ResolvedModel::new(name, connection);
                resolved.provider = speaker;
                resolved.look_up(speaker.map(|provider| provider.name), &model, overrides)?;
                resolved
            }
        };
        let connection = &mut resolved.connection;
        connection.wire = overrides.wire.unwrap_or(connection.wire);
        connection.traits.tool_format = overrides.tool_format.unwrap_or(connection.traits.tool_format);
        resolved.context_tokens = overrides.context_tokens.or(resolved.context_tokens);
        resolved.price = overrides.price.or(resolved.price);
        Ok(resolved)
    }
}

/// Settings that override what is looked up for a model.
#[derive(Clone, Debug, Default)]
pub struct ConnectionOverrides {
    /// Base URL of its server, including the version path.
    pub base_url: Option<String>,
    /// API format of its server.
    pub wire: Option<Wire>,
    /// API key, for whatever server it is on.
    pub api_key: Option<Secret>,
    /// Variable that must hold the key, instead of the provider's.
    pub api_key_variable: Option<String>,
    /// How it makes tool calls.
    pub tool_format: Option<ToolFormat>,
    /// Context size in tokens.
    pub context_tokens: Option<u64>,
    /// Token price.
    pub price: Option<Price>,
    /// Maximum time its server may send nothing.
    pub silence: Option<Duration>,
    /// File name and text of profiles that precede the built-in ones.
    pub profiles: Option<(String, String)>,
    /// File name and text of prices that precede the built-in ones.
    pub prices: Option<(String, String)>,
}

/// A model and everything known about it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ResolvedModel {
    /// PROVIDER:MODEL, an id, local:FILE, script:FILE or replay:FILE.
    pub name: String,
    /// How to reach it.
    pub connection: Connection,
    /// Context size in tokens, if set or known from the profile.
    pub context_tokens: Option<u64>,
    /// Token price, if known.
    pub price: Option<Price>,
    /// Provider, if known.
    pub provider: Option<&'static Provider>,
    /// Its profile, with the sampling options that suit it.
    pub profile: Profile,
}

impl ResolvedModel {
    /// A model about which nothing is known but how to reach it.
    pub fn new(name: impl Into<String>, connection: Connection) -> Self {
        let (context_tokens, price, provider) = (None, None, None);
        Self { name: name.into(), connection, context_tokens, price, provider, profile: Profile::default() }
    }

    /// Request options: what `asked` leaves open comes from the profile.
    pub fn options(&self, asked: RequestOptions) -> RequestOptions {
        RequestOptions {
            temperature: asked.temperature.or(self.profile.temperature),
            top_p: asked.top_p.or(self.profile.top_p),
            max_output_tokens: asked.max_output_tokens.or(self.profile.max_output_tokens),
            reasoning_effort: asked.reasoning_effort.or_else(|| self.profile.reasoning_effort.clone()),
            ..asked
        }
    }

    /// Fills in profile, traits, context size and price from the catalogs.
    fn look_up(
        &mut self,
        provider: Option<&str>,
        model: &str,
        overrides: &ConnectionOverrides,
    ) -> Result<(), OpenError> {
        let (mut profiles, mut prices) = (Profiles::builtin_for(provider)?, Prices::builtin_for(provider)?);
        if let Some((file, text)) = &overrides.profiles {
            profiles.add(file, text)?;
        }
        if let Some((file, text)) = &overrides.prices {
            prices.add(file, text)?;
        }
        self.profile = profiles.resolve(provider, model);
        self.connection.traits = self.profile.traits();
        self.context_tokens = self.profile.context_tokens;
        self.price = prices.find(provider, model);
        Ok(())
    }
}

/// Why a model could not be resolved. Nothing was sent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResolveError {
    /// The name or a catalog is invalid.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The name has no provider, and no base URL is set.
    #[error("no server known for model `{model}`")]
    NoServer {
        /// Name of the model.
        model: String,
    },
    /// `local` without a file.
    #[error("`local` needs a model file")]
    NoFile,
    /// The key of a hosted model is not set.
    #[error("missing API key for model `{model}`: {variable} is not set")]
    MissingKey {
        /// Name of the model.
        model: String,
        /// Variable that usually holds the key.
        variable: String,
    },
    /// A variable holds an invalid base URL.
    #[error("{variable}: {problem}")]
    Url {
        /// Name of the variable.
        variable: String,
        /// Description of the problem.
        problem: UrlError,
    },
}

/// The provider that owns the model's server, and the URL if it is not the provider's default.
fn server(
    name: &str,
    provider: Option<&'static Provider>,
    overrides: &ConnectionOverrides,
    secrets: &dyn Fn(&str) -> Option<OsString>,
) -> Result<(Option<&'static Provider>, Option<String>), ResolveError> {
    if let Some(url) = &overrides.base_url {
        // An API key is sent only to the server it belongs to.
        let owner = || PROVIDERS.iter().find(|provider| host(provider.base_url) == host(url));
        return Ok((provider.or_else(owner), Some(url.clone())));
    }
    if let Some(provider) = provider {
        return Ok((Some(provider), provider.configured_url(secrets)?));
    }
    let openai = Provider::named("openai");
    let url = openai.map(|provider| provider.configured_url(secrets)).transpose()?.flatten();
    match url {
        Some(url) => Ok((openai, Some(url))),
        None if name == LOCAL => Err(ResolveError::NoFile),
        None => Err(ResolveError::NoServer { model: name.to_owned() }),
    }
}

fn key(
    name: &str,
    provider: Option<&Provider>,
    base_url: Option<&str>,
    overrides: &ConnectionOverrides,
    secrets: &dyn Fn(&str) -> Option<OsString>,
) -> Result<Option<Secret>, ResolveError> {
    if overrides.api_key.is_some() {
        return Ok(overrides.api_key.clone());
    }
    let own = overrides.api_key_variable.as_deref();
    let usual = provider.and_then(|provider| provider.key_variable);
    let Some(variable) = own.or(usual) else { return Ok(None) };
    match first_text(&[variable], secrets) {
        Some(key) => Ok(Some(Secret::new(key.trim()))),
        // A self-hosted server may need no key.
        None if own.is_none() && base_url.is_some() => Ok(None),
        None => Err(ResolveError::MissingKey { model: name.to_owned(), variable: variable.to_owned() }),
    }
}

/// Host and port of a URL, with `localhost` normalized to `127.0.0.1`.
fn host(url: &str) -> Option<String> {
    let host = url.split("://").nth(1).and_then(|rest| rest.split('/').next())?;
    Some(host.replace("localhost:", "127.0.0.1:"))
}

/// The proxy for an address, from the usual variables. The loopback interface is never proxied.
fn proxy(address: &str, secrets: &dyn Fn(&str) -> Option<OsString>) -> Option<String> {
    let (scheme, rest) = address.split_once("://")?;
    let host = rest.split(['/', ':']).next().unwrap_or_default();
    if matches!(host, "localhost" | "127.0.0.1" | "[") || rest.starts_with("[::1]") {
        return None;
    }
    match scheme {
        "https" => first_text(&["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"], secrets),
        _ => first_text(&["http_proxy", "HTTP_PROXY", "ALL_PROXY", "all_proxy"], secrets),
    }
}

/// The first of these variables that is set, valid UTF-8 and not empty.
pub(crate) fn first_text(names: &[&str], secrets: &dyn Fn(&str) -> Option<OsString>) -> Option<String> {
    names.iter().find_map(|name| secrets(name)?.into_string().ok().filter(|text| !text.is_empty()))
}
