//! A model that goes on in another's place. The steps of a run are addressed to the model it began with, so the one
//! that takes over answers under that name; what each reply came from is in the events.

use std::sync::Arc;

use fusee_engine::model::{
    BoxFuture, CancellationToken, Conversation, Delta, Dialect, Model, ModelError, Reply, RequestOptions,
};

/// Answers under the name of another.
pub(crate) struct StandIn {
    name: String,
    model: Arc<dyn Model>,
}

impl StandIn {
    /// `model`, called `name`; itself if that is its name.
    pub(crate) fn called(name: &str, model: Arc<dyn Model>) -> Arc<dyn Model> {
        if model.name() == name { model } else { Arc::new(Self { name: name.to_owned(), model }) }
    }
}

impl Model for StandIn {
    fn name(&self) -> &str {
        &self.name
    }

    fn dialect(&self) -> Dialect {
        self.model.dialect()
    }

    fn send<'a>(
        &'a self,
        conversation: &'a Conversation,
        options: &'a RequestOptions,
        sink: &'a mut (dyn FnMut(Delta<'_>) + Send),
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Reply, ModelError>> {
        self.model.send(conversation, options, sink, cancel)
    }

    // What the journal holds are replies of the other model: this one has used up none of its own.

    fn context_tokens<'a>(&'a self) -> BoxFuture<'a, Option<u64>> {
        self.model.context_tokens()
    }
}
