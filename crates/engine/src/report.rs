//! Reports on tasks: made by the runtime from facts, and checked before anybody reads them.

use std::collections::BTreeSet;
use std::sync::Arc;

use fusee_journal::event::{Event, TaskReport, TaskStatus};
use fusee_journal::{BoxFuture, Call, Kind, Stop};
use fusee_tools::{DirectoryChange, FileChange};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::agent::{AgentTask, Facts};

/// Larger files are taken as changed without being read.
const COMPARED_BYTES: u64 = 64 << 20;

/// What the files themselves say at the end of a task.
#[derive(Default, Serialize, Deserialize)]
struct Settled {
    /// Changes that nobody had told of yet.
    found: Vec<FileChange>,
    /// Of all changes those whose files differ from before.
    differ: BTreeSet<String>,
    /// Directories that came and went, and nobody had told of yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    directories: Vec<DirectoryChange>,
}

/// Holds what is known of a task's changes against the files. Without commands there is nothing that a tool did not tell
/// exactly.
pub(crate) async fn settle_changes(task: &AgentTask, facts: &mut Facts) -> Result<(), Stop> {
    if !facts.commands {
        return Ok(());
    }
    let call = Call {
        branch: task.branch.clone(),
        kind: Kind::Environment,
        callee: "changes".to_owned(),
        args: Value::Null,
    };
    let (workspace, told) = (Arc::clone(&task.session.workspace), facts.all_changes());
    let body = Box::new(move || {
        let look = async move {
            let look = move || {
                let found = workspace.look_for_changes();
                let mut all = told;
                all.extend(
                    found
                        .iter()
                        .filter(|new| !all.iter().any(|old| old.path == new.path))
                        .cloned()
                        .collect::<Vec<_>>(),
                );
                let differ = workspace.still_differ(&all, COMPARED_BYTES).into_iter().collect();
                Settled { found, differ, directories: workspace.take_directory_changes() }
            };
            let settled = tokio::task::spawn_blocking(look).await.unwrap_or_default();
            serde_json::to_value(settled).unwrap_or_default()
        };
        Box::pin(look) as BoxFuture<'_, Value>
    });
    let settled: Settled = task.engine.step(call, body).await?.read()?;
    facts.settle(&settled.found, &settled.differ);
    Ok(())
}

/// The report, or what is wrong with it.
pub(crate) fn checked(report: TaskReport) -> Event {
    let problems = problems(&report);
    if problems.is_empty() {
        return Event::TaskReport(report);
    }
    Event::TaskReportInvalid { task_id: report.task_id, problems }
}

/// Everything in it that cannot be: the types hold the rest.
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
        "more reads were served from memory than there were",
    );
    let sorted = |paths: &[String]| paths.is_sorted() && paths.windows(2).all(|pair| pair[0] != pair[1]);
    must(sorted(&report.files_read), "files_read is not in order, or names a file twice");
    must(sorted(&report.files_changed), "files_changed is not in order, or names a file twice");
    let own = |path: &String| path.starts_with(".fusee/") || path.starts_with(".git/");
    must(!report.files_changed.iter().any(own), "files_changed names files of the runtime");
    must(
        (report.status == TaskStatus::Failed) <= report.error.is_some(),
        "the task failed and error is missing",
    );
    problems
}

#[cfg(test)]
mod tests;
