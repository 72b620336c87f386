//! Adapter for tools that change files.
//!
//! Each tool is one function from arguments to a [`WritePlan`]. This module turns the plan into an intent, carries
//! it out, and settles it by content after a crash. `workspace` does the writing.

use futures_util::future::BoxFuture;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::tool::read_tool::{run_blocking, typed};
use crate::tool::{
    CallContext, FileEffects, InterruptedOutcome, PreparedCall, RetrySafety, Tool, ToolDefinition, ToolOutput,
};
use crate::workspace::content::{ContentHash, DirectoryChange, FileChange, SeenVersion};
use crate::workspace::{Backup, FileWrite, PathProblem, WorkspacePath};

/// Plans the file changes of one tool.
pub(crate) trait WriteTool: Send + Sync + 'static {
    type Arguments: DeserializeOwned + Send + 'static;

    /// Plans the changes without making them. The error is an answer for the model.
    fn plan(arguments: Self::Arguments, context: &CallContext) -> Result<WritePlan, String>;

    /// Plans the remaining changes after a crash in which `done` were made and others were not. Tools that
    /// change a single file keep the default.
    fn plan_rest(
        _arguments: Self::Arguments,
        _done: &[FileChange],
        _context: &CallContext,
    ) -> Option<WritePlan> {
        None
    }
}

/// Planned changes and the answer to give once they are made.
pub(crate) struct WritePlan {
    pub(crate) changes: Vec<FileWrite>,
    pub(crate) answer: String,
}

/// The intent journaled before a change.
#[derive(Serialize, Deserialize)]
struct WriteIntent {
    changes: Vec<FileChange>,
    /// Previous content of files that the run has not changed before, for undo.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    kept: Vec<Backup>,
    /// Directories the change has to create, for undo.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    directories: Vec<DirectoryChange>,
}

impl WritePlan {
    fn file_changes(&self) -> Vec<FileChange> {
        self.changes
            .iter()
            .map(|change| FileChange {
                path: change.path.as_str().to_owned(),
                before: change.before,
                after: change.after.as_deref().map(ContentHash::of),
                mode: None,
            })
            .collect()
    }

    fn apply(self, context: &CallContext) -> ToolOutput {
        let changed = self.file_changes();
        match context.workspace.change(&self.changes, &context.call_id, context.limits.file_bytes) {
            Ok(()) => done(changed, self.answer, context),
            Err(error) => ToolOutput::error(error.to_string()),
        }
    }
}

fn done(changed: Vec<FileChange>, answer: String, context: &CallContext) -> ToolOutput {
    let seen = changed
        .iter()
        .filter_map(|change| Some(SeenVersion { path: change.path.clone(), hash: change.after? }))
        .collect();
    let versions = context.workspace.versions_of(&changed);
    let effects = Box::new(FileEffects { versions, ..FileEffects::default() });
    let output = ToolOutput { seen, changed, effects, ..ToolOutput::done(answer) };
    context.workspace.record_output(&output);
    output
}

/// The [`Tool`] built from an [`WriteTool`] implementation.
pub(crate) struct WriteToolAdapter<A> {
    definition: ToolDefinition,
    way: std::marker::PhantomData<A>,
}

impl<A: WriteTool> WriteToolAdapter<A> {
    pub(crate) fn new(definition: ToolDefinition) -> Self {
        Self { definition, way: std::marker::PhantomData }
    }
}

impl<A: WriteTool> Tool for WriteToolAdapter<A> {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn repeat(&self) -> RetrySafety {
        RetrySafety::Verifiable
    }

    fn prepare<'a>(
        &'a self,
        arguments: Value,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<PreparedCall, ToolOutput>> {
        Box::pin(async {
            let named = arguments.get("path").and_then(Value::as_str).map(str::to_owned);
            let arguments = typed::<A::Arguments>(arguments)?;
            let (plan, kept, directories) = run_blocking(context, move |context| {
                // Before the plan, whose problems would be about the text on disk.
                named.iter().try_for_each(|path| require_saved(path, context))?;
                let plan = A::plan(arguments, context).map_err(ToolOutput::error)?;
                if named.is_none() {
                    plan.changes
                        .iter()
                        .try_for_each(|change| require_saved(change.path.as_str(), context))?;
                }
                let kept = context.workspace.back_up(&plan.changes, context.limits.file_bytes);
                let directories = context.workspace.missing_directories(&plan.changes);
                Ok::<_, ToolOutput>((plan, kept, directories))
            })
            .await?;
            let intent =
                serde_json::to_value(WriteIntent { changes: plan.file_changes(), kept, directories })
                    .map_err(|error| ToolOutput::error(error.to_string()))?;
            Ok(PreparedCall::new(intent, plan))
        })
    }

    fn perform<'a>(&'a self, prepared: PreparedCall, context: &'a CallContext) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async {
            match prepared.into_plan::<WritePlan>() {
                Ok(plan) => run_blocking(context, |context| plan.apply(context)).await,
                Err(output) => output,
            }
        })
    }

    fn settle<'a>(
        &'a self,
        arguments: &'a Value,
        intent: &'a Value,
        context: &'a CallContext,
    ) -> BoxFuture<'a, InterruptedOutcome> {
        Box::pin(async move {
            let unreadable = || {
                InterruptedOutcome::Unknown(ToolOutput::error(
                    "This call was interrupted, and what it was about to do cannot be read any more. Look at the files before going on.",
                ))
            };
            let Ok(WriteIntent { changes, .. }) = WriteIntent::deserialize(intent) else {
                return unreadable();
            };
            let Ok(arguments) = typed::<A::Arguments>(arguments.clone()) else { return unreadable() };
            let context = context.clone();
            let settled =
                tokio::task::spawn_blocking(move || settle::<A>(arguments, changes, &context)).await;
            settled.unwrap_or_else(|_| unreadable())
        })
    }
}

/// Refuses to change a file that has unsaved changes in the user's editor.
fn require_saved(path: &str, context: &CallContext) -> Result<(), ToolOutput> {
    let CallContext { workspace, limits, .. } = context;
    if !workspace.has_documents() {
        return Ok(());
    }
    // Other problems of the path are reported by the plan.
    let Ok(path) = workspace.locate(path) else { return Ok(()) };
    let Ok(Some(current)) = workspace.current(&path, limits.file_bytes) else { return Ok(()) };
    match workspace.unsaved_text(&path, &current.content) {
        None => Ok(()),
        Some(_) => Err(ToolOutput::error(format!(
            "`{path}` has unsaved changes in the user's editor and was not changed. Ask the user to save or discard them."
        ))),
    }
}

/// Determines by content what an interrupted change did, and completes one that was partly made.
fn settle<A: WriteTool>(
    arguments: A::Arguments,
    changes: Vec<FileChange>,
    context: &CallContext,
) -> InterruptedOutcome {
    let mut made = Vec::new();
    let (mut open, mut strange) = (0, Vec::new());
    for change in &changes {
        let found = context.workspace.locate(&change.path).and_then(|path| {
            context.workspace.remove_temporary(&path, &context.call_id);
            content_now(&path, context)
        });
        match found {
            Ok(now) if now == change.after => made.push(change.clone()),
            Ok(now) if now == change.before => open += 1,
            _ => strange.push(format!("`{}`", change.path)),
        }
    }
    if !strange.is_empty() {
        return InterruptedOutcome::Unknown(ToolOutput::error(format!(
            "This call was interrupted. {} now hold neither what was there before nor what the call was to write. Read them before going on.",
            strange.join(", ")
        )));
    }
    if made.is_empty() {
        return InterruptedOutcome::Redo;
    }
    if open > 0 {
        let rest = A::plan_rest(arguments, &made, context)
            .filter(|rest| rest.file_changes().iter().all(|change| changes.contains(change)));
        let Some(rest) = rest else {
            return InterruptedOutcome::Unknown(ToolOutput::error(
                "This call was interrupted after a part of its files had been changed. Read them before going on.",
            ));
        };
        if let Err(error) =
            context.workspace.change(&rest.changes, &context.call_id, context.limits.file_bytes)
        {
            return InterruptedOutcome::Unknown(ToolOutput::error(format!(
                "This call was interrupted after a part of its files had been changed, and the rest could not be: {error}"
            )));
        }
    }
    let names: Vec<String> = changes.iter().map(|change| format!("`{}`", change.path)).collect();
    let answer = format!("Done: {} changed as asked (the run was interrupted in between).", names.join(", "));
    InterruptedOutcome::Done(done(changes, answer, context))
}

fn content_now(path: &WorkspacePath, context: &CallContext) -> Result<Option<ContentHash>, PathProblem> {
    let current = context.workspace.current(path, context.limits.file_bytes)?;
    Ok(current.map(|current| ContentHash::of(&current.content)))
}
