//! `fusee runs undo`.

use std::path::PathBuf;

use clap::Args;
use fusee::engine::journal::{Journal, RunId, RunRow, RunStatus};
use fusee::engine::run::{self, ExitStatus};
use fusee::engine::tools::Workspace;
use fusee::engine::undo::UndoPlan;

use crate::config::flags::{DirectoryFlag, RunArg};
use crate::process::Process;
use crate::process::error::CliError;
use crate::process::stdio;
use crate::project::Project;
use crate::project::find_run;
use crate::ui::format;

/// Maximum number of commands listed.
const SHOWN_COMMANDS: usize = 10;

/// Undo the file changes of a run.
///
/// Restores every file that the run's tools and commands changed to its content before the run: changed files
/// are restored, new ones removed, deleted ones created again. The content comes from the journal, or from
/// git if git had that version. Directories created by the run are removed if they are empty. A file that has
/// changed again since is left alone. For files that changed while a command ran, Fusee cannot tell who changed them: at a
/// terminal you are asked whether to undo them as well, and a copy of each is kept beside the journal.
///
/// Changes that cannot be undone are listed first: files that git did not have and that were too large to be saved,
/// and the commands that were run, since their changes to ignored files, .git, permissions or files outside
/// the workspace are not known. Then all planned changes are listed, and you are asked to
/// confirm; without a terminal, `--yes` is required.
#[derive(Args)]
pub(crate) struct UndoArgs {
    #[command(flatten)]
    run: RunArg,
    /// Only print what would be done
    #[arg(long)]
    dry_run: bool,
    /// Do not ask for confirmation
    #[arg(long, conflicts_with = "dry_run")]
    yes: bool,
    #[command(flatten)]
    directory: DirectoryFlag,
}

/// Runs the command.
pub(crate) fn undo(args: &UndoArgs, process: &Process) -> Result<ExitStatus, CliError> {
    let project = Project::find(args.directory.directory.as_deref(), &process.environment)?;
    let journal = project.journal_with_runs()?;
    project.check_owner()?;
    let row = find_run::named_or_newest(&journal, args.run.run.as_deref())?;
    let mut undoing = PreparedUndo::plan(&journal, &row)?;
    let terminals = process.environment.terminals();
    let can_ask = terminals.stdin && terminals.stderr;
    if can_ask && !args.yes && !args.dry_run && !undoing.undo.uncertain.is_empty() {
        stdio::print(&undoing.describe_uncertain())?;
        if !stdio::confirm("undo them as well? a copy of each is kept [y/n] ")? {
            undoing.undo.leave_uncertain();
        }
    }
    stdio::print(&undoing.describe(if args.dry_run { "would be" } else { "will be" }))?;
    let exit = undoing.exit();
    if args.dry_run || undoing.is_empty() {
        return Ok(exit);
    }
    if !args.yes && !can_ask {
        return Err(CliError::usage("nothing was undone: there is no terminal to confirm it on")
            .help("pass --yes to undo without asking, or --dry-run to only list the changes"));
    }
    if !args.yes && !stdio::confirm("undo these changes? [y/n] ")? {
        stdio::error("nothing was undone\n");
        return Ok(ExitStatus::Cancelled);
    }
    let done = undoing.apply()?;
    if !undoing.undo.uncertain.is_empty() {
        stdio::error(&format!(
            "copies of files that changed while a command ran are in {}\n",
            undoing.copies.display()
        ));
    }
    stdio::print(&format!("{done}\n")).map(|()| exit)
}

/// Where copies of undone files are kept, by run, until `fusee runs gc` removes the run.
pub(super) fn copies_folder(journal: &Journal) -> PathBuf {
    journal.path().with_file_name("undone")
}

/// The planned undo of a run.
pub(crate) struct PreparedUndo {
    undo: UndoPlan,
    workspace: Workspace,
    run: RunId,
    /// Where copies are kept of files that may have been changed by someone else.
    copies: PathBuf,
}

impl PreparedUndo {
    /// Plans the undo without changing anything.
    pub(crate) fn plan(journal: &Journal, row: &RunRow) -> Result<Self, CliError> {
        if row.status == RunStatus::Open && journal.is_active(&row.id) {
            return Err(CliError::usage(format!(
                "run {} is in progress: another process may be changing its files",
                row.id
            ))
            .help("stop it first, then undo"));
        }
        let settings = run::settings_of(journal, &row.id)?;
        let workspace = Workspace::open(&settings.workspace).map_err(|error| {
            CliError::usage(format!("{error}; undo needs the directory that the run worked in"))
        })?;
        let undo = UndoPlan::plan(journal, &row.id, &workspace)?;
        let copies = copies_folder(journal).join(row.id.as_str());
        Ok(Self { undo, workspace, run: row.id.clone(), copies })
    }

    /// Whether no file would be changed.
    pub(crate) fn is_empty(&self) -> bool {
        self.undo.is_empty()
    }

    fn exit(&self) -> ExitStatus {
        if self.undo.left.is_empty() { ExitStatus::Completed } else { ExitStatus::Failed }
    }

    /// Applies all changes or none, and returns a summary.
    pub(crate) fn apply(&self) -> Result<String, CliError> {
        self.undo.apply(&self.workspace, &self.run, &self.copies).map_err(|problem| {
            CliError::failed(format!("nothing was undone: {problem}"))
                .help("fix the problem, then undo again")
        })?;
        let directories = (self.undo.emptied.len() + self.undo.missing.len()) as u64;
        let mut done = format!("undone: {}", format::count(self.undo.files.len() as u64, "file"));
        if directories > 0 {
            let many = if directories == 1 { "directory" } else { "directories" };
            done.push_str(&format!(", {directories} {many}"));
        }
        Ok(done)
    }

    /// Lists the files that the user may have changed.
    fn describe_uncertain(&self) -> String {
        let mut text =
            "These files changed while a command ran; you may have changed them yourself:\n".to_owned();
        text.extend(self.undo.uncertain.iter().map(|path| format!("  {path}\n")));
        text
    }

    /// Describes the planned changes, after what cannot be undone.
    pub(crate) fn describe(&self, will_be: &str) -> String {
        let (undo, mut text) = (&self.undo, String::new());
        for (path, why) in &undo.left {
            text.push_str(&format!("left as it is  {path}: {why}\n"));
        }
        if !undo.commands.is_empty() {
            let count = format::count(undo.commands.len() as u64, "command");
            text.push_str(&format!(
                "not undone     changes by {count} to ignored files, .git or permissions, if any:\n"
            ));
            for command in undo.commands.iter().take(SHOWN_COMMANDS) {
                text.push_str(&format!("                 {}\n", format::one_line(command, 100)));
            }
            if undo.commands.len() > SHOWN_COMMANDS {
                let more = undo.commands.len() - SHOWN_COMMANDS;
                text.push_str(&format!("                 and {more} more\n"));
            }
        }
        for file in &undo.files {
            let what = match (&file.now, &file.before) {
                (_, None) => "removed",
                (None, Some(_)) => "recreated",
                (Some(_), Some(_)) => "restored",
            };
            text.push_str(&format!("{will_be} {what}  {}\n", file.path));
        }
        let directories = [(&undo.emptied, "removed"), (&undo.missing, "recreated")];
        for (path, what) in
            directories.iter().flat_map(|(paths, what)| paths.iter().map(move |path| (path, what)))
        {
            text.push_str(&format!("{will_be} {what}  {path}/\n"));
        }
        if undo.is_empty() {
            let why = if undo.already.is_empty() {
                "the run changed no files"
            } else {
                "all files already have their content from before the run"
            };
            text.push_str(if undo.left.is_empty() { why } else { "nothing else to undo" });
            text.push('\n');
        }
        text
    }
}

/// Whether a run has changes that can be undone.
pub(crate) fn has_something(journal: &Journal, row: &RunRow) -> bool {
    PreparedUndo::plan(journal, row).is_ok_and(|undoing| !undoing.is_empty())
}
