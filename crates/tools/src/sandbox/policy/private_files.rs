//! System settings that are readable for root but not for everyone: commands of root must not see them either.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Maximum number of paths that are hidden one by one; after that, whole directories are.
const MAX_PATHS: usize = 200;

/// Maximum depth of the directories that are examined; deeper ones are hidden.
const MAX_DEPTH: usize = 8;

const READ_BY_OTHERS: u32 = 0o004;
const ENTERED_BY_OTHERS: u32 = 0o001;

/// Files and directories below these that this process can read as root, and other users cannot. Empty for
/// other users: the system already refuses those files to them.
pub(super) fn below(roots: impl IntoIterator<Item = &'static str>) -> Vec<PathBuf> {
    let mut hidden = Vec::new();
    if rustix::process::geteuid().is_root() {
        roots.into_iter().for_each(|root| collect(Path::new(root), 0, &mut hidden));
    }
    hidden
}

fn collect(directory: &Path, depth: usize, hidden: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        // Not followed: the target of a link is hidden by its own path. Most of /etc is links, and their type is free.
        if entry.file_type().is_ok_and(|kind| kind.is_symlink()) {
            continue;
        }
        let Ok(status) = entry.metadata() else { continue };
        let (path, mode) = (entry.path(), status.permissions().mode());
        let is_private = if status.is_dir() {
            mode & ENTERED_BY_OTHERS == 0
        } else {
            status.is_file() && mode & READ_BY_OTHERS == 0
        };
        match (is_private, status.is_dir()) {
            (true, _) if hidden.len() >= MAX_PATHS && depth > 0 => {
                hidden.retain(|known| !known.starts_with(directory));
                hidden.push(directory.to_owned());
                return;
            }
            (true, _) => hidden.push(path),
            (false, true) if depth >= MAX_DEPTH => hidden.push(path),
            (false, true) => collect(&path, depth + 1, hidden),
            (false, false) => {}
        }
    }
}

#[cfg(test)]
mod tests;
