//! The model of a replay: it has a name and a wire format, and nobody ever asks it.

use fusee_model::{
    BoxFuture, CancellationToken, Conversation, Delta, ErrorKind, Model, ModelError, Reply, RequestOptions,
    Wire,
};

use super::Settings;

pub(crate) struct Absent {
    name: String,
    wire: Wire,
}

impl Absent {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self { name: settings.model.clone(), wire: settings.wire }
    }
}

impl Model for Absent {
    fn name(&self) -> &str {
        &self.name
    }

    fn wire(&self) -> Wire {
        self.wire
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
