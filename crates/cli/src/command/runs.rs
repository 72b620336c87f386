//! `fusee runs` and its subcommands on the journal: listing, [`export`], [`gc`], [`diff`], [`undo`].

mod diff;
mod export;
mod gc;
pub(crate) mod undo;

use clap::{Args, Subcommand};
use fusee::engine::journal::{Journal, RunRow, RunStatus};
use fusee::engine::run::ExitStatus;
use fusee::system::SystemClock;
use serde_json::json;

use crate::config::flags::DirectoryFlag;
use crate::process::Process;
use crate::process::clock;
use crate::process::error::CliError;
use crate::process::stdio;
use crate::project::Project;
use crate::project::find_run;
use crate::ui::activity::{self, RunState};
use crate::ui::format;
use crate::ui::line::{Style, StyledLine};

/// Below this width, only id, age and request are listed.
const NARROW: usize = 60;

#[cfg(test)]
mod tests;

/// List and manage the runs of this project.
///
/// Without a subcommand, lists the runs that wait for you, then active runs with what each is doing, then the others,
/// newest first. `ready` marks a rewind or a fork that has not been started. `interrupted` marks a run whose process
/// ended before the run did. `unverified` marks a completed run that changed files without a command that verified the
/// result (`--verify`). Name a run by its id, by the prefix that is listed, or by `last` (the newest) and `last~1` (the
/// one before).
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct RunsArgs {
    #[command(subcommand)]
    command: Option<RunsCommand>,
    #[command(flatten)]
    list: ListArgs,
}

#[derive(Subcommand)]
enum RunsCommand {
    /// List the newest runs, like `fusee runs`
    List(ListArgs),
    Export(export::ExportArgs),
    Gc(gc::GcArgs),
    Diff(diff::DiffArgs),
    Undo(undo::UndoArgs),
    /// Move runs recorded before this directory became a project into the project
    Move(MoveArgs),
}

#[derive(Args)]
struct MoveArgs {
    #[command(flatten)]
    directory: DirectoryFlag,
}

#[derive(Args)]
struct ListArgs {
    /// Maximum number of runs to list
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
    limit: usize,
    /// List all runs
    #[arg(long, conflicts_with = "limit")]
    all: bool,
    /// Print a JSON array
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    directory: DirectoryFlag,
    #[cfg(feature = "restate")]
    #[command(flatten)]
    engine: crate::config::flags::EngineFlags,
}

/// Runs the command.
pub(crate) async fn runs(args: RunsArgs, process: &Process) -> Result<ExitStatus, CliError> {
    #[cfg(feature = "restate")]
    if let None | Some(RunsCommand::List(_)) = &args.command {
        let listing = match &args.command {
            Some(RunsCommand::List(listing)) => listing,
            _ => &args.list,
        };
        if let Some(url) = &listing.engine.engine {
            return super::engine::list(url, listing.json).await;
        }
    }
    match args.command {
        None => list(&args.list, process),
        Some(RunsCommand::List(args)) => list(&args, process),
        #[cfg(feature = "telemetry")]
        Some(RunsCommand::Export(args)) if args.is_otlp() => export::export_otlp(&args, process).await,
        Some(RunsCommand::Export(args)) => export::export(&args, process),
        Some(RunsCommand::Gc(args)) => gc::gc(&args, process).await,
        Some(RunsCommand::Diff(args)) => diff::diff(&args, process),
        Some(RunsCommand::Undo(args)) => undo::undo(&args, process),
        Some(RunsCommand::Move(args)) => move_journal(&args, process),
    }
}

fn move_journal(args: &MoveArgs, process: &Process) -> Result<ExitStatus, CliError> {
    let project = Project::find(args.directory.directory.as_deref(), &process.environment)?;
    let Some(moved) = project.adopt_journal()? else {
        return Err(CliError::usage(format!("there are no runs to move to {}", project.journal.display())));
    };
    stdio::print(&format!("moved {} to {}\n", project.journal.display(), moved.display()))?;
    Ok(ExitStatus::Completed)
}

/// The newest runs as a table.
pub(crate) fn newest(journal: &Journal, limit: usize, columns: usize) -> Result<String, CliError> {
    let rows = journal.runs()?;
    let id_length = find_run::short_length(&rows);
    Ok(if rows.is_empty() {
        "no runs here yet\n".to_owned()
    } else {
        table(&by_state(rows, limit, journal), id_length, journal.now_ms(), columns)
    })
}

/// One row of `fusee runs`, and one object of `fusee runs --json`.
struct ListedRun {
    row: RunRow,
    /// Whether its result is verified; `None` if there was nothing to verify.
    verified: Option<bool>,
    state: RunState,
    /// What it is doing, if it is active.
    doing: String,
}

impl ListedRun {
    /// The status as listed: a result that nothing verified is not simply completed.
    fn status(&self) -> &'static str {
        match (self.state, self.verified) {
            (RunState::NeedsYou, _) => "needs you",
            (RunState::Running, _) => "running",
            (RunState::Ready, _) => "ready",
            (RunState::Interrupted, _) => "interrupted",
            (RunState::Done, Some(false)) => "unverified",
            (RunState::Done | RunState::Failed | RunState::Cancelled, _) => self.row.status.as_str(),
        }
    }
}

/// Adds what the reports of the runs say. A damaged report only leaves that out: `fusee doctor` finds the damage.
fn listed(rows: Vec<RunRow>, journal: &Journal) -> Vec<ListedRun> {
    let verified = |row: &RunRow| journal.report(row).ok().flatten().and_then(|report| report.verified);
    let list = |row: RunRow| {
        let (state, doing) = activity::state_of(journal, &row);
        ListedRun { verified: verified(&row), row, state, doing }
    };
    rows.into_iter().map(list).collect()
}

/// At most `limit` runs: the active ones, by state, then the newest.
fn by_state(rows: Vec<RunRow>, limit: usize, journal: &Journal) -> Vec<ListedRun> {
    let is_live = |row: &RunRow| row.status == RunStatus::Open && journal.is_active(&row.id);
    let (live, mut others): (Vec<RunRow>, Vec<RunRow>) = rows.into_iter().partition(is_live);
    let mut live = listed(live, journal);
    // Stable: within a state, the newest is first.
    live.sort_by_key(|run| run.state);
    live.truncate(limit);
    others.truncate(limit - live.len());
    live.extend(listed(others, journal));
    live
}

fn list(args: &ListArgs, process: &Process) -> Result<ExitStatus, CliError> {
    let project = Project::find(args.directory.directory.as_deref(), &process.environment)?;
    let journal = project.read_journal()?;
    let mut rows = journal.as_ref().map(Journal::runs).transpose()?.unwrap_or_default();
    let (all, id_length) = (rows.len(), find_run::short_length(&rows));
    let limit = if args.all { all } else { args.limit };
    let rows = match journal {
        None => Vec::new(),
        Some(journal) if args.json => {
            rows.truncate(limit);
            listed(rows, &journal)
        }
        Some(journal) => by_state(rows, limit, &journal),
    };
    let text = if args.json {
        let rows: Vec<_> = rows.iter().map(listed_json).collect();
        format!("{:#}\n", serde_json::Value::from(rows))
    } else if rows.is_empty() {
        stdio::error("no runs here yet\n");
        String::new()
    } else {
        let now_ms = fusee::engine::journal::Clock::now_ms(&SystemClock);
        let columns = process.environment.terminals().stdout.then(crate::ui::columns_of_stdout);
        let mut text = table(&rows, id_length, now_ms, columns.unwrap_or(usize::MAX));
        if all > rows.len() {
            text.push_str(&format!("and {} more: fusee runs --all\n", all - rows.len()));
        }
        text
    };
    stdio::print_as(args.json, &text)?;
    if let Some(notice) = project.former_notice() {
        stdio::error(&format!("note: {notice}\n"));
    }
    Ok(ExitStatus::Completed)
}

/// A run of the list, with its state now.
fn listed_json(run: &ListedRun) -> serde_json::Value {
    let mut entry = as_json(&run.row, run.verified);
    entry["state"] = json!(run.state);
    entry["doing"] = json!((!run.doing.is_empty()).then_some(&run.doing));
    entry
}

/// A run as recorded.
fn as_json(row: &RunRow, verified: Option<bool>) -> serde_json::Value {
    json!({
        "run": row.id,
        "status": row.status,
        "title": row.title,
        "started": clock::rfc3339(row.started_ms),
        "ended": row.ended_ms.map(clock::rfc3339),
        "verified": verified,
    })
}

/// A table `columns` wide, in which ids are shortened to `id_length`. In a narrow terminal, the status is shown
/// only if the run did not complete.
fn table(rows: &[ListedRun], id_length: usize, now_ms: i64, columns: usize) -> String {
    let name = |ListedRun { row, .. }: &ListedRun| {
        row.id.as_str().get(..id_length).unwrap_or(row.id.as_str()).to_owned()
    };
    let id = rows.iter().map(|run| name(run).len()).max().unwrap_or_default().max(3);
    let state = rows.iter().map(|run| run.status().len()).max().unwrap_or_default().max(9);
    let mut text = String::new();
    let mut push = |line: &str| {
        text.push_str(&StyledLine::styled(Style::Plain, line).cut(columns).paint(false));
        text.push('\n');
    };
    let line = |run: &str, status: &str, age: &str, took: &str, title: &str| match columns {
        ..NARROW if matches!(status, "completed" | "STATUS") => format!("{run:<id$}  {age:>4}  {title}"),
        ..NARROW => format!("{run:<id$}  {age:>4}  {status}: {title}"),
        _ => format!("{run:<id$}  {status:<state$}  {age:>4}  {took:>9}  {title}"),
    };
    push(&line("RUN", "STATUS", "AGE", "TOOK", "REQUEST"));
    for run in rows {
        let row = &run.row;
        let took =
            row.ended_ms.map(|end| format::span(u64::try_from(end - row.started_ms).unwrap_or_default()));
        let age = format::age(now_ms - row.started_ms);
        push(&line(&name(run), run.status(), &age, took.as_deref().unwrap_or("-"), &row.title));
        if !run.doing.is_empty() {
            push(&format!("  {}", run.doing));
        }
    }
    text
}
