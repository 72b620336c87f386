//! Placeholder model for replays and for workflows without tasks: it has a name and a wire format but is
//! never called.

use std::collections::BTreeMap;
use std::sync::Arc;

use fusee_model::{
    BoxFuture, CancellationToken, Conversation, Dialect, ErrorKind, Model, ModelError, Reply, ReplyDelta,
    RequestOptions,
};

use super::RunSpec;
use crate::agent::PricedModel;

pub(crate) struct NoModel {
    name: String,
    dialect: Dialect,
}

impl NoModel {
    pub(crate) fn new(settings: &RunSpec) -> Self {
        let dialect = Dialect { wire: settings.wire, traits: settings.traits };
        Self { name: settings.model.clone(), dialect }
    }
}

/// Model name of a run that needs no model.
pub const NO_MODEL: &str = "none";

/// Returns the placeholder model named [`NO_MODEL`].
pub fn no_model() -> Arc<dyn Model> {
    Arc::new(NoModel { name: NO_MODEL.to_owned(), dialect: Dialect::default() })
}

/// Returns placeholders for the models named by stages.
pub(crate) fn stage_models(settings: &RunSpec) -> BTreeMap<String, PricedModel> {
    let names = settings.flow.other_models().map(|(_, name)| name.to_owned());
    let absent = |name: &String| NoModel { name: name.clone(), ..NoModel::new(settings) };
    let priced = |name: &String| PricedModel { model: Arc::new(absent(name)), price: None };
    names.map(|name| (name.clone(), priced(&name))).collect()
}

impl Model for NoModel {
    fn name(&self) -> &str {
        &self.name
    }

    fn dialect(&self) -> Dialect {
        self.dialect
    }

    fn send<'a>(
        &'a self,
        _conversation: &'a Conversation,
        _options: &'a RequestOptions,
        _sink: &'a mut (dyn FnMut(ReplyDelta<'_>) + Send),
        _cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Reply, ModelError>> {
        Box::pin(async { Err(ModelError::new(ErrorKind::Exhausted, "this run has no model")) })
    }
}
