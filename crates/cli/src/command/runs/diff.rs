//! `fusee runs diff`.

use clap::Args;
use fusee::engine::journal::{Journal, RunId, StepKind, StepRow};
use fusee::engine::rewind::{self, FileDifference};
use fusee::engine::run::ExitStatus;
use fusee::engine::tools::workspace::DiskState;
use serde_json::Value;
use similar::TextDiff;

use crate::config::flags::DirectoryFlag;
use crate::process::Process;
use crate::process::error::CliError;
use crate::process::stdio;
use crate::project::Project;
use crate::project::find_run;
use crate::ui::format;

/// Show where two runs diverge.
///
/// Compares the steps of both runs in order, first the request of each step, then its result, and prints the
/// first difference as a diff. Call ids, token counts and times are ignored. For forks with their own worktrees, the
/// files that they changed are compared as well. Exits with 0 if the runs are the same, otherwise with 1.
#[derive(Args)]
pub(crate) struct DiffArgs {
    /// The first run: its id, a unique prefix of it, `last` or `last~N`
    #[arg(value_name = "RUN")]
    one: String,
    /// The second run
    #[arg(value_name = "OTHER")]
    other: String,
    #[command(flatten)]
    directory: DirectoryFlag,
}

/// Runs the command.
pub(crate) fn diff(args: &DiffArgs, process: &Process) -> Result<ExitStatus, CliError> {
    let project = Project::find(args.directory.directory.as_deref(), &process.environment)?;
    let journal = project.journal_with_runs()?;
    let one = find_run::named(&journal, &args.one)?.id;
    let other = find_run::named(&journal, &args.other)?.id;
    let (mut text, same) = compare(&journal, &one, &other)?;
    text.push_str(&files(&journal, &one, &other)?);
    stdio::print(&text)?;
    Ok(if same { ExitStatus::Completed } else { ExitStatus::Failed })
}

fn compare(journal: &Journal, one: &RunId, other: &RunId) -> Result<(String, bool), CliError> {
    let (left, right) = (journal.steps(one)?, journal.steps(other)?);
    let names = (one.as_str(), other.as_str());
    let mut text = String::new();
    // Different settings are reported separately from different steps.
    if let (Some(mine), Some(theirs)) = (settings(&left), settings(&right))
        && mine != theirs
    {
        text.push_str(&format!(
            "the runs were started with different settings:\n{}\n",
            unified(&mine, &theirs, names)
        ));
    }
    let left: Vec<&StepRow> = left.iter().filter(|step| is_work(step)).collect();
    let right: Vec<&StepRow> = right.iter().filter(|step| is_work(step)).collect();
    for (mine, theirs) in left.iter().zip(&right) {
        if let Some(difference) = part(mine, theirs, names) {
            text.push_str(&difference);
            return Ok((text, false));
        }
    }
    let same = left.len() == right.len();
    if same {
        text.push_str(&format!("the runs are the same: {}\n", format::count(left.len() as u64, "step")));
    } else {
        let (longer, run) = if left.len() > right.len() { (&left, one) } else { (&right, other) };
        let shared = left.len().min(right.len());
        let next = longer
            .get(shared)
            .map(|step| format!(" with {} `{}`", step.kind, step.callee))
            .unwrap_or_default();
        let shared = format::count(shared as u64, "step");
        text.push_str(&format!("the runs are the same for {shared}; {run} continues{next}\n"));
    }
    Ok((text, same))
}

/// The settings of a run, without what always differs between a fork and its origin.
fn settings(steps: &[StepRow]) -> Option<Value> {
    let step = steps.iter().find(|step| step.kind == StepKind::Settings)?;
    let mut settings = step.result.clone()?;
    settings.as_object_mut()?.remove("origin");
    Some(settings)
}

/// The files that differ between the workspaces of two forks, as a diff.
fn files(journal: &Journal, one: &RunId, other: &RunId) -> Result<String, CliError> {
    let mut text = String::new();
    for FileDifference { path, one: mine, other: theirs } in rewind::file_differences(journal, one, other)? {
        if text.is_empty() {
            text.push_str("their files differ:\n");
        }
        match (shown(&mine), shown(&theirs)) {
            (Some(mine), Some(theirs)) if mine != theirs => {
                let (before, after) = (format!("{one}/{path}"), format!("{other}/{path}"));
                let diff = TextDiff::from_lines(&mine, &theirs);
                text.push_str(&diff.unified_diff().context_radius(2).header(&before, &after).to_string());
            }
            (Some(_), Some(_)) => text.push_str(&format!("{path}: other permissions\n")),
            _ => text.push_str(&format!("{path}: not text, or too large to be shown\n")),
        }
    }
    Ok(text)
}

/// A file as text; empty if there is none.
fn shown(state: &DiskState) -> Option<String> {
    match state {
        DiskState::Absent | DiskState::Directory => Some(String::new()),
        DiskState::File { content, .. } | DiskState::Link(content) => String::from_utf8(content.clone()).ok(),
        DiskState::Large { .. } | DiskState::Special => None,
    }
}

fn is_work(step: &StepRow) -> bool {
    match step.kind {
        StepKind::Settings | StepKind::Environment => false,
        StepKind::Model | StepKind::Tool | StepKind::Wait | StepKind::FanOut | StepKind::Hook => true,
    }
}

fn part(mine: &StepRow, theirs: &StepRow, names: (&str, &str)) -> Option<String> {
    let at = &mine.key;
    if (mine.kind, &mine.callee) != (theirs.kind, &theirs.callee) {
        return Some(format!(
            "the runs diverge at {at}:\n  {}: {} `{}`\n  {}: {} `{}`\n",
            names.0, mine.kind, mine.callee, names.1, theirs.kind, theirs.callee
        ));
    }
    let what = format!("{} `{}`", mine.kind, mine.callee);
    let (asked, asked_there) = (without_varying_values(&mine.args), without_varying_values(&theirs.args));
    if asked != asked_there {
        let diff = unified(&asked, &asked_there, names);
        return Some(format!("the runs diverge at {at}: {what} has a different request\n{diff}"));
    }
    let got = |step: &StepRow| step.result.as_ref().map(without_varying_values).unwrap_or_default();
    let (got, got_there) = (got(mine), got(theirs));
    (got != got_there).then(|| {
        let diff = unified(&got, &got_there, names);
        format!("the runs diverge at {at}: {what} has a different result\n{diff}")
    })
}

/// Removes values that differ between equal runs: the server's call ids, token counts, line numbers.
fn without_varying_values(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let is_call = fields.contains_key("name") && fields.contains_key("arguments");
            let kept = fields.iter().filter(|(key, _)| {
                !(matches!(key.as_str(), "usage" | "source_line" | "call_id") || is_call && *key == "id")
            });
            kept.map(|(key, value)| (key.clone(), without_varying_values(value)))
                .collect::<serde_json::Map<_, _>>()
                .into()
        }
        Value::Array(items) => items.iter().map(without_varying_values).collect(),
        other => other.clone(),
    }
}

fn unified(mine: &Value, theirs: &Value, names: (&str, &str)) -> String {
    let (mine, theirs) = (pretty(mine), pretty(theirs));
    TextDiff::from_lines(&mine, &theirs).unified_diff().context_radius(2).header(names.0, names.1).to_string()
}

/// Pretty-prints JSON with long texts split into lines, so that a diff is readable.
fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default().replace("\\n", "\n    ") + "\n"
}
