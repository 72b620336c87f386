//! Which model answers, where it is and with which key: from what was typed and configured to what the model
//! crate opens.

use std::path::Path;
use std::sync::Arc;

use fusee_model::{Model, Models, Recorder, Settings, Target};

use crate::arguments::shared::ModelFlags;
use crate::clock;
use crate::environment::Environment;
use crate::failure::Failure;

/// A model that was chosen and not yet opened.
pub(crate) struct Choice {
    /// As the user named it.
    pub(crate) name: String,
    /// How it is reached.
    pub(crate) settings: Settings,
}

impl Choice {
    /// Puts together what was said.
    pub(crate) fn make(flags: &ModelFlags, environment: &Environment) -> Result<Self, Failure> {
        let name = flags
            .model
            .clone()
            .ok_or_else(|| Failure::usage("no model is chosen").help("name one with -m"))?;
        let provider = match Target::parse(&name)? {
            Target::Server { provider, .. } => provider,
            Target::Script(_) | Target::Replay(_) => None,
        };
        let api_key =
            provider.and_then(|provider| provider.key_variable).and_then(|name| environment.secret(name));
        let settings = Settings {
            base_url: flags.base_url.clone(),
            api_key,
            wire: flags.api.map_or_else(Default::default, Into::into),
            ..Settings::default()
        };
        Ok(Self { name, settings })
    }

    /// Opens it, recorded into a cassette if one is given.
    pub(crate) fn open(&self, record: Option<&Path>) -> Result<Arc<dyn Model>, Failure> {
        let model = Models::new(clock::now).open(&self.name, &self.settings)?;
        match record {
            Some(path) => Ok(Arc::new(Recorder::open(model, path)?)),
            None => Ok(model),
        }
    }
}
