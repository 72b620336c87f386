//! `fusee rewind`.

use clap::Args;
use fusee::engine::journal::{Journal, RunId};
use fusee::engine::restore::{RestoreReport, aside_folder};
use fusee::engine::rewind::{self, FileAction, Rewind, RewindError, RewindParts};
use fusee::engine::run::ExitStatus;
use fusee::system;

use crate::config::Config;
use crate::config::flags::{DirectoryFlag, RunIdFlag};
use crate::process::Process;
use crate::process::error::CliError;
use crate::process::stdio;
use crate::project::Project;
use crate::project::find_run;
use crate::ui::format;

/// Maximum number of commands listed.
const SHOWN_COMMANDS: usize = 10;

/// Go back to an earlier turn of a run.
///
/// Restores the files of the workspace as they were after TURN completed turns, and creates a new run with the
/// conversation up to that turn. Turn 0 is the state before the run. Nothing is deleted: the old run stays in the
/// journal, and a rewind can itself be rewound, or moved forward to a later turn of the original run. `fusee resume ID`
/// lets the model continue from that turn, and `fusee run --continue ID 'message'` continues with a message.
///
/// Files that cannot be restored are listed first, then every change. A file that you have changed since is copied
/// beside the journal before it is replaced. You are asked to confirm the changes; without a terminal, `--yes` is
/// required. The last line on stdout is the id of the new run. Exits with 1 if a file could not be restored; all other
/// files are restored.
#[derive(Args)]
pub(crate) struct RewindArgs {
    /// The run (an id, a unique prefix of it, `last` or `last~N`) [default: the newest run], and the number of completed
    /// turns to go back to
    #[arg(value_names = ["RUN", "TURN"], num_args = 1..=2, required = true)]
    target: Vec<String>,
    /// Restore only the files; the conversation stays as it is
    #[arg(long, conflicts_with_all = ["conversation", "both"])]
    files: bool,
    /// Rewind only the conversation; the files stay as they are
    #[arg(long, conflicts_with = "both")]
    conversation: bool,
    /// Restore the files and rewind the conversation, which is the default
    #[arg(long)]
    both: bool,
    /// Only print what would be done
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    name: RunIdFlag,
    #[command(flatten)]
    directory: DirectoryFlag,
}

impl RewindArgs {
    fn parts(&self) -> RewindParts {
        RewindParts { files: !self.conversation, conversation: !self.files }
    }

    /// The name of the run, if one is given, and the turn.
    fn target(&self) -> Result<(Option<&str>, u32), CliError> {
        let (run, turn) = match self.target.as_slice() {
            [run, turn] => (Some(run.as_str()), turn),
            [turn] => (None, turn),
            _ => return Err(CliError::usage("expected a run and a turn")),
        };
        let number = turn.parse().map_err(|_| {
            CliError::usage(format!("`{turn}` is not a turn: expected the number of completed turns"))
                .help("`fusee show RUN` shows the turns of a run; 0 is the state before it")
        })?;
        Ok((run, number))
    }
}

/// Runs the command.
pub(crate) async fn rewind(args: RewindArgs, process: &Process) -> Result<ExitStatus, CliError> {
    let environment = &process.environment;
    let (name, turn) = args.target()?;
    let project = Project::find(args.directory.directory.as_deref(), environment)?;
    drop(project.journal_with_runs()?);
    project.check_owner()?;
    let config = Config::gather(Some(&project.config_file()), environment, Vec::new())?;
    let journal = project.open_journal(config.journal())?;
    finish_interrupted(&journal).await;
    let row = find_run::named_or_newest(&journal, name)?;
    let planned = Rewind::plan(&journal, &row.id, turn, args.parts())?;
    stdio::error(&describe(&planned, if args.dry_run { "would be" } else { "will be" }));
    if args.dry_run {
        return Ok(ExitStatus::Completed);
    }
    if !args.yes {
        let terminals = environment.terminals();
        if !(terminals.stdin && terminals.stderr) {
            return Err(CliError::usage("nothing was rewound: there is no terminal to confirm it on")
                .help("pass --yes to rewind without asking, or --dry-run to only list the changes"));
        }
        if !stdio::confirm("rewind? [y/n] ")? {
            stdio::error("nothing was rewound\n");
            return Ok(ExitStatus::Cancelled);
        }
    }
    let run = args.name.run_id.map_or_else(system::new_run_id, Ok).map_err(CliError::failed)?;
    let left = planned.left.len() as u64;
    let report = planned.apply(&journal, &run).await.map_err(|error| {
        let help = format!("fix the problem, then run `fusee resume {run}` or `fusee rewind` again");
        CliError::from(error).help(help)
    })?;
    stdio::error(&done(&report, &journal, &run));
    stdio::error(&format!("`fusee resume {run}` continues from there\n"));
    stdio::print(&format!("{run}\n"))?;
    if left > 0 {
        stdio::error(&format!("{} could not be restored, as listed above\n", format::count(left, "file")));
        return Ok(ExitStatus::Failed);
    }
    Ok(ExitStatus::Completed)
}

/// Completes the rewinds that were interrupted in the middle; a problem with one is a warning.
pub(crate) async fn finish_interrupted(journal: &Journal) {
    match rewind::finish_interrupted(journal).await {
        Ok(runs) => {
            for run in runs {
                stdio::error(&format!("the interrupted rewind {run} was completed\n"));
            }
        }
        Err(error) => stdio::error(&format!("warning: an interrupted rewind was not completed: {error}\n")),
    }
}

/// Describes the planned changes, after what cannot be restored.
pub(crate) fn describe(rewind: &Rewind, will_be: &str) -> String {
    let mut text = format!("run {} after {}\n", rewind.run, format::count(rewind.turn.into(), "turn"));
    for (path, why) in &rewind.left {
        text.push_str(&format!("not restored   {path}: {why}\n"));
    }
    if !rewind.commands.is_empty() {
        let count = format::count(rewind.commands.len() as u64, "command");
        text.push_str(&format!(
            "not restored   changes by {count} to ignored files, .git or outside the workspace, if any:\n"
        ));
        for command in rewind.commands.iter().take(SHOWN_COMMANDS) {
            text.push_str(&format!("                 {}\n", format::one_line(command, 100)));
        }
        if rewind.commands.len() > SHOWN_COMMANDS {
            text.push_str(&format!("                 and {} more\n", rewind.commands.len() - SHOWN_COMMANDS));
        }
    }
    for path in &rewind.aside {
        text.push_str(&format!("{will_be} set aside  {path}: changed since then\n"));
    }
    for (path, action) in &rewind.changes {
        let what = match action {
            FileAction::Restored => "restored",
            FileAction::Recreated => "recreated",
            FileAction::Removed => "removed",
        };
        text.push_str(&format!("{will_be} {what}  {path}\n"));
    }
    for path in &rewind.plan.removed {
        text.push_str(&format!("{will_be} removed  {path}/ if it is empty\n"));
    }
    for path in &rewind.plan.made {
        text.push_str(&format!("{will_be} recreated  {path}/\n"));
    }
    if rewind.parts.files && rewind.plan.is_empty() {
        text.push_str("no files need to change\n");
    }
    text
}

/// Says what was done.
pub(crate) fn done(report: &RestoreReport, journal: &Journal, run: &RunId) -> String {
    let mut text = String::new();
    if report.files > 0 {
        text.push_str(&format!("rewound {}\n", format::count(report.files as u64, "file")));
    }
    if !report.aside.is_empty() {
        let (files, folder) = (format::count(report.aside.len() as u64, "file"), aside_folder(journal, run));
        text.push_str(&format!("set aside {files} in {}:\n", folder.display()));
        report.aside.iter().for_each(|path| text.push_str(&format!("  {path}\n")));
    }
    text
}

impl From<RewindError> for CliError {
    fn from(error: RewindError) -> Self {
        match error {
            RewindError::Journal(error) => error.into(),
            RewindError::Start(error) => error.into(),
            RewindError::NoSuchTurn { .. } | RewindError::NoFork { .. } => Self::usage(error.to_string()),
            RewindError::InProgress { .. } => {
                Self::usage(error.to_string()).help("stop it first, or wait until it has ended")
            }
            RewindError::Files(_) | RewindError::Aborted(_) => Self::failed(error.to_string()),
        }
    }
}
