//! Adapter for tools that change files.
//!
//! Each tool is one function from arguments to a [`Plan`]. This module turns the plan into an intent, carries
//! it out, and settles it by content after a crash. `workspace` does the writing.

use futures_util::future::BoxFuture;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::content::{ContentHash, DirectoryChange, FileChange, Seen};
use crate::look::{typed, waiting};
use crate::tool::{CallContext, Definition, Prepared, Repeat, Settled, Tool, ToolOutput};
use crate::workspace::{Change, Kept, PathProblem, WorkspacePath};

/// Plans the file changes of one tool.
pub(crate) trait Alter: Send + Sync + 'static {
    type Arguments: DeserializeOwned + Send + 'static;

    /// Plans the changes without making them. The error is an answer for the model.
    fn plan(arguments: Self::Arguments, context: &CallContext) -> Result<Plan, String>;

    /// Plans the remaining changes after a crash in which `done` were made and others were not. Tools that
    /// change a single file keep the default.
    fn plan_rest(_arguments: Self::Arguments, _done: &[FileChange], _context: &CallContext) -> Option<Plan> {
        None
    }
}

/// Planned changes and the answer to give once they are made.
pub(crate) struct Plan {
    pub(crate) changes: Vec<Change>,
    pub(crate) answer: String,
}

/// The intent journaled before a change.
#[derive(Serialize, Deserialize)]
struct Intent {
    changes: Vec<FileChange>,
    /// Previous content of files that the run has not changed before, for undo.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    kept: Vec<Kept>,
    /// Directories the change has to create, for undo.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    directories: Vec<DirectoryChange>,
}

impl Plan {
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

    fn carry_out(self, context: &CallContext) -> ToolOutput {
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
        .filter_map(|change| Some(Seen { path: change.path.clone(), hash: change.after? }))
        .collect();
    let output = ToolOutput { seen, changed, ..ToolOutput::done(answer) };
    context.workspace.recall(&output);
    output
}

/// The [`Tool`] built from an [`Alter`] implementation.
pub(crate) struct AlteringTool<A> {
    definition: Definition,
    way: std::marker::PhantomData<A>,
}

impl<A: Alter> AlteringTool<A> {
    pub(crate) fn new(definition: Definition) -> Self {
        Self { definition, way: std::marker::PhantomData }
    }
}

impl<A: Alter> Tool for AlteringTool<A> {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn repeat(&self) -> Repeat {
        Repeat::Settled
    }

    fn prepare<'a>(
        &'a self,
        arguments: Value,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<Prepared, ToolOutput>> {
        Box::pin(async {
            let arguments = typed::<A::Arguments>(arguments)?;
            let (plan, kept, directories) = waiting(context, |context| {
                let plan = A::plan(arguments, context).map_err(ToolOutput::error)?;
                let kept = context.workspace.keep(&plan.changes, context.limits.file_bytes);
                let directories = context.workspace.missing_directories(&plan.changes);
                Ok::<_, ToolOutput>((plan, kept, directories))
            })
            .await?;
            let intent = serde_json::to_value(Intent { changes: plan.file_changes(), kept, directories })
                .map_err(|error| ToolOutput::error(error.to_string()))?;
            Ok(Prepared::new(intent, plan))
        })
    }

    fn perform<'a>(&'a self, prepared: Prepared, context: &'a CallContext) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async {
            match prepared.into_plan::<Plan>() {
                Ok(plan) => waiting(context, |context| plan.carry_out(context)).await,
                Err(output) => output,
            }
        })
    }

    fn settle<'a>(
        &'a self,
        arguments: &'a Value,
        intent: &'a Value,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Settled> {
        Box::pin(async move {
            let unreadable = || {
                Settled::Unknown(ToolOutput::error(
                    "This call was interrupted, and what it was about to do cannot be read any more. Look at the files before going on.",
                ))
            };
            let Ok(Intent { changes, .. }) = Intent::deserialize(intent) else { return unreadable() };
            let Ok(arguments) = typed::<A::Arguments>(arguments.clone()) else { return unreadable() };
            let context = context.clone();
            let settled =
                tokio::task::spawn_blocking(move || settle::<A>(arguments, changes, &context)).await;
            settled.unwrap_or_else(|_| unreadable())
        })
    }
}

/// Determines by content what an interrupted change did, and completes one that was partly made.
fn settle<A: Alter>(arguments: A::Arguments, changes: Vec<FileChange>, context: &CallContext) -> Settled {
    let mut made = Vec::new();
    let (mut open, mut strange) = (0, Vec::new());
    for change in &changes {
        let found = context.workspace.locate(&change.path).and_then(|path| {
            context.workspace.sweep(&path, &context.call_id);
            content_now(&path, context)
        });
        match found {
            Ok(now) if now == change.after => made.push(change.clone()),
            Ok(now) if now == change.before => open += 1,
            _ => strange.push(format!("`{}`", change.path)),
        }
    }
    if !strange.is_empty() {
        return Settled::Unknown(ToolOutput::error(format!(
            "This call was interrupted. {} now hold neither what was there before nor what the call was to write. Read them before going on.",
            strange.join(", ")
        )));
    }
    if made.is_empty() {
        return Settled::Redo;
    }
    if open > 0 {
        let rest = A::plan_rest(arguments, &made, context)
            .filter(|rest| rest.file_changes().iter().all(|change| changes.contains(change)));
        let Some(rest) = rest else {
            return Settled::Unknown(ToolOutput::error(
                "This call was interrupted after a part of its files had been changed. Read them before going on.",
            ));
        };
        if let Err(error) =
            context.workspace.change(&rest.changes, &context.call_id, context.limits.file_bytes)
        {
            return Settled::Unknown(ToolOutput::error(format!(
                "This call was interrupted after a part of its files had been changed, and the rest could not be: {error}"
            )));
        }
    }
    let names: Vec<String> = changes.iter().map(|change| format!("`{}`", change.path)).collect();
    let answer = format!("Done: {} changed as asked (the run was interrupted in between).", names.join(", "));
    Settled::Done(done(changes, answer, context))
}

fn content_now(path: &WorkspacePath, context: &CallContext) -> Result<Option<ContentHash>, PathProblem> {
    let current = context.workspace.current(path, context.limits.file_bytes)?;
    Ok(current.map(|current| ContentHash::of(&current.content)))
}
