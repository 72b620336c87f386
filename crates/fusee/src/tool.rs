//! Tools from async functions: the argument type gives the JSON Schema, the result becomes the answer.

use std::borrow::Cow;
use std::fmt;
use std::future::Future;

use fusee_engine::model::BoxFuture;
use fusee_engine::tools::{
    Access, CallContext, InterruptedOutcome, PreparedCall, RetrySafety, Tool, ToolDefinition, ToolOutput,
};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Effect of a tool outside the conversation. It decides whether a call needs approval, whether it is allowed in a
/// review, and what happens to a call that a crash interrupted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Effects {
    /// It only looks something up. An interrupted call is made again.
    ReadOnly,
    /// It changes something, and doing so twice is the same as once. An interrupted call is made again.
    Idempotent,
    /// It changes something. An interrupted call is not made again: the model is told that its outcome is unknown.
    #[default]
    Once,
}

/// Why a tool failed, for the model. Any error that can be displayed converts into it, so `?` and
/// `Err("not found".into())` work.
#[derive(Debug)]
pub struct ToolError(String);

impl<E: fmt::Display> From<E> for ToolError {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

type Perform<A> = Box<dyn Fn(A) -> BoxFuture<'static, Result<String, ToolError>> + Send + Sync>;

/// A tool made of an async function.
pub struct FnTool<A> {
    definition: ToolDefinition,
    effects: Effects,
    perform: Perform<A>,
}

/// Makes a tool of an async function. The model sees `name`, `description` and the JSON Schema of the argument
/// type, whose doc comments describe its fields. A string is answered as it is, any other value as JSON.
///
/// ```
/// # use fusee::{Effects, tool};
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Read {
///     /// Path of the file.
///     path: String,
/// }
///
/// let read = tool("read_notes", "Reads a file of notes.", |Read { path }| async move {
///     if path.is_empty() {
///         return Err("the path is empty".into());
///     }
///     Ok(std::fs::read_to_string(path)?)
/// })
/// .effects(Effects::ReadOnly);
/// # let _ = read;
/// ```
pub fn tool<A, R, F, Fut>(
    name: impl Into<Cow<'static, str>>,
    description: impl Into<Cow<'static, str>>,
    perform: F,
) -> FnTool<A>
where
    A: DeserializeOwned + JsonSchema + Send + 'static,
    R: Serialize,
    F: Fn(A) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<R, ToolError>> + Send + 'static,
{
    let perform: Perform<A> = Box::new(move |arguments| {
        let result = perform(arguments);
        Box::pin(async move {
            match serde_json::to_value(result.await?)? {
                Value::String(text) => Ok(text),
                other => Ok(other.to_string()),
            }
        })
    });
    let definition = ToolDefinition {
        name: name.into(),
        description: description.into(),
        parameters: schema_of::<A>(),
        category: Access::Write,
        aliases: &[],
        parameter_aliases: &[],
    };
    FnTool { definition, effects: Effects::Once, perform }
}

impl<A> FnTool<A> {
    /// Says what the tool does outside the conversation [default: [`Effects::Once`]].
    #[must_use]
    pub fn effects(mut self, effects: Effects) -> Self {
        self.effects = effects;
        self.definition.category = match effects {
            Effects::ReadOnly => Access::Read,
            Effects::Idempotent | Effects::Once => Access::Write,
        };
        self
    }
}

impl<A: DeserializeOwned + Send + 'static> Tool for FnTool<A> {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn repeat(&self) -> RetrySafety {
        match self.effects {
            Effects::ReadOnly | Effects::Idempotent => RetrySafety::Idempotent,
            Effects::Once => RetrySafety::Verifiable,
        }
    }

    fn prepare<'a>(
        &'a self,
        arguments: Value,
        _context: &'a CallContext,
    ) -> BoxFuture<'a, Result<PreparedCall, ToolOutput>> {
        Box::pin(async move {
            match A::deserialize(&arguments) {
                Ok(plan) => Ok(PreparedCall::new(Value::Null, plan)),
                Err(error) => Err(ToolOutput::error(format!("Invalid arguments: {error}"))),
            }
        })
    }

    fn perform<'a>(&'a self, prepared: PreparedCall, context: &'a CallContext) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move {
            let arguments = match prepared.into_plan::<A>() {
                Ok(arguments) => arguments,
                Err(output) => return output,
            };
            tokio::select! {
                result = (self.perform)(arguments) => match result {
                    Ok(content) => ToolOutput::done(content),
                    Err(ToolError(problem)) => ToolOutput::error(problem),
                },
                () = context.cancel.cancelled() => ToolOutput::aborted("The call was cancelled."),
            }
        })
    }

    fn settle<'a>(
        &'a self,
        _arguments: &'a Value,
        _intent: &'a Value,
        _context: &'a CallContext,
    ) -> BoxFuture<'a, InterruptedOutcome> {
        Box::pin(async move {
            match self.effects {
                Effects::ReadOnly | Effects::Idempotent => InterruptedOutcome::Redo,
                Effects::Once => InterruptedOutcome::Unknown(ToolOutput::error(
                    "The process ended during this call; whether it took effect is unknown.",
                )),
            }
        })
    }
}

/// The JSON Schema of a type, without what only says where the schema comes from.
pub(crate) fn schema_of<T: JsonSchema>() -> Value {
    let mut schema = schemars::generate::SchemaGenerator::default().into_root_schema_for::<T>().to_value();
    if let Some(fields) = schema.as_object_mut() {
        fields.retain(|keyword, _| !matches!(keyword.as_str(), "$schema" | "title"));
    }
    schema
}
