//! The interface between the engine and a model, whether server, script, cassette or in-process model.

use std::pin::Pin;

use tokio_util::sync::CancellationToken;

use crate::{Conversation, Dialect, ModelError, Reply, RequestOptions};

/// A boxed `Send` future, as returned by trait objects.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A language model. Shared by all tasks of a process that use it.
pub trait Model: Send + Sync {
    /// Name as given by the user.
    fn name(&self) -> &str;

    /// Encoding of conversations for this model.
    fn dialect(&self) -> Dialect;

    /// Makes one attempt: sends the conversation, passes every fragment to `sink` as it arrives, and returns
    /// the complete reply. Never retries. Returns promptly with `Cancelled` once `cancel` fires.
    fn send<'a>(
        &'a self,
        conversation: &'a Conversation,
        options: &'a RequestOptions,
        sink: &'a mut (dyn FnMut(ReplyDelta<'_>) + Send),
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Reply, ModelError>>;

    /// Reports a journaled attempt on resume. Called for every attempt, including failed ones, in any order,
    /// so that a scripted model continues after the lines already used.
    fn replayed(&self, attempt: Result<&Reply, &ModelError>) {
        let _ = attempt;
    }

    /// Size of the context window, if the server reports it. Queried at most once, with a short timeout.
    fn context_tokens<'a>(&'a self) -> BoxFuture<'a, Option<u64>> {
        Box::pin(async { None })
    }

    /// Billions of parameters, if the server reports them. With a short timeout.
    fn parameters<'a>(&'a self) -> BoxFuture<'a, Option<f64>> {
        Box::pin(async { None })
    }

    /// Number of requests that the server works on at once, if it says so. With a short timeout.
    fn slots<'a>(&'a self) -> BoxFuture<'a, Option<u32>> {
        Box::pin(async { None })
    }
}

/// A fragment of a streamed reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyDelta<'a> {
    /// The request is delayed by the endpoint's rate gate.
    Waiting {
        /// Approximate delay in milliseconds.
        ms: u64,
    },
    /// The first byte of the reply arrived.
    Started,
    /// More of the visible text.
    Text(&'a str),
    /// More of the reasoning.
    Reasoning(&'a str),
    /// A tool call starts; its name is complete.
    ToolCall {
        /// Index among the reply's tool calls.
        index: usize,
        /// Name of the tool.
        name: &'a str,
    },
    /// More of a tool call's arguments.
    ToolArguments {
        /// Index among the reply's tool calls.
        index: usize,
        /// Next fragment of the JSON text.
        fragment: &'a str,
    },
}
