//! From what a user typed to a model. What was typed is a [`Target`]; what the app knows from flags, files
//! and environment is [`Settings`]; [`Models`] puts the two together and shares connections.

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

/// The wall clock, handed in by the app; only `Retry-After` dates need it.
pub type Clock = fn() -> SystemTime;

/// A model as a user names it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// `script:FILE`, replies written by hand.
    Script(PathBuf),
    /// `replay:FILE`, a cassette.
    Replay(PathBuf),
    /// `local:FILE.gguf`, a model in this process.
    Local(PathBuf),
    /// A model on a server.
    Server {
        /// The word before the colon, if it names a provider.
        provider: Option<&'static Provider>,
        /// The id the server knows it by.
        model: String,
    },
}

/// What a server needs to be reached, gathered by the app.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Settings {
    /// Where the server is, version path included (`http://127.0.0.1:8080/v1`); else the provider's own.
    pub base_url: Option<String>,
    /// Sent as `Authorization: Bearer …`.
    pub api_key: Option<Secret>,
    /// Further headers, values hidden because some are keys.
    pub headers: Vec<(String, Secret)>,
    /// The format the server speaks.
    pub wire: Wire,
    /// What the model's profile says about how it is talked to.
    pub traits: Traits,
    /// A proxy for all requests, if any.
    pub proxy: Option<String>,
    /// Hosts that are reached without the proxy, in the usual comma-separated form.
    pub no_proxy: Option<String>,
    /// A PEM file with further certificate authorities.
    pub ca_file: Option<PathBuf>,
    /// How long a server may say nothing.
    pub silence: Duration,
    /// How large a context a model in this process gets; servers decide that themselves.
    pub context_tokens: Option<u64>,
    /// On how many threads it computes; as many as there are processors for this process, if nobody says.
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
                "tool_format text and schema are for servers that speak chat completions: choose the api `chat`, or \
                 tool_format native"
                    .into(),
            ));
        }
        Ok(Dialect { wire: self.wire, traits: self.traits })
    }
}

/// Why no model could be made from a name and settings. Nothing was sent.
#[derive(Debug, thiserror::Error)]
pub enum ChoiceError {
    /// The name is not one.
    #[error("{0}")]
    Name(String),
    /// A script or cassette cannot be read or is wrong; the message names file, line and column.
    #[error("{0}")]
    File(String),
    /// Something in the settings is wrong or missing.
    #[error("{0}")]
    Settings(String),
}

/// Makes models, and keeps what models share: one connection pool and one rate gate an endpoint, one cursor a
/// script. A process has one of these.
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
    /// No model yet. `clock` is only asked when a server without a clock of its own names a date.
    pub fn new(clock: Clock) -> Self {
        Models { clock, shared: Mutex::default() }
    }

    /// The model `name` stands for. Asked twice for the same, gives the same.
    pub fn open(&self, name: &str, settings: &Settings) -> Result<Arc<dyn Model>, ChoiceError> {
        let target = Target::parse(name)?;
        // Files know no settings: two tasks with different ones still share the file's lines.
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
    /// What the server has that `name`, a model of it, is on. The model itself is not asked for anything.
    pub async fn list(&self, name: &str, settings: &Settings) -> Result<Vec<Listed>, ModelError> {
        let wrong = |error: ChoiceError| ModelError::new(ErrorKind::Invalid, error.to_string());
        let (provider, model) = match Target::parse(name).map_err(wrong)? {
            Target::Server { provider, model } => (provider, model),
            Target::Local(path) => {
                // Its context is known once it is loaded, and nothing is loaded to be listed.
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
    /// Reads `script:FILE`, `replay:FILE`, `local:FILE`, `provider:model` or a plain model name. A word before a colon that
    /// is no provider belongs to the model's name (`qwen2.5-coder:1.5b`).
    pub fn parse(name: &str) -> Result<Target, ChoiceError> {
        let wrong = |what: &str| Err(ChoiceError::Name(format!("`{name}` names no {what}")));
        match name.split_once(':') {
            Some(("script" | "replay", "")) => wrong("file"),
            Some(("local", "")) => wrong("file: say local:PATH.gguf"),
            Some(("script", file)) => Ok(Target::Script(file.into())),
            Some(("replay", file)) => Ok(Target::Replay(file.into())),
            Some(("local", file)) => Ok(Target::Local(file.into())),
            Some((word, model)) => match Provider::named(word) {
                Some(_) if model.is_empty() => wrong("model"),
                Some(provider) => Ok(Target::Server { provider: Some(provider), model: model.into() }),
                None => Ok(Target::Server { provider: None, model: name.into() }),
            },
            None if name.trim().is_empty() => Err(ChoiceError::Name("the model's name is empty".into())),
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
        "`{name}` is a model inside this process, and this binary was built without them: build it with \
         `cargo build --release --features local`, or serve the file with llama.cpp and say llama.cpp:NAME"
    )))
}

/// Whether models in this process are part of this binary.
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
                "no server is known for the model `{model}`: give its base URL, or say PROVIDER:MODEL with one of {}, \
                 script:FILE or replay:FILE",
                names.join(", ")
            )))
        }
    }
}

#[cfg(test)]
mod tests;
