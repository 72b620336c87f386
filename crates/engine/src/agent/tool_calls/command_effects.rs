//! Performs prepared calls that have effects, and detects the effects of commands: which files they changed,
//! and whether they touched protected files.

use std::sync::Arc;
use std::time::Duration;

use fusee_journal::BoxFuture;
use fusee_tools::workspace::InitialBackups;
use fusee_tools::{CallContext, PreparedCall, RetrySafety, Tool, ToolOutput, Workspace};
use serde_json::Value;

use crate::agent::flow::{ProtectedTests, protected_answer};
use crate::agent::tool_calls::tool_executor::CallRecord;

/// Maximum number of files named.
const MAX_NAMES: usize = 20;

/// Performs a call. For commands, the workspace is examined before and after.
pub(crate) async fn perform(
    tool: &dyn Tool,
    prepared: Option<PreparedCall>,
    context: &CallContext,
    left_ms: Option<u64>,
    protected: Option<Arc<ProtectedTests>>,
) -> CallRecord {
    let Some(prepared) = prepared else {
        return CallRecord::plain(ToolOutput::error("the call was not prepared"));
    };
    if tool.repeat() != RetrySafety::Never {
        return CallRecord::plain(within(left_ms, context, tool.perform(prepared, context)).await);
    }
    if !context.workspace.is_watched() {
        // After a crash: the backups of this snapshot, if any, were recorded with the intent of the first
        // attempt.
        drop(watching(&context.workspace, Workspace::start_tracking).await);
    }
    if !context.workspace.is_snapshot_saved() {
        watching(&context.workspace, Workspace::save_snapshot).await;
    }
    // A background job may have changed tests since the last command.
    restore_tests(protected.as_ref(), &context.workspace).await;
    let mut called = CallRecord::plain(within(left_ms, context, tool.perform(prepared, context)).await);
    restore(&mut called, protected.as_ref(), &context.workspace).await;
    if !context.workspace.is_unchanged() {
        record_changes(&mut called.output, &context.workspace).await;
    }
    called
}

/// Adds what changed in the workspace since the last scan to the result of a command.
async fn record_changes(output: &mut ToolOutput, workspace: &Arc<Workspace>) {
    let scan = |workspace: &Workspace| {
        let changed = workspace.scan_changes();
        let versions = workspace.versions_of(&changed);
        (changed, versions)
    };
    (output.changed, output.effects.versions) = watching(workspace, scan).await;
    output.effects.directories = workspace.take_directory_changes();
    output.effects.modes = workspace.take_mode_changes();
}

/// Restores protected files that a command changed, and adds a note to the output.
pub(crate) async fn restore(
    called: &mut CallRecord,
    protected: Option<&Arc<ProtectedTests>>,
    workspace: &Arc<Workspace>,
) {
    called.protected = restore_tests(protected, workspace).await;
    if !called.protected.is_empty() {
        let note = protected_answer(&called.protected);
        called.output.content.push_str(&format!("\n[{note} They were restored.]"));
    }
}

/// Restores protected files and returns the paths of those that had changed.
async fn restore_tests(protected: Option<&Arc<ProtectedTests>>, workspace: &Arc<Workspace>) -> Vec<String> {
    let Some(protected) = protected.cloned() else { return Vec::new() };
    let workspace = Arc::clone(workspace);
    tokio::task::spawn_blocking(move || protected.restore(&workspace)).await.unwrap_or_default()
}

/// Ends the background jobs and restores protected files, so that what is scored are the original tests.
pub(crate) async fn protect_at_end(protected: &Arc<ProtectedTests>, workspace: &Arc<Workspace>) {
    workspace.end_jobs().await;
    restore_tests(Some(protected), workspace).await;
}

/// Determines what an interrupted command had changed, as far as the files show it: the snapshot taken before
/// the run's first command survives the crash.
pub(crate) async fn recover_interrupted(
    tool: &dyn Tool,
    called: &mut CallRecord,
    workspace: &Arc<Workspace>,
) {
    if tool.repeat() != RetrySafety::Never {
        return;
    }
    record_changes(&mut called.output, workspace).await;
    let names: Vec<&str> =
        called.output.changed.iter().map(|change| change.path.as_str()).take(MAX_NAMES).collect();
    if !names.is_empty() {
        let note = format!("\n[These files changed since it began: {}.]", names.join(", "));
        called.output.content.push_str(&note);
    }
}

/// Before the first command of a run: adds the backups needed for undo to its intent. Returns a warning about
/// files that were not backed up.
pub(crate) async fn save_backup(
    tool: &dyn Tool,
    intent: &mut Value,
    workspace: &Arc<Workspace>,
) -> Option<String> {
    let fields = intent.as_object_mut().filter(|_| tool.repeat() == RetrySafety::Never)?;
    if workspace.is_watched() {
        return None;
    }
    let InitialBackups { kept, left, left_bytes } = watching(workspace, Workspace::start_tracking).await;
    if !kept.is_empty() {
        fields.insert("kept".to_owned(), serde_json::to_value(kept).unwrap_or_default());
    }
    let files = fusee_text::count(left as u64, "file");
    let megabytes = left_bytes.div_ceil(1 << 20);
    (left > 0).then(|| {
        format!(
            "too large to back up and not in git: {files} ({megabytes} MB); undo cannot restore what commands change there"
        )
    })
}

/// Runs a workspace scan on a blocking thread, because it may wait for the disk.
async fn watching<T: Default + Send + 'static>(
    workspace: &Arc<Workspace>,
    examine: fn(&Workspace) -> T,
) -> T {
    let workspace = Arc::clone(workspace);
    tokio::task::spawn_blocking(move || examine(&workspace)).await.unwrap_or_default()
}

/// Cancels the call when the task's time is up, and still returns its output.
pub(crate) async fn within(
    left_ms: Option<u64>,
    context: &CallContext,
    call: BoxFuture<'_, ToolOutput>,
) -> ToolOutput {
    let Some(left) = left_ms else { return call.await };
    let mut call = call;
    tokio::select! {
        output = &mut call => output,
        () = tokio::time::sleep(Duration::from_millis(left)) => {
            context.cancel.cancel();
            call.await
        }
    }
}
