//! Repositories inside the work tree that a command created or redirected: git runs what their settings say
//! as soon as its index links to them. `submodules` finds them; they may contain the same settings as a new
//! repository.

use std::path::{Path, PathBuf};

use super::revert::{Undone, revert_at};
use crate::sandbox::policy::{CreatedPathAction, of_a_repository};
use crate::sandbox::protected_paths::submodules::{self, UnreadableIndex};

/// Checks all repositories that the work tree at `top` links to, recursively, and sets aside hooks and
/// settings that could run programs. Repositories whose `.git` is `kept` cannot have been changed.
pub(in crate::sandbox) fn sanitize_nested(top: &Path, kept: &dyn Fn(&Path) -> bool) -> Undone {
    let modules = submodules::git_folder(top).and_then(|folder| folder.join("modules").canonicalize().ok());
    let mut undone = Undone::Nothing;
    let mut ahead = vec![top.to_owned()];
    while let Some(tree) = ahead.pop() {
        let inner = match submodules::linked(&tree) {
            Ok(inner) => inner,
            Err(UnreadableIndex(index)) => {
                undone = undone.or(revert_at(&index, CreatedPathAction::SetAside));
                continue;
            }
        };
        for directory in inner {
            let git = directory.join(".git");
            if !kept(&git) {
                undone = undone.or(sanitize_one(&git, modules.as_deref()));
            }
            ahead.push(directory);
        }
    }
    undone
}

fn sanitize_one(git: &Path, modules: Option<&Path>) -> Undone {
    let Ok(found) = git.symlink_metadata() else { return Undone::Nothing };
    if found.is_dir() {
        let paths = of_a_repository(git);
        return paths.iter().map(|(path, made)| revert_at(path, *made)).fold(Undone::Nothing, Undone::or);
    }
    // The directory where submodules have their settings is protected.
    let inside = |folder: PathBuf| Some(folder.canonicalize().ok()?.starts_with(modules?));
    let is_usual = found.is_file() && submodules::pointed_at(git).and_then(inside).unwrap_or_default();
    if is_usual { Undone::Nothing } else { revert_at(git, CreatedPathAction::SetAside) }
}

#[cfg(test)]
mod tests;
