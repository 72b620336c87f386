//! Task reports: built by the runtime from facts and validated before they are emitted.

use std::collections::BTreeSet;
use std::sync::Arc;

use fusee_journal::event::{Event, TaskReport, TaskStatus};
use fusee_journal::{RunAborted, StepKind, StepRequest};
use fusee_tools::workspace::FileVersion;
use fusee_tools::{DirectoryChange, FileChange, ModeChange};
use serde::{Deserialize, Serialize};

use crate::agent::tool_calls::command_effects::protect_at_end;
use crate::agent::{AgentTask, Facts};

/// Larger files count as changed without being compared.
const COMPARED_BYTES: u64 = 64 << 20;

/// The actual changes found in the files at the end of a task.
#[derive(Default, Serialize, Deserialize)]
struct FilesAtEnd {
    /// Changes not reported by any call.
    found: Vec<FileChange>,
    /// Paths of all changes whose files differ from before the task.
    differ: BTreeSet<String>,
    /// Directories created or removed that no call reported.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    directories: Vec<DirectoryChange>,
    /// Changes of permissions that no call reported.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    modes: Vec<ModeChange>,
    /// The files of `found` as they are now.
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    versions: Box<[FileVersion]>,
}

/// Reconciles the recorded changes of a task with the files. Skipped if no commands ran, because tools report
/// their changes exactly.
pub(crate) async fn settle_changes(task: &AgentTask, facts: &mut Facts) -> Result<(), RunAborted> {
    if !facts.commands {
        return Ok(());
    }
    let call = StepRequest::new(&task.branch, StepKind::Environment, "changes");
    let (workspace, known) = (Arc::clone(&task.session.workspace), facts.all_changes());
    let protected = task.rules.protected.clone();
    let secrets = task.session.secrets.clone();
    let body = async move {
        if let Some(protected) = protected {
            protect_at_end(&protected, &workspace).await;
        }
        let compare = move || {
            let found = workspace.scan_changes();
            let mut all = known;
            all.extend(
                found
                    .iter()
                    .filter(|new| !all.iter().any(|old| old.path == new.path))
                    .cloned()
                    .collect::<Vec<_>>(),
            );
            let differ = workspace.differing_paths(&all, COMPARED_BYTES).into_iter().collect();
            let (directories, modes) = (workspace.take_directory_changes(), workspace.take_mode_changes());
            let mut versions = workspace.versions_of(&found);
            versions.iter_mut().for_each(|version| version.withhold(&secrets));
            FilesAtEnd { found, differ, directories, modes, versions }
        };
        tokio::task::spawn_blocking(compare).await.unwrap_or_default()
    };
    let settled = task.engine.step(call, body).await?.value;
    facts.reconcile(&settled.found, &settled.differ);
    Ok(())
}

/// Returns the report event, or the list of problems if the report is invalid.
pub(crate) fn checked(report: TaskReport) -> Event {
    let problems = problems(&report);
    if problems.is_empty() {
        return Event::TaskReport(report);
    }
    Event::TaskReportInvalid { task_id: report.task_id, problems }
}

/// All inconsistencies that the types do not rule out.
fn problems(report: &TaskReport) -> Vec<String> {
    let mut problems = Vec::new();
    let mut must = |holds: bool, problem: &str| {
        if !holds {
            problems.push(problem.to_owned());
        }
    };
    must(!report.task_id.is_empty(), "task_id is empty");
    must(!report.description.trim().is_empty(), "description is empty");
    must(report.attempts >= 1, "attempts is 0");
    must(
        report.tool_calls_total == report.tool_call_counts.values().sum::<u32>(),
        "tool_calls_total is not the sum of tool_call_counts",
    );
    must(
        report.tool_errors_total == report.tool_error_counts.values().sum::<u32>(),
        "tool_errors_total is not the sum of tool_error_counts",
    );
    let failed = |(name, errors): (&String, &u32)| errors > report.tool_call_counts.get(name).unwrap_or(&0);
    must(!report.tool_error_counts.iter().any(failed), "a tool failed more often than it was called");
    must(
        report.read_cache.is_none_or(|cache| cache.hits <= cache.reads),
        "read_cache counts more hits than reads",
    );
    let sorted = |paths: &[String]| paths.is_sorted() && paths.windows(2).all(|pair| pair[0] != pair[1]);
    must(sorted(&report.files_read), "files_read is not sorted or contains duplicates");
    must(sorted(&report.files_changed), "files_changed is not sorted or contains duplicates");
    let own = |path: &String| path.starts_with(".fusee/") || path.starts_with(".git/");
    must(!report.files_changed.iter().any(own), "files_changed contains files of the runtime");
    must(
        (report.status == TaskStatus::Failed) <= report.error.is_some(),
        "the task failed but error is missing",
    );
    problems
}

#[cfg(test)]
mod tests;
