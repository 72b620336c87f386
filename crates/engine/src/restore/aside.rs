//! The folder for content that a restore replaces and that is nowhere else: work of the user since then.

use std::io;
use std::path::{Path, PathBuf};

use fusee_journal::{Journal, RunId};
use fusee_tools::Workspace;
use fusee_tools::workspace::DiskState;

/// Maximum number of versions of a path in the folder.
const MAX_VERSIONS: u32 = 1000;

/// The folder of a run, beside the journal.
pub fn aside_folder(journal: &Journal, run: &RunId) -> PathBuf {
    journal.path().with_file_name("aside").join(run.as_str())
}

/// Copies what is at a path, under its own path. A copy that is there with the same content is enough.
pub(super) fn copy(workspace: &Workspace, path: &str, now: &DiskState, aside: &Path) -> Result<(), String> {
    let failed = |error: io::Error| format!("cannot set `{path}` aside: {error}");
    let place = free_place(aside, path, |there| match now {
        DiskState::File { content, .. } => std::fs::read(there).is_ok_and(|there| there == *content),
        DiskState::Link(target) => {
            std::fs::read_link(there).is_ok_and(|there| there.as_os_str().as_encoded_bytes() == target)
        }
        _ => false,
    });
    let Some(place) = place.map_err(failed)? else { return Ok(()) };
    let from = workspace.root().join(path);
    match now {
        DiskState::Link(_) => std::fs::read_link(&from)
            .and_then(|target| std::os::unix::fs::symlink(target, &place))
            .map_err(failed),
        _ => {
            // Under another name first, so that a copy is never partial.
            let half = place.with_extension("partial");
            std::fs::copy(&from, &half).and_then(|_| std::fs::rename(&half, &place)).map_err(failed)
        }
    }
}

/// Moves what is at a path, such as a directory that has to give way to a file.
pub(super) fn move_away(workspace: &Workspace, path: &str, aside: &Path) -> Result<(), String> {
    let failed = |error: io::Error| format!("cannot set `{path}` aside: {error}");
    let Some(place) = free_place(aside, path, |_| false).map_err(failed)? else { return Ok(()) };
    std::fs::rename(workspace.root().join(path), place).map_err(failed)
}

/// A path in the folder that is free; `None` if the content is there already.
fn free_place(aside: &Path, path: &str, is_same: impl Fn(&Path) -> bool) -> io::Result<Option<PathBuf>> {
    let first = aside.join(path);
    if let Some(parent) = first.parent() {
        std::fs::create_dir_all(parent)?;
    }
    for n in 0..MAX_VERSIONS {
        let place = if n == 0 { first.clone() } else { aside.join(format!("{path}~{n}")) };
        match place.symlink_metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Some(place)),
            Err(error) => return Err(error),
            Ok(_) if is_same(&place) => return Ok(None),
            Ok(_) => {}
        }
    }
    Err(io::Error::other("there are too many versions of it in the folder"))
}
