//! Opens the model a user named. [`Target`] is the parsed name; [`Settings`] holds what the app gathered from
//! flags, files and environment; [`Models`] combines the two and shares connections.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use crate::http::HttpModel;
use crate::http::catalog::{self, Listed};
use crate::http::endpoint::Endpoint;
use crate::profile::{ToolFormat, Traits};
use crate::provider::{PROVIDERS, Provider};
use crate::recorded::Cassette;
use crate::scripted::Script;
use crate::{Dialect, ErrorKind, Model, ModelError, Secret, Wire};

/// Wall clock, injected by the app; needed only for `Retry-After` dates.
pub type Clock = fn() -> SystemTime;

/// A model as named by the user.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// `script:FILE`: hand-written replies.
    Script(PathBuf),
    /// `replay:FILE`: a cassette.
    Replay(PathBuf),
    /// `local:FILE.gguf`: an in-process model.
    Local(PathBuf),
    /// A model on a server.
    Server {
        /// Provider named before the colon, if any.
        provider: Option<&'static Provider>,
        /// Model id on the server.
        model: String,
    },
}

/// Connection settings of a server, gathered by the app.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Settings {
    /// Base URL including the version path (`http://127.0.0.1:8080/v1`); defaults to the provider's.
    pub base_url: Option<String>,
    /// Sent as `Authorization: Bearer …`.
    pub api_key: Option<Secret>,
    /// Additional headers. Values are redacted, because some are keys.
    pub headers: Vec<(String, Secret)>,
    /// API format of the server.
    pub wire: Wire,
    /// Traits from the model's profile.
    pub traits: Traits,
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

impl Default for Settings {
    fn default() -> Self {
        Settings {
            base_url: None,
            api_key: None,
            headers: Vec::new(),
            wire: Wire::Chat,
            traits: Traits::default(),
            proxy: None,
            no_proxy: None,
            ca_file: None,
            silence: Duration::from_secs(300),
            context_tokens: None,
            threads: None,
        }
    }
}

impl Settings {
    fn dialect(&self) -> Result<Dialect, ChoiceError> {
        if self.traits.tool_format != ToolFormat::Native && self.wire != Wire::Chat {
            return Err(ChoiceError::Settings(
                "tool_format text and schema require the chat completions API; set api to `chat`, or tool_format to \
                 native"
                    .into(),
            ));
        }
        Ok(Dialect { wire: self.wire, traits: self.traits })
    }
}

/// Why a model could not be opened. Nothing was sent.
#[derive(Debug, thiserror::Error)]
pub enum ChoiceError {
    /// The model name is invalid.
    #[error("{0}")]
    Name(String),
    /// A script or cassette is unreadable or invalid; the message names file, line and column.
    #[error("{0}")]
    File(String),
    /// A setting is invalid or missing.
    #[error("{0}")]
    Settings(String),
}

/// Opens models and owns what they share: one connection pool and rate gate per endpoint, one cursor per
/// script. There is one instance per process.
pub struct Models {
    clock: Clock,
    shared: Mutex<Shared>,
}

#[derive(Default)]
struct Shared {
    models: HashMap<(Target, Settings), Arc<dyn Model>>,
    endpoints: HashMap<(String, Settings), Arc<Endpoint>>,
}

impl Models {
    /// Creates an empty registry. `clock` is used only if a server sends a date without a `Date` header.
    pub fn new(clock: Clock) -> Self {
        Models { clock, shared: Mutex::default() }
    }

    /// Opens the model called `name`. Equal arguments return the same instance.
    pub fn open(&self, name: &str, settings: &Settings) -> Result<Arc<dyn Model>, ChoiceError> {
        let target = Target::parse(name)?;
        // Scripts and cassettes have no settings: tasks with different settings share the file's cursor.
        let settings = match target {
            Target::Script(_) | Target::Replay(_) => Settings::default(),
            Target::Local(_) | Target::Server { .. } => settings.clone(),
        };
        let key = (target, settings);
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(model) = shared.models.get(&key) {
            return Ok(model.clone());
        }
        let (target, settings) = &key;
        let model: Arc<dyn Model> = match target {
            Target::Script(path) => Arc::new(Script::open(name, path)?),
            Target::Replay(path) => Arc::new(Cassette::open(name, path)?),
            Target::Local(path) => local(name, path, settings)?,
            Target::Server { provider, model } => {
                let endpoint =
                    shared.endpoint(&base_url(*provider, model, settings)?, settings, self.clock)?;
                Arc::new(HttpModel::new(name, model, settings.dialect()?, endpoint))
            }
        };
        shared.models.insert(key, model.clone());
        Ok(model)
    }
}

impl Models {
    /// Lists the models of the server that hosts `name`. Sends no request to the model itself.
    pub async fn list(&self, name: &str, settings: &Settings) -> Result<Vec<Listed>, ModelError> {
        let wrong = |error: ChoiceError| ModelError::new(ErrorKind::Invalid, error.to_string());
        let (provider, model) = match Target::parse(name).map_err(wrong)? {
            Target::Server { provider, model } => (provider, model),
            Target::Local(path) => {
                // The context size is known only after loading, and listing must not load the model.
                let size_bytes = std::fs::metadata(&path).ok().map(|found| found.len());
                return Ok(vec![Listed { id: path.display().to_string(), size_bytes, context_tokens: None }]);
            }
            Target::Script(_) | Target::Replay(_) => return Ok(Vec::new()),
        };
        let endpoint = {
            let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
            base_url(provider, &model, settings)
                .and_then(|url| shared.endpoint(&url, settings, self.clock))
                .map_err(wrong)?
        };
        catalog::list(&endpoint).await
    }
}

impl Shared {
    fn endpoint(
        &mut self,
        base_url: &str,
        settings: &Settings,
        clock: Clock,
    ) -> Result<Arc<Endpoint>, ChoiceError> {
        let key = (base_url.to_owned(), settings.clone());
        if let Some(endpoint) = self.endpoints.get(&key) {
            return Ok(endpoint.clone());
        }
        let endpoint = Arc::new(Endpoint::new(base_url, settings, clock)?);
        self.endpoints.insert(key, endpoint.clone());
        Ok(endpoint)
    }
}

impl Target {
    /// Parses `script:FILE`, `replay:FILE`, `local:FILE`, `provider:model` or a plain model name. A prefix
    /// that is not a provider is part of the model's name (`qwen2.5-coder:1.5b`).
    pub fn parse(name: &str) -> Result<Target, ChoiceError> {
        let wrong = |what: &str| Err(ChoiceError::Name(format!("invalid model name `{name}`: missing {what}")));
        match name.split_once(':') {
            Some(("script" | "replay", "")) => wrong("file"),
            Some(("local", "")) => wrong("file; use local:PATH.gguf"),
            Some(("script", file)) => Ok(Target::Script(file.into())),
            Some(("replay", file)) => Ok(Target::Replay(file.into())),
            Some(("local", file)) => Ok(Target::Local(file.into())),
            Some((word, model)) => match Provider::named(word) {
                Some(_) if model.is_empty() => wrong("model"),
                Some(provider) => Ok(Target::Server { provider: Some(provider), model: model.into() }),
                None => Ok(Target::Server { provider: None, model: name.into() }),
            },
            None if name.trim().is_empty() => Err(ChoiceError::Name("the model name is empty".into())),
            None => Ok(Target::Server { provider: None, model: name.into() }),
        }
    }
}

#[cfg(feature = "local")]
fn local(name: &str, path: &std::path::Path, settings: &Settings) -> Result<Arc<dyn Model>, ChoiceError> {
    let dialect = Settings { wire: Wire::Chat, ..settings.clone() }.dialect()?;
    Ok(Arc::new(crate::local::LocalModel::open(name, path, dialect, settings)?))
}

#[cfg(not(feature = "local"))]
fn local(name: &str, _: &std::path::Path, _: &Settings) -> Result<Arc<dyn Model>, ChoiceError> {
    Err(ChoiceError::Settings(format!(
        "`{name}` is an in-process model, but this binary was built without support for them; build it with \
         `cargo build --release --features local`, or serve the file with llama.cpp and use llama.cpp:NAME"
    )))
}

/// Whether this binary was built with in-process models.
pub const fn has_local_models() -> bool {
    cfg!(feature = "local")
}

fn base_url(provider: Option<&Provider>, model: &str, settings: &Settings) -> Result<String, ChoiceError> {
    match (&settings.base_url, provider) {
        (Some(given), _) => Ok(given.clone()),
        (None, Some(provider)) => Ok(provider.base_url.to_owned()),
        (None, None) => {
            let names: Vec<_> = PROVIDERS.iter().map(|provider| provider.name).collect();
            Err(ChoiceError::Settings(format!(
                "no server known for model `{model}`; set its base URL, or use PROVIDER:MODEL with one of {}, \
                 script:FILE or replay:FILE",
                names.join(", ")
            )))
        }
    }
}

#[cfg(test)]
mod tests;
