//! Worktrees of the forks of a project: one folder for each fork, named after its run, in the user's state folder.
//! `fusee fork` makes them; `fusee runs gc` and `fusee adopt --remove` remove them.

use std::io;
use std::path::PathBuf;

use fusee::engine::journal::{Journal, RunId};
use fusee::engine::run;
use fusee::engine::tools::worktree::Worktree;

use crate::process::environment::Environment;
use crate::process::error::CliError;
use crate::project::Project;

/// The folder for the worktrees of a project.
pub(crate) fn folder(project: &Project, environment: &Environment) -> Result<PathBuf, CliError> {
    let states = environment.state_folder().ok_or_else(|| {
        CliError::usage("no location for the worktree: HOME is not set").help("set HOME or XDG_STATE_HOME")
    })?;
    Ok(states.join("worktrees").join(project.state_name()))
}

/// Removes the worktree of a fork. A fork without one is left as it is.
pub(crate) fn remove(
    project: &Project,
    journal: &Journal,
    run: &RunId,
    environment: &Environment,
) -> Result<(), CliError> {
    let settings = run::settings_of(journal, run)?;
    let root = folder(project, environment)?.canonicalize();
    // A fork that continues another one works in the worktree of that one.
    let root = root.ok().and_then(|folder| {
        let name = settings.workspace.strip_prefix(&folder).ok()?.components().next()?;
        Some(folder.join(name))
    });
    let Some(root) = root else { return Ok(()) };
    if let Some(other) = worked_on(journal, &root) {
        let problem = format!("{} is not removed: run {other} is using it", root.display());
        return Err(CliError::usage(problem).help("wait until it has ended, or cancel it"));
    }
    Worktree::remove(&project.directory, &root);
    match root.exists() {
        true => Err(CliError::failed(format!("cannot remove {}", root.display()))),
        false => Ok(()),
    }
}

/// Removes the worktrees of runs that are no longer in the journal, or `all` on which no process works; returns their
/// number.
pub(crate) fn collect(
    project: &Project,
    journal: &Journal,
    all: bool,
    environment: &Environment,
) -> Result<u64, CliError> {
    let Ok(folder) = folder(project, environment)?.canonicalize() else { return Ok(0) };
    let failed = |error: io::Error| {
        CliError::failed(format!("cannot remove worktrees in {}: {error}", folder.display()))
    };
    let mut removed = 0;
    for entry in std::fs::read_dir(&folder).map_err(failed)? {
        let root = entry.map_err(failed)?.path();
        let run = root.file_name().and_then(|name| name.to_str()).and_then(|name| name.parse::<RunId>().ok());
        let Some(run) = run.filter(|_| root.symlink_metadata().is_ok_and(|found| found.is_dir())) else {
            continue;
        };
        if (all || journal.run(run.as_str()).is_err()) && worked_on(journal, &root).is_none() {
            Worktree::remove(&project.directory, &root);
            removed += u64::from(!root.exists());
        }
    }
    Ok(removed)
}

/// A run that works in this worktree now.
fn worked_on(journal: &Journal, root: &std::path::Path) -> Option<RunId> {
    let is_here = |run: &RunId| {
        journal.is_active(run)
            && run::settings_of(journal, run).is_ok_and(|settings| settings.workspace.starts_with(root))
    };
    journal.runs().ok()?.into_iter().map(|row| row.id).find(is_here)
}
