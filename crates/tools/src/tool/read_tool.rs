//! Adapter for read-only tools: each is one function from arguments to an answer.
//!
//! Reading blocks on the disk, so it runs on a blocking thread and never on the engine's own threads.

use futures_util::future::BoxFuture;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::tool::{CallContext, PreparedCall, RetrySafety, Tool, ToolDefinition, ToolOutput};

/// The read operation of one tool.
pub(crate) trait ReadTool: Send + Sync + 'static {
    type Arguments: DeserializeOwned + Send + 'static;

    fn look(arguments: Self::Arguments, context: &CallContext) -> ToolOutput;
}

/// The [`Tool`] built from a [`ReadTool`] implementation.
pub(crate) struct ReadToolAdapter<L> {
    definition: ToolDefinition,
    way: std::marker::PhantomData<L>,
}

impl<L: ReadTool> ReadToolAdapter<L> {
    pub(crate) fn new(definition: ToolDefinition) -> Self {
        Self { definition, way: std::marker::PhantomData }
    }
}

impl<L: ReadTool> Tool for ReadToolAdapter<L> {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn repeat(&self) -> RetrySafety {
        RetrySafety::Idempotent
    }

    fn prepare<'a>(
        &'a self,
        arguments: Value,
        _context: &'a CallContext,
    ) -> BoxFuture<'a, Result<PreparedCall, ToolOutput>> {
        Box::pin(async { Ok(PreparedCall::new(Value::Null, typed::<L::Arguments>(arguments)?)) })
    }

    fn perform<'a>(&'a self, prepared: PreparedCall, context: &'a CallContext) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async {
            match prepared.into_plan::<L::Arguments>() {
                Ok(arguments) => run_blocking(context, |context| L::look(arguments, context)).await,
                Err(output) => output,
            }
        })
    }
}

/// Deserializes arguments that already fit the schema.
pub(crate) fn typed<A: DeserializeOwned>(arguments: Value) -> Result<A, ToolOutput> {
    serde_json::from_value(arguments)
        .map_err(|error| ToolOutput::error(format!("The arguments do not fit: {error}.")))
}

/// Runs blocking work on a separate thread; reports cancellation and panics as failures.
pub(crate) async fn run_blocking<O: ReadOutcome>(
    context: &CallContext,
    work: impl FnOnce(&CallContext) -> O + Send + 'static,
) -> O {
    if context.cancel.is_cancelled() {
        return O::from_failure(ToolOutput::aborted("Cancelled before it began."));
    }
    let context = context.clone();
    match tokio::task::spawn_blocking(move || work(&context)).await {
        Ok(outcome) => outcome,
        Err(_) => O::from_failure(ToolOutput::error(
            "The tool itself failed; this is a defect in it. Try another way.",
        )),
    }
}

/// A result type through which [`run_blocking`] can report its own failures.
pub(crate) trait ReadOutcome: Send + 'static {
    fn from_failure(output: ToolOutput) -> Self;
}

impl ReadOutcome for ToolOutput {
    fn from_failure(output: ToolOutput) -> Self {
        output
    }
}

impl<T: Send + 'static> ReadOutcome for Result<T, ToolOutput> {
    fn from_failure(output: ToolOutput) -> Self {
        Err(output)
    }
}
