//! Finds what git needs besides the workspace: a repository outside of it, and the user's identity.

use std::path::{Path, PathBuf};

use super::{CommandEnvironment, is_plain};
use crate::sandbox::protected_paths::submodules;

/// Maximum size in bytes of a settings or pointer file.
const MAX_BYTES: u64 = 256 * 1024;

/// Maximum number of repositories inside the work tree that are protected in advance.
const MAX_INSIDE: usize = 32;

/// User settings that commands may see: none of them names a program to run.
const KEPT: [(&str, &str); 4] =
    [("user", "name"), ("user", "email"), ("init", "defaultbranch"), ("core", "autocrlf")];

/// The repository of a linked work tree.
pub(super) struct LinkedRepository {
    /// The git directory that all its work trees share.
    pub(super) common: PathBuf,
    /// The part of it that belongs to this work tree.
    pub(super) tree: PathBuf,
}

/// The repository of a linked work tree, which its `.git` file points to.
///
/// The pointer is a file in the workspace that anything may have written. It is trusted only if the
/// repository, which commands cannot write to until it is trusted, points back.
pub(super) fn linked_repository(workspace: &Path) -> Option<LinkedRepository> {
    let pointer = workspace.join(".git");
    let tree = workspace.join(read(&pointer)?.strip_prefix("gitdir:")?.trim()).canonicalize().ok()?;
    let back = tree.join(read(&tree.join("gitdir"))?.trim()).canonicalize().ok()?;
    if tree.starts_with(workspace) || back != pointer {
        return None;
    }
    let common = tree.join(read(&tree.join("commondir"))?.trim()).canonicalize().ok()?;
    let is_repository = tree.starts_with(common.join("worktrees")) && common.join("HEAD").is_file();
    (is_repository && is_plain(&tree) && !workspace.starts_with(&common))
        .then_some(LinkedRepository { common, tree })
}

/// The parts of a repository that git must read if the workspace is a subdirectory of its work tree.
///
/// They are read-only, because its settings and hooks apply to the whole work tree, which is not the
/// workspace's. A home directory that is a repository is not made readable for a workspace inside it.
pub(super) fn enclosing_repository_parts(workspace: &Path, home: Option<&Path>) -> Vec<PathBuf> {
    let holds = |path: &&Path| path.join(".git").symlink_metadata().is_ok();
    let Some(top) = workspace.ancestors().find(holds).filter(|top| *top != workspace) else {
        return Vec::new();
    };
    if !is_plain(top) || home.is_some_and(|home| home.starts_with(top)) {
        return Vec::new();
    }
    let repository = top.join(".git");
    match linked_repository(top) {
        Some(LinkedRepository { common, .. }) => vec![repository, common],
        // A link, or a pointer that nothing points back to, may lead anywhere.
        None if repository.symlink_metadata().is_ok_and(|found| found.is_dir()) => vec![repository],
        None => Vec::new(),
    }
}

/// The `.git` of each repository that the index of the work tree links to and that has its own settings,
/// outside the directory where the work tree keeps those of its submodules.
///
/// At most `MAX_INSIDE` are protected in advance. In the others, the first command causes settings beyond
/// those of a new repository to be set aside.
pub(super) fn inside(workspace: &Path) -> Vec<PathBuf> {
    let modules =
        submodules::git_folder(workspace).and_then(|folder| folder.join("modules").canonicalize().ok());
    let is_usual = |git: &Path| {
        let folder = submodules::pointed_at(git).and_then(|folder| folder.canonicalize().ok());
        folder.zip(modules.as_ref()).is_some_and(|(folder, modules)| folder.starts_with(modules))
    };
    let (mut found, mut ahead) = (Vec::new(), vec![workspace.to_owned()]);
    while let Some(tree) = ahead.pop() {
        for directory in submodules::linked(&tree).unwrap_or_default() {
            let git = directory.join(".git");
            let Ok(status) = git.symlink_metadata() else { continue };
            if found.len() < MAX_INSIDE && (status.is_dir() || !is_usual(&git)) {
                found.push(git);
            }
            ahead.push(directory);
        }
    }
    found
}

/// The user's git settings reduced to the identity. File ownership does not matter in a sandbox, so git's
/// ownership check is disabled.
pub(super) fn identity(home: &Path, environment: &CommandEnvironment) -> String {
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
        // A value that continues on the next line is dropped rather than parsed.
        if KEPT.contains(&(section.as_str(), name.as_str())) && !value.ends_with('\\') {
            kept.push_str(&format!("[{section}]\n\t{name} = {value}\n"));
        }
    }
    kept
}

/// The content of a small text file. Does not block on devices or pipes.
fn read(path: &Path) -> Option<String> {
    crate::workspace::bounded_read::read_text(path, MAX_BYTES).ok()
}

#[cfg(test)]
mod tests;
