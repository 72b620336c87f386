//! The seam between the engine and whatever answers: a server, a script, a cassette.

use std::pin::Pin;

use tokio_util::sync::CancellationToken;

use crate::{Conversation, Dialect, ModelError, Reply, RequestOptions};

/// A future that can be stored in a trait object's return type.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Something that answers conversations. Shared by all tasks of a process that use it.
pub trait Model: Send + Sync {
    /// What the user called it.
    fn name(&self) -> &str;

    /// The form in which conversations for this model are encoded.
    fn dialect(&self) -> Dialect;

    /// One attempt: sends the conversation, tells `sink` about every piece as it arrives, and gives the whole
    /// reply. Never retries. Returns promptly with `Cancelled` once `cancel` fires.
    fn send<'a>(
        &'a self,
        conversation: &'a Conversation,
        options: &'a RequestOptions,
        sink: &'a mut (dyn FnMut(Delta<'_>) + Send),
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Reply, ModelError>>;

    /// Told on resume about every attempt the journal holds, failed ones included, in any order: a scripted
    /// model goes on after the lines they took.
    fn replayed(&self, attempt: Result<&Reply, &ModelError>) {
        let _ = attempt;
    }

    /// The size of the context window, where the server tells. Asked at most once, with a short time limit.
    fn context_tokens<'a>(&'a self) -> BoxFuture<'a, Option<u64>> {
        Box::pin(async { None })
    }
}

/// A piece of a reply as it arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delta<'a> {
    /// The request is held back because the endpoint asked everyone to wait.
    Waiting {
        /// For about so long.
        ms: u64,
    },
    /// The first byte of the reply came.
    Started,
    /// More of the visible answer.
    Text(&'a str),
    /// More of the reasoning.
    Reasoning(&'a str),
    /// A call begins; its name is complete.
    ToolCall {
        /// Position among the reply's calls.
        index: usize,
        /// The tool's name.
        name: &'a str,
    },
    /// More of a call's arguments.
    ToolArguments {
        /// Position among the reply's calls.
        index: usize,
        /// The next piece of the JSON text.
        fragment: &'a str,
    },
}
