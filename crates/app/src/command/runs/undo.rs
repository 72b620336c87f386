//! `fusee runs undo`.

use clap::Args;
use fusee_engine::journal::{Journal, RunRow, RunStatus};
use fusee_engine::run::{self, Exit};
use fusee_engine::tools::Workspace;
use fusee_engine::undo::Undo;

use crate::arguments::shared::{Place, RunArg};
use crate::command::Process;
use crate::face::words;
use crate::failure::Failure;
use crate::output;
use crate::project::Project;
use crate::selection;

/// More commands than this are only counted.
const SHOWN_COMMANDS: usize = 10;

/// Take back what a run changed in its files.
///
/// Every file that the run's tools and commands changed gets the content back that it had before the run: changed files
/// are restored, new ones removed, deleted ones made again. The content comes from the journal, or from git where git had
/// the file as it was. A file that was changed again since is left alone. What cannot be put back is said first: files
/// that git did not have and that were too large to be kept, and the commands that were run, since what they changed in
/// ignored files, in .git, in permissions or outside of the workspace is not known.
#[derive(Args)]
pub(crate) struct UndoArgs {
    #[command(flatten)]
    run: RunArg,
    /// Only say what would be done
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    place: Place,
}

/// Takes it back.
pub(crate) fn undo(args: &UndoArgs, process: &Process) -> Result<Exit, Failure> {
    let project = Project::find(args.place.directory.as_deref(), &process.environment)?;
    let journal = project.journal_with_runs()?;
    let row = selection::named(&journal, &args.run.run)?;
    let (text, exit) = take_back(&journal, &row, args.dry_run)?;
    output::print(&text).map(|()| exit)
}

/// Takes back what a run changed, and tells what came of it.
pub(crate) fn take_back(journal: &Journal, row: &RunRow, dry_run: bool) -> Result<(String, Exit), Failure> {
    if row.status == RunStatus::Open && journal.is_worked_on(&row.id) {
        return Err(Failure::usage(format!("run {} is at work: a process is changing files for it", row.id))
            .help("end it first, then undo"));
    }
    let settings = run::settings_of(journal, &row.id)?;
    let workspace = Workspace::open(&settings.workspace).map_err(|error| {
        Failure::usage(format!("{error}; undo needs the directory that the run worked in"))
    })?;
    let undo = Undo::plan(journal, &row.id, &workspace)?;
    let text = said(&undo, dry_run);
    if !dry_run && !undo.files.is_empty() {
        undo.carry_out(&workspace, &row.id).map_err(|problem| {
            Failure::failed(format!("nothing was undone: {problem}")).help("see to that, then undo again")
        })?;
    }
    Ok((text, if undo.left.is_empty() { Exit::Completed } else { Exit::Failed }))
}

/// Whether anything of a run can be taken back.
pub(crate) fn has_something(journal: &Journal, row: &RunRow) -> bool {
    let settings = run::settings_of(journal, &row.id).ok();
    let workspace = settings.and_then(|settings| Workspace::open(&settings.workspace).ok());
    let plan = workspace.and_then(|workspace| Undo::plan(journal, &row.id, &workspace).ok());
    plan.is_some_and(|undo| !undo.files.is_empty())
}

/// What cannot be put back comes first.
fn said(undo: &Undo, dry_run: bool) -> String {
    let mut text = String::new();
    for (path, why) in &undo.left {
        text.push_str(&format!("left as it is  {path}: {why}\n"));
    }
    if !undo.commands.is_empty() {
        let count = words::count(undo.commands.len() as u64, "command");
        text.push_str(&format!("not undone     what {count} of the run changed in ignored files, .git or permissions, if anything:\n"));
        for command in undo.commands.iter().take(SHOWN_COMMANDS) {
            text.push_str(&format!("                 {}\n", words::one_line(command, 100)));
        }
        if undo.commands.len() > SHOWN_COMMANDS {
            text.push_str(&format!("                 and {} more\n", undo.commands.len() - SHOWN_COMMANDS));
        }
    }
    let would = if dry_run { "would be " } else { "" };
    for file in &undo.files {
        let what = match (&file.now, &file.before) {
            (_, None) => "removed",
            (None, Some(_)) => "made again",
            (Some(_), Some(_)) => "put back",
        };
        text.push_str(&format!("{would}{what}  {}\n", file.path));
    }
    if undo.files.is_empty() {
        let why = if undo.already.is_empty() {
            "the run changed no files"
        } else {
            "all files hold what they held before the run"
        };
        text.push_str(if undo.left.is_empty() { why } else { "nothing else is to be undone" });
        text.push('\n');
    }
    text
}
