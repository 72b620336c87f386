//! The [`Tool`] trait: a definition for the model, and a call in two phases.
//!
//! A call is first prepared, which checks everything that can be checked and works out the effect, and then
//! performed. Between the two the engine journals the intent, so that after a crash [`Tool::settle`] can
//! determine the outcome from the arguments and the intent alone. [`Toolbox`](crate::Toolbox) holds the
//! tools.

pub mod apply_patch;
pub mod arguments;
pub(crate) mod closest_match;
pub mod computer;
pub(crate) mod edit_file;
pub mod fetch_url;
pub(crate) mod find_files;
pub mod image;
pub(crate) mod line_numbers;
pub(crate) mod list_dir;
pub mod provider_tools;
pub(crate) mod read_file;
pub(crate) mod read_tool;
pub(crate) mod search_text;
pub(crate) mod shell;
pub mod web_search;
pub(crate) mod write_file;
pub(crate) mod write_tool;

use std::any::Any;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::tool::image::ToolImage;
use crate::workspace::content::{DirectoryChange, FileChange, ModeChange, SeenVersion};
use crate::workspace::{FileVersion, Workspace};

/// Kind of effect a tool has; gates and review mode depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// Reads, changes nothing.
    Read,
    /// May change the workspace.
    Write,
    /// Thinking and planning: no effect outside the conversation.
    Reason,
    /// Controls the task itself.
    Control,
}

/// A tool as presented to a model.
#[derive(Clone, Debug)]
pub struct ToolDefinition {
    /// Unique name matching `^[a-zA-Z0-9_-]{1,64}$`.
    pub name: Cow<'static, str>,
    /// Description for the model: effect, result and limits.
    pub description: Cow<'static, str>,
    /// JSON Schema of type object with `additionalProperties: false`.
    pub parameters: Value,
    /// Kind of effect the tool has.
    pub category: Access,
    /// Other names that models use for it.
    pub aliases: &'static [&'static str],
    /// Other names of parameters, as (alias, name). An alias that ends in `_ms`, for a name that does not, is
    /// in milliseconds while the parameter is in seconds.
    pub parameter_aliases: &'static [(&'static str, &'static str)],
}

/// Schema keywords that only the argument check and the reference page need. A model that violates them is
/// told so in the answer, which is cheaper than sending them with every request.
const OMITTED_KEYWORDS: [&str; 7] =
    ["additionalProperties", "description", "minItems", "maxItems", "minLength", "minimum", "maximum"];

impl ToolDefinition {
    /// A short schema for a tool whose description explains its parameters: only names, types and required
    /// parameters.
    #[must_use]
    pub fn short_parameters(&self) -> Value {
        let mut schema = self.parameters.clone();
        shorten(&mut schema);
        schema
    }
}

fn shorten(schema: &mut Value) {
    let Some(fields) = schema.as_object_mut() else { return };
    fields.retain(|keyword, _| !OMITTED_KEYWORDS.contains(&keyword.as_str()));
    // The names below `properties` are parameters, not keywords.
    let properties = fields.get_mut("properties").and_then(Value::as_object_mut);
    properties.into_iter().flat_map(serde_json::Map::values_mut).for_each(shorten);
    fields.get_mut("items").into_iter().for_each(shorten);
}

/// How to treat a call that was started but whose result was never journaled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetrySafety {
    /// Only reads: may run again.
    Idempotent,
    /// Changes files: their content shows whether it happened.
    Verifiable,
    /// Runs commands: never runs again without the model knowing.
    Never,
}

/// A tool that a model can call.
///
/// A reply may contain several calls. Those that change files are prepared one at a time, each after the
/// previous one was performed, because `prepare` reads the current files.
pub trait Tool: Send + Sync {
    /// The definition presented to a model.
    fn definition(&self) -> &ToolDefinition;

    /// Further aliases that are only known at run time.
    fn extra_aliases(&self) -> Vec<String> {
        Vec::new()
    }

    /// Whether the definition is left out of requests; a model finds it with `find_tools`.
    fn is_deferred(&self) -> bool {
        false
    }

    /// How a call interrupted by a crash is handled.
    fn repeat(&self) -> RetrySafety;

    /// Checks the arguments (as returned by [`crate::tool::arguments::parse`]) and works out the effect without
    /// carrying it out. The error is an answer for the model.
    fn prepare<'a>(
        &'a self,
        arguments: Value,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<PreparedCall, ToolOutput>>;

    /// Carries out the call. If it is cancelled, the output describes what was done until then and has
    /// `aborted` set.
    fn perform<'a>(&'a self, prepared: PreparedCall, context: &'a CallContext) -> BoxFuture<'a, ToolOutput>;

    /// The rest of a call whose output [asks the user](ToolOutput::asks_user), to be made like a call of its own.
    /// `answer` is `None` if nobody answered.
    fn answered(&self, call_id: &str, answer: Option<String>) -> Option<Arc<dyn Tool>> {
        let _ = (call_id, answer);
        None
    }

    /// Determines the outcome of an intent without a result, after a crash. `Idempotent` tools keep the
    /// default.
    fn settle<'a>(
        &'a self,
        arguments: &'a Value,
        intent: &'a Value,
        context: &'a CallContext,
    ) -> BoxFuture<'a, InterruptedOutcome> {
        let _ = (arguments, intent, context);
        Box::pin(async { InterruptedOutcome::Redo })
    }
}

/// Outcome of a call that a crash interrupted.
#[derive(Clone, Debug, PartialEq)]
pub enum InterruptedOutcome {
    /// It happened, or is complete now; this is its result.
    Done(ToolOutput),
    /// It did not happen: prepare and perform it again.
    Redo,
    /// The outcome cannot be determined; the output says what is unknown.
    Unknown(ToolOutput),
}

/// A checked call, ready to be performed.
pub struct PreparedCall {
    /// The effect, journaled before the call is performed. For file changes `{"changes": [FileChange…]}`.
    pub intent: Value,
    plan: Box<dyn Any + Send>,
}

impl PreparedCall {
    /// Creates a prepared call with the `plan` that the tool needs to perform it.
    pub fn new<P: Any + Send>(intent: Value, plan: P) -> Self {
        Self { intent, plan: Box::new(plan) }
    }

    /// Takes the plan that the tool stored. A plan of another type is a bug in the caller, reported as an
    /// answer because every call needs one.
    pub fn into_plan<P: Any + Send>(self) -> Result<P, ToolOutput> {
        match self.plan.downcast::<P>() {
            Ok(plan) => Ok(*plan),
            Err(_) => Err(ToolOutput::error("this call was prepared by another tool")),
        }
    }
}

impl std::fmt::Debug for PreparedCall {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Prepared").field("intent", &self.intent).finish_non_exhaustive()
    }
}

/// Inputs of a call besides its arguments.
#[derive(Clone)]
pub struct CallContext {
    /// The files it may access, and what the run has seen of them.
    pub workspace: Arc<Workspace>,
    /// Id the model gave the call.
    pub call_id: String,
    /// Cancels the call.
    pub cancel: CancellationToken,
    /// Called with the latest output of a running command, at most ten times per second.
    pub progress: Arc<dyn Fn(&str) + Send + Sync>,
    /// Limits that apply to the call.
    pub limits: CallLimits,
    /// W3C `traceparent` of the trace that the call belongs to, passed on to other servers.
    pub trace_parent: Option<String>,
}

impl std::fmt::Debug for CallContext {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("CallContext").field("call_id", &self.call_id).finish_non_exhaustive()
    }
}

/// Who wants a command to be run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CommandSource {
    /// The model, in a call that the user's approval policy covers.
    #[default]
    Model,
    /// The configuration of the project.
    Project,
}

/// Limits of single calls. Content over a limit is cut, and the answer says so and how to get the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallLimits {
    /// Who wants a command to be run.
    pub source: CommandSource,
    /// Maximum lines shown by one read.
    pub read_lines: usize,
    /// Maximum bytes of text in one answer of a read tool.
    pub answer_bytes: usize,
    /// Maximum characters of a line before it is cut.
    pub line_characters: usize,
    /// Maximum bytes of a file held in memory: read for an edit, written, or patched.
    pub file_bytes: u64,
    /// Maximum files per `read_files` call.
    pub files_per_read: usize,
    /// Maximum entries of a directory listing, all levels together.
    pub list_entries: usize,
    /// Maximum levels of a directory listing.
    pub list_depth: usize,
    /// Maximum paths returned by `find_files`.
    pub find_results: usize,
    /// Matches returned by `search_text` unless the call sets a number.
    pub search_results: usize,
    /// Maximum matches a call may request.
    pub max_search_results: usize,
    /// Bytes kept from the start of a command's output.
    pub output_head: usize,
    /// Bytes kept from the end of a command's output.
    pub output_tail: usize,
    /// Time limit of a command unless the call sets one.
    pub command_time: Duration,
    /// Maximum time limit a call may request.
    pub max_command_time: Duration,
    /// Maximum bytes of all images in one answer; 0 if the model does not accept images.
    pub image_bytes: usize,
}

impl CallLimits {
    /// Image bytes per answer for a model that accepts images: servers accept 5 MB of base64.
    pub const IMAGE_BYTES: usize = 3_750_000;
}

impl Default for CallLimits {
    fn default() -> Self {
        Self {
            source: CommandSource::Model,
            read_lines: 2000,
            answer_bytes: 50 * 1024,
            line_characters: 2000,
            file_bytes: 16 * 1024 * 1024,
            files_per_read: 20,
            list_entries: 200,
            list_depth: 3,
            find_results: 200,
            search_results: 100,
            max_search_results: 1000,
            output_head: 16 * 1024,
            output_tail: 16 * 1024,
            command_time: Duration::from_secs(120),
            max_command_time: Duration::from_secs(3600),
            image_bytes: 0,
        }
    }
}

/// The answer to a call, and what the engine needs to know about its effects.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolOutput {
    /// Whether the call succeeded.
    pub ok: bool,
    /// Text for the model.
    pub content: String,
    /// Whether `content` was cut.
    #[serde(default, skip_serializing_if = "is_false")]
    pub truncated: bool,
    /// Exit code of a command that ended by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// File versions that the run has now seen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seen: Vec<SeenVersion>,
    /// Files changed by this call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<FileChange>,
    /// What else is needed to take the changes back, or to come back to them.
    #[serde(flatten)]
    pub effects: Box<FileEffects>,
    /// Whether the call was cancelled before it completed.
    #[serde(default, skip_serializing_if = "is_false")]
    pub aborted: bool,
    /// Whether the task cannot go on after this call, because the state of the machine is not safe or not
    /// known. The last line of `content` says why.
    #[serde(default, skip_serializing_if = "is_false")]
    pub stops_task: bool,
    /// Whether `content` is a question to the user, on whose answer the rest of the call depends; see
    /// [`Tool::answered`].
    #[serde(default, skip_serializing_if = "is_false")]
    pub asks_user: bool,
    /// Images shown to the model along with `content`.
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    pub images: Box<[ToolImage]>,
}

/// Changes by a call besides the content of files, and the versions of the files that it left.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEffects {
    /// Directories that a command created or removed. Directories created by our own tools are in their
    /// intent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub directories: Vec<DirectoryChange>,
    /// Files whose permissions alone a command changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub modes: Vec<ModeChange>,
    /// The changed files as the call left them, for a rewind to this point.
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    pub versions: Box<[FileVersion]>,
}

impl ToolOutput {
    /// A successful call.
    #[must_use]
    pub fn done(content: impl Into<String>) -> Self {
        Self { ok: true, content: content.into(), ..Self::default() }
    }

    /// A failed call, with a reason that a model can act on.
    #[must_use]
    pub fn error(content: impl Into<String>) -> Self {
        Self { content: content.into(), ..Self::default() }
    }

    /// A call that was cancelled before it had any effect.
    #[must_use]
    pub fn aborted(content: impl Into<String>) -> Self {
        Self { content: content.into(), aborted: true, ..Self::default() }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde requires")]
fn is_false(value: &bool) -> bool {
    !*value
}
