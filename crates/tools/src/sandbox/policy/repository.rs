//! What git needs besides the workspace: a repository that lies apart from it, and who the user is.

use std::path::{Path, PathBuf};

use super::{Environment, is_plain};
use crate::sandbox::linked;

/// Longest settings or pointer file that is read.
const MOST: u64 = 256 * 1024;

/// Repositories inside of the work tree that are guarded in advance.
const MOST_INSIDE: usize = 32;

/// Settings of the user's that say who he is, not what is to be run.
const KEPT: [(&str, &str); 4] =
    [("user", "name"), ("user", "email"), ("init", "defaultbranch"), ("core", "autocrlf")];

/// The repository of a linked work tree.
pub(super) struct Apart {
    /// What all its work trees share.
    pub(super) common: PathBuf,
    /// What this one has of its own, inside of that.
    pub(super) tree: PathBuf,
}

/// The repository of a linked work tree, which its `.git` file points at.
///
/// The pointer is a file of the workspace and may have been written by anybody. It counts only if the repository, which
/// commands cannot write to before it counts, points back.
pub(super) fn apart(workspace: &Path) -> Option<Apart> {
    let pointer = workspace.join(".git");
    let tree = workspace.join(read(&pointer)?.strip_prefix("gitdir:")?.trim()).canonicalize().ok()?;
    let back = tree.join(read(&tree.join("gitdir"))?.trim()).canonicalize().ok()?;
    if tree.starts_with(workspace) || back != pointer {
        return None;
    }
    let common = tree.join(read(&tree.join("commondir"))?.trim()).canonicalize().ok()?;
    let is_repository = tree.starts_with(common.join("worktrees")) && common.join("HEAD").is_file();
    (is_repository && is_plain(&tree) && !workspace.starts_with(&common)).then_some(Apart { common, tree })
}

/// The repository of a workspace that is a directory of its work tree: what git must read of it.
///
/// Nothing of it can be changed, since its settings and hooks count for all of the work tree, which is not ours. A home
/// that is a repository is not looked into from one of its directories.
pub(super) fn above(workspace: &Path, home: Option<&Path>) -> Vec<PathBuf> {
    let holds = |path: &&Path| path.join(".git").symlink_metadata().is_ok();
    let Some(top) = workspace.ancestors().find(holds).filter(|top| *top != workspace) else {
        return Vec::new();
    };
    if !is_plain(top) || home.is_some_and(|home| home.starts_with(top)) {
        return Vec::new();
    }
    let repository = top.join(".git");
    match apart(top) {
        Some(Apart { common, .. }) => vec![repository, common],
        // A link or a pointer that nothing points back to may lead anywhere.
        None if repository.symlink_metadata().is_ok_and(|found| found.is_dir()) => vec![repository],
        None => Vec::new(),
    }
}

/// The `.git` of each repository in the work tree that its index links to and that has settings in a place of its own, not
/// where the work tree has those of its submodules.
///
/// More than so many are not guarded in advance; then settings that say more than those of a new repository are set aside
/// by the first command.
pub(super) fn inside(workspace: &Path) -> Vec<PathBuf> {
    let modules = linked::git_folder(workspace).and_then(|folder| folder.join("modules").canonicalize().ok());
    let is_usual = |git: &Path| {
        let folder = linked::pointed_at(git).and_then(|folder| folder.canonicalize().ok());
        folder.zip(modules.as_ref()).is_some_and(|(folder, modules)| folder.starts_with(modules))
    };
    let (mut found, mut ahead) = (Vec::new(), vec![workspace.to_owned()]);
    while let Some(tree) = ahead.pop() {
        for directory in linked::linked(&tree).unwrap_or_default() {
            let git = directory.join(".git");
            let Ok(status) = git.symlink_metadata() else { continue };
            if found.len() < MOST_INSIDE && (status.is_dir() || !is_usual(&git)) {
                found.push(git);
            }
            ahead.push(directory);
        }
    }
    found
}

/// The user's settings without anything but who he is. Whose files they are does not matter in a sandbox, so git is told
/// not to mind.
pub(super) fn identity(home: &Path, environment: &Environment) -> String {
    let settings = environment.value("XDG_CONFIG_HOME").map_or_else(|| home.join(".config"), PathBuf::from);
    let files = [settings.join("git/config"), home.join(".gitconfig")];
    let mut kept = String::from("[safe]\n\tdirectory = *\n");
    for text in files.iter().filter_map(|file| read(file)) {
        kept.push_str(&only_identity(&text));
    }
    kept
}

fn only_identity(text: &str) -> String {
    let (mut kept, mut section) = (String::new(), String::new());
    for line in text.lines().map(str::trim) {
        if let Some(header) = line.strip_prefix('[') {
            section = header.split(']').next().unwrap_or_default().trim().to_ascii_lowercase();
            continue;
        }
        let Some((name, value)) = line.split_once('=') else { continue };
        let (name, value) = (name.trim().to_ascii_lowercase(), value.trim());
        // A line that goes on in the next one is left out rather than understood.
        if KEPT.contains(&(section.as_str(), name.as_str())) && !value.ends_with('\\') {
            kept.push_str(&format!("[{section}]\n\t{name} = {value}\n"));
        }
    }
    kept
}

/// A small text file's content; nothing else, and no device or pipe, is waited for.
fn read(path: &Path) -> Option<String> {
    crate::plain::read_text(path, MOST).ok()
}

#[cfg(test)]
mod tests;
