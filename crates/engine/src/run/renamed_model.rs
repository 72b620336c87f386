//! A model that replaces another in a resumed run. The steps of a run are addressed to the model it started
//! with, so the replacement answers under that name; the events say which model each reply came from.

use std::sync::Arc;

use fusee_model::{
    BoxFuture, CancellationToken, Conversation, Dialect, Model, ModelError, Reply, ReplyDelta, RequestOptions,
};

/// A model that answers under another model's name.
pub(super) struct RenamedModel {
    name: String,
    model: Arc<dyn Model>,
}

impl RenamedModel {
    /// `model` under the name `name`; unchanged if that is its name.
    pub(super) fn called(name: &str, model: Arc<dyn Model>) -> Arc<dyn Model> {
        if model.name() == name { model } else { Arc::new(Self { name: name.to_owned(), model }) }
    }
}

impl Model for RenamedModel {
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
        sink: &'a mut (dyn FnMut(ReplyDelta<'_>) + Send),
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Reply, ModelError>> {
        self.model.send(conversation, options, sink, cancel)
    }

    // `replayed` is not forwarded: the journal holds replies of the other model, and this one has used none.

    fn context_tokens<'a>(&'a self) -> BoxFuture<'a, Option<u64>> {
        self.model.context_tokens()
    }

    fn parameters<'a>(&'a self) -> BoxFuture<'a, Option<f64>> {
        self.model.parameters()
    }

    fn slots<'a>(&'a self) -> BoxFuture<'a, Option<u32>> {
        self.model.slots()
    }
}
