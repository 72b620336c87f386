//! Repositories inside the work tree that a command created or redirected: git runs what their settings say
//! as soon as its index links to them. `submodules` finds them; they may contain the same settings as a new
//! repository.
#![deny(clippy::let_underscore_must_use, clippy::unused_result_ok)]

use std::io;
use std::path::Path;

use rustix::fs::FileType;

use super::entry::Entry;
use super::report::ProtectionReport;
use super::revert::revert_at;
use crate::sandbox::policy::{CreatedPathAction, of_a_repository};
use crate::sandbox::protected_paths::submodules::{self, UnreadableIndex};

/// Checks all repositories that the work tree at `top` links to, recursively, and sets aside hooks and
/// settings that could run programs. Repositories whose `.git` is `kept` cannot have been changed.
pub(in crate::sandbox) fn sanitize_nested(
    top: &Path,
    kept: &dyn Fn(&Path) -> bool,
    report: &mut ProtectionReport,
) {
    let modules = submodules::git_folder(top).and_then(|folder| folder.join("modules").canonicalize().ok());
    let mut ahead = vec![top.to_owned()];
    while let Some(tree) = ahead.pop() {
        let inner = match submodules::linked(&tree) {
            Ok(inner) => inner,
            Err(UnreadableIndex(index)) => {
                // An index elsewhere is not the command's, and no link leads there without another finding.
                if index.starts_with(top) {
                    revert_at(&index, CreatedPathAction::SetAside, report);
                }
                continue;
            }
        };
        for directory in inner {
            let git = directory.join(".git");
            if !kept(&git) {
                sanitize_one(&git, modules.as_deref(), report);
            }
            ahead.push(directory);
        }
    }
}

fn sanitize_one(git: &Path, modules: Option<&Path>, report: &mut ProtectionReport) {
    let kind = Entry::at(git).and_then(|entry| entry.map_or(Ok(None), |entry| entry.kind()));
    match kind {
        Ok(None) => {}
        Ok(Some(FileType::Directory)) => {
            of_a_repository(git).iter().for_each(|(path, on_create)| revert_at(path, *on_create, report));
        }
        // The directory where submodules have their settings is protected.
        Ok(Some(FileType::RegularFile)) if leads_into(git, modules).unwrap_or_default() => {}
        Ok(Some(_)) => revert_at(git, CreatedPathAction::SetAside, report),
        Err(error) => report.note_failure(git, &error),
    }
}

/// Whether a `.git` file points into this directory. An unreadable pointer leads nowhere.
fn leads_into(git: &Path, modules: Option<&Path>) -> io::Result<bool> {
    let (Some(modules), Some(folder)) = (modules, submodules::pointed_at(git)) else { return Ok(false) };
    Ok(folder.canonicalize()?.starts_with(modules))
}

#[cfg(test)]
mod tests;
