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

/// Apply the changes of a fork to the project it was forked from.
///
/// Every file that the fork changed in its worktree is changed in the original directory. A file that has also changed
/// in the original since the fork is listed as a conflict; the original's version is copied beside the journal before
/// the fork's version replaces it. You are asked to confirm the changes; without a terminal, `--yes` is required. The
/// fork and its worktree are kept, unless `--remove` is given.
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
    /// Remove the worktree of the fork after adopting its changes
    #[arg(long, conflicts_with = "dry_run")]
    remove: bool,
    #[command(flatten)]
    directory: DirectoryFlag,
}

/// Runs the command.
pub(crate) fn adopt(args: &AdoptArgs, process: &Process) -> Result<ExitStatus, CliError> {
    let project = Project::find(args.directory.directory.as_deref(), &process.environment)?;
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
                .help("pass --yes to adopt without asking, or --dry-run to only list the changes"));
        }
        if !stdio::confirm("adopt these changes? [y/n] ")? {
            stdio::error("nothing was adopted\n");
            return Ok(ExitStatus::Cancelled);
        }
    }
    let aside = aside_folder(&journal, &row.id);
    let report = adoption.apply(&row.id, &aside).map_err(|error| {
        CliError::from(error).help("fix the problem, then adopt again; changes already made are kept")
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
        text.push_str(&format!("conflict       {path}: also changed here\n"));
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
