//! `fusee runs gc`.

use std::path::Path;
use std::{fs, io};

use clap::Args;
use fusee::engine::journal::RunId;
use fusee::engine::run::ExitStatus;

use super::undo;
use crate::config::Config;
use crate::config::flags::DirectoryFlag;
use crate::process::Process;
use crate::process::error::CliError;
use crate::process::stdio;
use crate::project::Project;
use crate::project::fork_worktrees;
use crate::ui::format;

/// Remove old runs from the journal.
///
/// Keeps the newest finished runs and every open run. For removed runs it also deletes data that no other run refers to,
/// the copies of files that `fusee runs undo` kept, and the worktrees of forks, and shrinks the journal. To remove the
/// worktree of a run that is kept, use `--worktrees` or `fusee adopt --remove`.
#[derive(Args)]
pub(crate) struct GcArgs {
    /// Number of finished runs to keep
    #[arg(long, value_name = "N", default_value_t = 50)]
    keep: usize,
    /// Also remove the worktrees of all inactive forks; changes in them that were not adopted are lost
    #[arg(long)]
    worktrees: bool,
    #[command(flatten)]
    directory: DirectoryFlag,
}

/// Runs the command.
pub(crate) async fn gc(args: &GcArgs, process: &Process) -> Result<ExitStatus, CliError> {
    let environment = &process.environment;
    let project = Project::find(args.directory.directory.as_deref(), environment)?;
    drop(project.journal_with_runs()?);
    let config = Config::gather(Some(&project.config_file()), environment, Vec::new())?;
    let journal = project.open_journal(config.journal())?;
    let collected = journal.collect(args.keep).await?;
    let freed = format::bytes(collected.before.saturating_sub(collected.after));
    let runs = format::count(collected.runs as u64, "run");
    stdio::print(&format!(
        "removed {runs}, freed {freed}; the journal holds {}\n",
        format::bytes(collected.after)
    ))?;
    let kept: Vec<RunId> = journal.runs()?.into_iter().map(|row| row.id).collect();
    let aside = journal.path().with_file_name("aside");
    let copies = remove_copies(&undo::copies_folder(&journal), &kept)
        .map_err(|error| CliError::failed(format!("cannot remove the copies of undone files: {error}")))?;
    if copies > 0 {
        let runs = format::count(copies, "undone run");
        stdio::print(&format!("removed the copies of files of {runs}\n"))?;
    }
    let aside = remove_copies(&aside, &kept)
        .map_err(|error| CliError::failed(format!("cannot remove files that were set aside: {error}")))?;
    if aside > 0 {
        let runs = format::count(aside, "rewind");
        stdio::print(&format!("removed the files that {runs} set aside\n"))?;
    }
    let removed = fork_worktrees::collect(&project, &journal, args.worktrees, environment)?;
    if removed > 0 {
        let worktrees = format::count(removed, "worktree");
        stdio::print(&format!("removed {worktrees} of forks\n"))?;
    }
    Ok(ExitStatus::Completed)
}

/// Removes the copies kept for runs that are gone; returns their number.
fn remove_copies(folder: &Path, kept: &[RunId]) -> io::Result<u64> {
    let is_folder = |path: &Path| path.symlink_metadata().is_ok_and(|found| found.is_dir());
    if !is_folder(folder) {
        return Ok(0);
    }
    let mut removed = 0;
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let run = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.parse::<RunId>().ok());
        if run.is_some_and(|run| !kept.contains(&run)) && is_folder(&path) {
            fs::remove_dir_all(&path)?;
            removed += 1;
        }
    }
    // Fails if something is left in it.
    let _ = fs::remove_dir(folder);
    Ok(removed)
}
