//! Finds the commit checked out in a work tree, without running git.

use std::path::{Path, PathBuf};

/// Larger git files are not read.
const LARGEST: u64 = 16 << 20;

/// Returns the commit that HEAD points to, if any.
pub(super) fn head_commit(root: &Path) -> Option<String> {
    let folder = repository(root)?;
    let head = read(&folder.join("HEAD"))?;
    let Some(name) = head.trim().strip_prefix("ref: ") else { return commit(&head) };
    // A linked worktree has its own HEAD and shares the refs.
    let shared = read(&folder.join("commondir")).map(|path| folder.join(path.trim()));
    let shared = shared.unwrap_or_else(|| folder.clone());
    if name.split('/').any(|part| part == "..") {
        return None;
    }
    if let Some(text) = read(&folder.join(name)).or_else(|| read(&shared.join(name))) {
        return commit(&text);
    }
    let packed = read(&shared.join("packed-refs"))?;
    let line = packed.lines().find(|line| line.split(' ').nth(1) == Some(name))?;
    commit(line.split(' ').next()?)
}

/// Returns git's directory for this work tree.
fn repository(root: &Path) -> Option<PathBuf> {
    let found = root.ancestors().map(|ancestor| ancestor.join(".git")).find(|path| path.exists())?;
    if found.is_dir() {
        return Some(found);
    }
    let link = read(&found)?;
    Some(found.parent()?.join(link.trim().strip_prefix("gitdir: ")?))
}

fn commit(text: &str) -> Option<String> {
    let text = text.trim();
    let is_commit = matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_commit.then(|| text.to_owned())
}

fn read(path: &Path) -> Option<String> {
    fusee_tools::workspace::bounded_read::read_text(path, LARGEST).ok()
}
