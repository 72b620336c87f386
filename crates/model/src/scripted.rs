//! Scripted replies.

use std::path::Path;

use crate::{
    BoxFuture, CancellationToken, ChoiceError, Conversation, Delta, ErrorKind, Model, ModelError, Reply,
    RequestOptions, Wire,
};

/// A script.
pub struct Script {
    name: String,
}

impl Script {
    /// Reads a script.
    pub fn open(name: &str, _path: &Path) -> Result<Script, ChoiceError> {
        Ok(Script { name: name.into() })
    }
}

impl Model for Script {
    fn name(&self) -> &str {
        &self.name
    }

    fn wire(&self) -> Wire {
        Wire::Chat
    }

    fn send<'a>(
        &'a self,
        _: &'a Conversation,
        _: &'a RequestOptions,
        _: &'a mut (dyn FnMut(Delta<'_>) + Send),
        _: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Reply, ModelError>> {
        Box::pin(async { Err(ModelError::new(ErrorKind::Exhausted, "no line left")) })
    }
}
