//! From what a user typed to a model. What was typed is a [`Target`]; what the app knows from flags, files
//! and environment is [`Settings`]; [`Models`] puts the two together and shares connections.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::scripted::Script;
use crate::{Model, ModelError, Secret, Wire};

/// The wall clock, handed in by the app; only `Retry-After` dates need it.
pub type Clock = fn() -> SystemTime;

/// A model as a user names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// `script:FILE`, replies written by hand.
    Script(PathBuf),
    /// `replay:FILE`, a cassette.
    Replay(PathBuf),
    /// A model on a server.
    Server {
        /// The word before the colon, if there was one.
        provider: Option<String>,
        /// The id the server knows it by.
        model: String,
    },
}

/// What a server needs to be reached, gathered by the app.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Settings {
    /// Where the server is, version path included (`http://127.0.0.1:8080/v1`).
    pub base_url: Option<String>,
    /// Sent as `Authorization: Bearer …`.
    pub api_key: Option<Secret>,
    /// Further headers, values hidden because some are keys.
    pub headers: Vec<(String, Secret)>,
    /// The format the server speaks.
    pub wire: Wire,
    /// A proxy for all requests, if any.
    pub proxy: Option<String>,
    /// Hosts that are reached without the proxy, in the usual comma-separated form.
    pub no_proxy: Option<String>,
    /// A PEM file with further certificate authorities.
    pub ca_file: Option<PathBuf>,
    /// How long a server may say nothing.
    pub silence: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            base_url: None,
            api_key: None,
            headers: Vec::new(),
            wire: Wire::Chat,
            proxy: None,
            no_proxy: None,
            ca_file: None,
            silence: Duration::from_secs(300),
        }
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
    _clock: Clock,
}

impl Models {
    /// No model yet.
    pub fn new(clock: Clock) -> Self {
        Models { _clock: clock }
    }

    /// The model `name` stands for. Asked twice for the same, gives models that share their connections.
    pub fn open(&self, name: &str, settings: &Settings) -> Result<Arc<dyn Model>, ChoiceError> {
        let _ = settings;
        match Target::parse(name)? {
            Target::Script(path) => Ok(Arc::new(Script::open(name, &path)?)),
            Target::Replay(_) | Target::Server { .. } => Err(ChoiceError::Name(name.into())),
        }
    }
}

impl Target {
    /// Reads `script:FILE`, `replay:FILE`, `provider:model` or a plain model name.
    pub fn parse(name: &str) -> Result<Target, ChoiceError> {
        match name.split_once(':') {
            Some(("script", file)) => Ok(Target::Script(file.into())),
            Some(("replay", file)) => Ok(Target::Replay(file.into())),
            Some((provider, model)) => {
                Ok(Target::Server { provider: Some(provider.into()), model: model.into() })
            }
            None => Ok(Target::Server { provider: None, model: name.into() }),
        }
    }
}

impl From<ModelError> for ChoiceError {
    fn from(error: ModelError) -> Self {
        ChoiceError::Settings(error.message)
    }
}
