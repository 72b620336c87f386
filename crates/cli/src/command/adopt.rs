//! `fusee adopt`.

use clap::Args;
use fusee::engine::restore::aside_folder;
use fusee::engine::rewind::{Adoption, FileAction};
use fusee::engine::run::ExitStatus;

use crate::config::flags::DirectoryFlag;
use crate::process::Process;
use crate::process::error::CliError;
use crate::process::stdio;
use crate::project::Project;
use crate::project::find_run;
use crate::project::fork_worktrees;
use crate::ui::format;

/// Bring the changes of a fork back from its worktree.
///
/// Every file that the fork changed is changed in the same way in the directory that it was forked from. A file that was
/// changed there as well since is listed as a conflict; the version there is copied beside the journal before that of the
/// fork takes its place. Changes are confirmed on the terminal; without one, `--yes` is required. The fork and its
/// worktree stay as they are, unless `--remove` removes the worktree afterwards.
#[derive(Args)]
pub(crate) struct AdoptArgs {
    /// Run id, a unique prefix of it, `last` or `last~N`
    #[arg(value_name = "RUN")]
    run: String,
    /// Only print what would be done
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
    /// Remove the worktree of the fork once its changes are here
    #[arg(long, conflicts_with = "dry_run")]
    remove: bool,
    #[command(flatten)]
    place: DirectoryFlag,
}

/// Runs the command.
pub(crate) fn adopt(args: &AdoptArgs, process: &Process) -> Result<ExitStatus, CliError> {
    let project = Project::find(args.place.directory.as_deref(), &process.environment)?;
    let journal = project.journal_with_runs()?;
    project.check_owner()?;
    let row = find_run::named(&journal, &args.run)?;
    let adoption = Adoption::plan(&journal, &row.id)?;
    stdio::print(&describe(&adoption, if args.dry_run { "would be" } else { "will be" }))?;
    if args.dry_run {
        return Ok(ExitStatus::Completed);
    }
    let remove = || match args.remove {
        true => fork_worktrees::remove(&project, &journal, &row.id, &process.environment),
        false => Ok(()),
    };
    if adoption.is_empty() {
        return remove().map(|()| ExitStatus::Completed);
    }
    let is_complete = adoption.left.is_empty();
    if !args.yes {
        let terminals = process.environment.terminals();
        if !(terminals.stdin && terminals.stderr) {
            return Err(CliError::usage("nothing was adopted: there is no terminal to confirm it on")
                .help("pass --yes to adopt without a question, or --dry-run to only list the changes"));
        }
        if !stdio::confirm("adopt these changes? [y/n] ")? {
            stdio::error("nothing was adopted\n");
            return Ok(ExitStatus::Cancelled);
        }
    }
    let aside = aside_folder(&journal, &row.id);
    let report = adoption.apply(&row.id, &aside).map_err(|error| {
        CliError::from(error).help("fix the problem, then adopt again: what was changed already stays")
    })?;
    if !report.aside.is_empty() {
        stdio::error(&format!("the versions of files with conflicts are in {}\n", aside.display()));
    }
    stdio::print(&format!("adopted {}\n", format::count(report.files as u64, "file")))?;
    if !is_complete {
        stdio::error("not every change could be adopted, as listed above; the worktree stays\n");
        return Ok(ExitStatus::Failed);
    }
    remove().map(|()| ExitStatus::Completed)
}

fn describe(adoption: &Adoption, will_be: &str) -> String {
    let mut text = String::new();
    for (path, why) in &adoption.left {
        text.push_str(&format!("not adopted    {path}: {why}\n"));
    }
    for path in &adoption.conflicts {
        text.push_str(&format!("conflict       {path}: it was changed here as well\n"));
    }
    for (path, action) in &adoption.changes {
        let what = match action {
            FileAction::Restored => "changed",
            FileAction::Recreated => "created",
            FileAction::Removed => "removed",
        };
        text.push_str(&format!("{will_be} {what}  {path}\n"));
    }
    if adoption.is_empty() {
        text.push_str("the fork changed no files\n");
    }
    text
}
