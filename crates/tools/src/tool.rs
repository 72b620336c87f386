//! What a tool is: a definition for the model, and a call in two halves.
//!
//! A call is first prepared, which checks everything that can be checked and works out the effect, and then
//! performed. Between the two the engine writes the intent down, so that a crash can be settled afterwards:
//! by [`Tool::settle`], from the arguments and the intent alone. [`Toolbox`](crate::Toolbox) holds the tools.

use std::any::Any;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::content::{DirectoryChange, FileChange, Seen};
use crate::picture::Image;
use crate::workspace::Workspace;

/// What kind of effect a tool has; gates and review mode go by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Category {
    /// Looks, changes nothing.
    Read,
    /// May change the workspace.
    Write,
    /// Thinking and planning: no effect outside the conversation.
    Reason,
    /// Steers the task itself.
    Control,
}

/// A tool as a model sees it.
#[derive(Clone, Debug)]
pub struct Definition {
    /// `^[a-zA-Z0-9_-]{1,64}$`.
    pub name: Cow<'static, str>,
    /// What it does, what it answers, what its limits are.
    pub description: Cow<'static, str>,
    /// A JSON schema of type object with `additionalProperties: false`.
    pub parameters: Value,
    /// What kind of effect it has.
    pub category: Category,
    /// Other names that models call it by.
    pub aliases: &'static [&'static str],
    /// Other names of parameters, as (alias, name). An alias that ends in `_ms` of a name that does not is in
    /// milliseconds and the parameter in seconds.
    pub parameter_aliases: &'static [(&'static str, &'static str)],
}

/// Keywords of a schema that its checker and the reference page need. A model that writes something else is told so
/// in the answer, which is cheaper than telling every model with every request.
const UNSENT: [&str; 7] =
    ["additionalProperties", "description", "minItems", "maxItems", "minLength", "minimum", "maximum"];

impl Definition {
    /// The schema in short, for a tool whose description says what its parameters mean: names, types and what is
    /// required.
    #[must_use]
    pub fn short_parameters(&self) -> Value {
        let mut schema = self.parameters.clone();
        shorten(&mut schema);
        schema
    }
}

fn shorten(schema: &mut Value) {
    let Some(fields) = schema.as_object_mut() else { return };
    fields.retain(|keyword, _| !UNSENT.contains(&keyword.as_str()));
    // The names below `properties` are parameters, not keywords.
    let properties = fields.get_mut("properties").and_then(Value::as_object_mut);
    properties.into_iter().flat_map(serde_json::Map::values_mut).for_each(shorten);
    fields.get_mut("items").into_iter().for_each(shorten);
}

/// What may be done with a call that was started and whose result was never written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeat {
    /// May run again: it only reads.
    Harmless,
    /// Changes files: whether it happened is told by their content.
    Settled,
    /// Runs commands: never again without the model knowing.
    Never,
}

/// One kind of act.
///
/// A reply may hold several calls. Those that change files are prepared one by one, each after the one before
/// was performed: `prepare` looks at the files as they are.
pub trait Tool: Send + Sync {
    /// How it is shown to a model.
    fn definition(&self) -> &Definition;

    /// More names that models call it by, where they are not known beforehand.
    fn more_names(&self) -> Vec<String> {
        Vec::new()
    }

    /// What a crash in the middle means.
    fn repeat(&self) -> Repeat;

    /// Checks the arguments (as [`crate::arguments::parse`] gives them) and works out the effect without doing
    /// it. An error is an answer for the model.
    fn prepare<'a>(
        &'a self,
        arguments: Value,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<Prepared, ToolOutput>>;

    /// Does it. What a cancelled call had done until then is in its output, which has `aborted` set.
    fn perform<'a>(&'a self, prepared: Prepared, context: &'a CallContext) -> BoxFuture<'a, ToolOutput>;

    /// After a crash: an intent without a result. `Harmless` tools need not say more than this.
    fn settle<'a>(
        &'a self,
        arguments: &'a Value,
        intent: &'a Value,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Settled> {
        let _ = (arguments, intent, context);
        Box::pin(async { Settled::Redo })
    }
}

/// What became of a call that a crash cut off.
#[derive(Clone, Debug, PartialEq)]
pub enum Settled {
    /// It had happened, or is complete now; this is its result.
    Done(ToolOutput),
    /// It had not happened: prepare and perform it again.
    Redo,
    /// Nobody can tell; the output says what is not known.
    Unknown(ToolOutput),
}

/// A checked call, ready to be performed.
pub struct Prepared {
    /// What is about to happen, to be written down first. For file changes `{"changes": [FileChange…]}`.
    pub intent: Value,
    plan: Box<dyn Any + Send>,
}

impl Prepared {
    /// A call whose tool will ask for `plan` when it performs it.
    pub fn new<P: Any + Send>(intent: Value, plan: P) -> Self {
        Self { intent, plan: Box::new(plan) }
    }

    /// The plan that the tool itself put in. Another tool's plan is an error in the caller, told as an answer
    /// because a call always gets one.
    pub fn into_plan<P: Any + Send>(self) -> Result<P, ToolOutput> {
        match self.plan.downcast::<P>() {
            Ok(plan) => Ok(*plan),
            Err(_) => Err(ToolOutput::error("this call was prepared by another tool")),
        }
    }
}

impl std::fmt::Debug for Prepared {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Prepared").field("intent", &self.intent).finish_non_exhaustive()
    }
}

/// What a call is given besides its arguments.
#[derive(Clone)]
pub struct CallContext {
    /// Where it may reach, and what the run has seen there.
    pub workspace: Arc<Workspace>,
    /// The model's id of the call.
    pub call_id: String,
    /// Ends the call early.
    pub cancel: CancellationToken,
    /// Called with the newest output of a running command, at most ten times a second.
    pub progress: Arc<dyn Fn(&str) + Send + Sync>,
    /// How much a call may take and answer.
    pub limits: Limits,
}

impl std::fmt::Debug for CallContext {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("CallContext").field("call_id", &self.call_id).finish_non_exhaustive()
    }
}

/// Bounds of single calls. What is over a bound is cut, and the answer says so and how to get at the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Lines shown by one read.
    pub read_lines: usize,
    /// Bytes of text in one answer of a reading tool.
    pub answer_bytes: usize,
    /// Characters of one line before it is cut.
    pub line_characters: usize,
    /// Largest file that is held in memory: read for an edit, written, or patched.
    pub file_bytes: u64,
    /// Files of one `read_files`.
    pub files_per_read: usize,
    /// Entries of one directory listing, all levels together.
    pub list_entries: usize,
    /// Levels of one directory listing.
    pub list_depth: usize,
    /// Paths answered by `find_files`.
    pub find_results: usize,
    /// Matches answered by `search_text` unless the call says otherwise.
    pub search_results: usize,
    /// Most matches a call may ask for.
    pub search_results_most: usize,
    /// First bytes of a command's output that are kept.
    pub output_head: usize,
    /// Last bytes of a command's output that are kept.
    pub output_tail: usize,
    /// How long a command may run unless the call says otherwise.
    pub command_time: Duration,
    /// Longest time a call may ask for.
    pub command_time_most: Duration,
    /// Bytes of the images of one answer, all together; none where the model takes no images.
    pub image_bytes: usize,
}

impl Limits {
    /// What a model that takes images is shown in one answer: servers take 5 MB of base64.
    pub const IMAGE_BYTES: usize = 3_750_000;
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            read_lines: 2000,
            answer_bytes: 50 * 1024,
            line_characters: 2000,
            file_bytes: 16 * 1024 * 1024,
            files_per_read: 20,
            list_entries: 200,
            list_depth: 3,
            find_results: 200,
            search_results: 100,
            search_results_most: 1000,
            output_head: 16 * 1024,
            output_tail: 16 * 1024,
            command_time: Duration::from_secs(120),
            command_time_most: Duration::from_secs(3600),
            image_bytes: 0,
        }
    }
}

/// The answer to a call, and what the engine needs to know about what it did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolOutput {
    /// Whether the call did what it was asked for.
    pub ok: bool,
    /// What the model reads.
    pub content: String,
    /// Whether something was cut from `content`.
    #[serde(default, skip_serializing_if = "is_false")]
    pub truncated: bool,
    /// Of a command that ended by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// File content that the run has now seen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seen: Vec<Seen>,
    /// Files that this call changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<FileChange>,
    /// Directories that a command made or took away. What a tool of ours makes is in its intent.
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    pub directories: Box<[DirectoryChange]>,
    /// Whether it was cancelled before its end.
    #[serde(default, skip_serializing_if = "is_false")]
    pub aborted: bool,
    /// What the model sees beside `content`.
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    pub images: Box<[Image]>,
}

impl ToolOutput {
    /// A call that did what it was asked for.
    #[must_use]
    pub fn done(content: impl Into<String>) -> Self {
        Self { ok: true, content: content.into(), ..Self::default() }
    }

    /// A call that did not, and why, in words a model can act on.
    #[must_use]
    pub fn error(content: impl Into<String>) -> Self {
        Self { content: content.into(), ..Self::default() }
    }

    /// A call that was cancelled before it had done anything.
    #[must_use]
    pub fn aborted(content: impl Into<String>) -> Self {
        Self { content: content.into(), aborted: true, ..Self::default() }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
fn is_false(value: &bool) -> bool {
    !*value
}
