//! Opens the model a user named. [`ModelRef`] is the parsed name; [`Connection`] says how to reach it; [`Models`]
//! combines the two and shares connections.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use parking_lot::Mutex;

use crate::cassette::Cassette;
use crate::connection::provider::{PROVIDERS, Provider};
use crate::http::HttpModel;
use crate::http::endpoint::Endpoint;
use crate::http::list_models::{self, ServedModel};
use crate::script::Script;
use crate::{Connection, ErrorKind, Model, ModelError};

/// Wall clock, injected by the app; needed only for `Retry-After` dates.
pub type WallClock = fn() -> SystemTime;

/// A model as named by the user.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ModelRef {
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

/// Why a model could not be opened. Nothing was sent.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
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
    clock: WallClock,
    shared: Mutex<SharedEndpoint>,
}

#[derive(Default)]
struct SharedEndpoint {
    models: HashMap<(ModelRef, Connection), Arc<dyn Model>>,
    endpoints: HashMap<(String, Connection), Arc<Endpoint>>,
}

impl Models {
    /// Creates an empty registry. `clock` is used only if a server sends a date without a `Date` header.
    pub fn new(clock: WallClock) -> Self {
        Models { clock, shared: Mutex::default() }
    }

    /// Opens the model called `name`. Equal arguments return the same instance.
    pub fn open(&self, name: &str, settings: &Connection) -> Result<Arc<dyn Model>, OpenError> {
        let target = ModelRef::parse(name)?;
        let silence = settings.silence;
        // Scripts and cassettes have no connection: tasks with different settings share the file's cursor, and the
        // patience of the first.
        let settings = match target {
            ModelRef::Script(_) | ModelRef::Replay(_) => Connection::default(),
            ModelRef::Local(_) | ModelRef::Server { .. } => settings.clone(),
        };
        let key = (target, settings);
        let mut shared = self.shared.lock();
        if let Some(model) = shared.models.get(&key) {
            return Ok(model.clone());
        }
        let (target, settings) = &key;
        let model: Arc<dyn Model> = match target {
            ModelRef::Script(path) => Arc::new(Script::open(name, path)?.with_silence(silence)),
            ModelRef::Replay(path) => Arc::new(Cassette::open(name, path)?),
            ModelRef::Local(path) => local(name, path, settings)?,
            ModelRef::Server { provider, model } => {
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
    pub async fn list(&self, name: &str, settings: &Connection) -> Result<Vec<ServedModel>, ModelError> {
        let wrong = |error: OpenError| ModelError::new(ErrorKind::Invalid, error.to_string());
        let (provider, model) = match ModelRef::parse(name).map_err(wrong)? {
            ModelRef::Server { provider, model } => (provider, model),
            ModelRef::Local(path) => {
                // The context size is known only after loading, and listing must not load the model.
                let size_bytes = std::fs::metadata(&path).ok().map(|found| found.len());
                return Ok(vec![ServedModel {
                    id: path.display().to_string(),
                    size_bytes,
                    context_tokens: None,
                }]);
            }
            ModelRef::Script(_) | ModelRef::Replay(_) => return Ok(Vec::new()),
        };
        let endpoint = {
            let mut shared = self.shared.lock();
            base_url(provider, &model, settings)
                .and_then(|url| shared.endpoint(&url, settings, self.clock))
                .map_err(wrong)?
        };
        list_models::list(&endpoint).await
    }
}

impl SharedEndpoint {
    fn endpoint(
        &mut self,
        base_url: &str,
        settings: &Connection,
        clock: WallClock,
    ) -> Result<Arc<Endpoint>, OpenError> {
        let key = (base_url.to_owned(), settings.clone());
        if let Some(endpoint) = self.endpoints.get(&key) {
            return Ok(endpoint.clone());
        }
        let endpoint = Arc::new(Endpoint::new(base_url, settings, clock)?);
        self.endpoints.insert(key, endpoint.clone());
        Ok(endpoint)
    }
}

impl ModelRef {
    /// Parses `script:FILE`, `replay:FILE`, `local:FILE`, `provider:model` or a plain model name. A prefix
    /// that is not a provider is part of the model's name (`qwen2.5-coder:1.5b`).
    pub fn parse(name: &str) -> Result<ModelRef, OpenError> {
        let wrong = |what: &str| Err(OpenError::Name(format!("invalid model name `{name}`: missing {what}")));
        match name.split_once(':') {
            Some(("script" | "replay", "")) => wrong("file"),
            Some(("local", "")) => wrong("file; use local:PATH.gguf"),
            Some(("script", file)) => Ok(ModelRef::Script(file.into())),
            Some(("replay", file)) => Ok(ModelRef::Replay(file.into())),
            Some(("local", file)) => Ok(ModelRef::Local(file.into())),
            Some((word, model)) => match Provider::named(word) {
                Some(_) if model.is_empty() => wrong("model"),
                Some(provider) => Ok(ModelRef::Server { provider: Some(provider), model: model.into() }),
                None => Ok(ModelRef::Server { provider: None, model: name.into() }),
            },
            None if name.trim().is_empty() => Err(OpenError::Name("the model name is empty".into())),
            None => Ok(ModelRef::Server { provider: None, model: name.into() }),
        }
    }
}

#[cfg(feature = "local")]
fn local(name: &str, path: &std::path::Path, settings: &Connection) -> Result<Arc<dyn Model>, OpenError> {
    let dialect = Connection { wire: crate::Wire::Chat, ..settings.clone() }.dialect()?;
    Ok(Arc::new(crate::local::LocalModel::open(name, path, dialect, settings)?))
}

#[cfg(not(feature = "local"))]
fn local(name: &str, _: &std::path::Path, _: &Connection) -> Result<Arc<dyn Model>, OpenError> {
    Err(OpenError::Settings(format!(
        "`{name}` is an in-process model, but this binary was built without support for them; build it with \
         `cargo build --release --features local`, or serve the file with llama.cpp and use llama.cpp:NAME"
    )))
}

/// Whether this binary was built with in-process models.
pub const fn has_local_models() -> bool {
    cfg!(feature = "local")
}

fn base_url(provider: Option<&Provider>, model: &str, settings: &Connection) -> Result<String, OpenError> {
    match (&settings.base_url, provider) {
        (Some(given), _) => Ok(given.clone()),
        (None, Some(provider)) => Ok(provider.base_url.to_owned()),
        (None, None) => {
            let names: Vec<_> = PROVIDERS.iter().map(|provider| provider.name).collect();
            Err(OpenError::Settings(format!(
                "no server known for model `{model}`; set its base URL, or use PROVIDER:MODEL with one of {}, \
                 script:FILE or replay:FILE",
                names.join(", ")
            )))
        }
    }
}

#[cfg(test)]
mod tests;
