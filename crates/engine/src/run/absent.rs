//! The model of a replay: it has a name and a wire format, and nobody ever asks it.

use fusee_model::{
    BoxFuture, CancellationToken, Conversation, Delta, Dialect, ErrorKind, Model, ModelError, Reply,
    RequestOptions,
};

use super::Settings;

pub(crate) struct Absent {
    name: String,
    dialect: Dialect,
}

impl Absent {
    pub(crate) fn new(settings: &Settings) -> Self {
        let dialect = Dialect { wire: settings.wire, traits: settings.traits };
        Self { name: settings.model.clone(), dialect }
    }
}

impl Model for Absent {
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
        _sink: &'a mut (dyn FnMut(Delta<'_>) + Send),
        _cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Reply, ModelError>> {
        Box::pin(async { Err(ModelError::new(ErrorKind::Exhausted, "a replay asks no model")) })
    }
}
