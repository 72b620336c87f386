//! Creates and removes directories; `undo` does this after the files.

use rustix::fs::{AtFlags, Dir, FileType};

use super::atomic_write::{FileWrite, protection};
use super::{OpenedPath, Workspace};
use crate::workspace::content::DirectoryChange;

impl Workspace {
    /// Directories that these changes have to create.
    pub(crate) fn missing_directories(&self, changes: &[FileWrite]) -> Vec<DirectoryChange> {
        let mut missing: Vec<String> = Vec::new();
        for change in changes.iter().filter(|change| change.after.is_some()) {
            let Ok(slot) = self.slot(&change.path) else { continue };
            for path in slot.end.missing_paths() {
                if !missing.contains(&path) {
                    missing.push(path);
                }
            }
        }
        missing.into_iter().map(DirectoryChange::Made).collect()
    }

    /// Names in a directory, and whether each is a directory; `None` if the path is not a directory or
    /// contains a symlink.
    #[must_use]
    pub fn names_in(&self, path: &str) -> Option<Vec<(String, bool)>> {
        let path = self.locate(path).ok()?;
        let found = self.stat_no_symlinks(&path)?;
        if FileType::from_raw_mode(found.st_mode) != FileType::Directory {
            return None;
        }
        let Ok(OpenedPath::Directory(directory)) = self.open_to_read(&path) else { return None };
        let entries = Dir::read_from(&directory).ok()?.flatten();
        let names = entries.map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            (name, entry.file_type() == FileType::Directory)
        });
        Some(names.filter(|(name, _)| name != "." && name != "..").collect())
    }

    /// Removes a directory if it is empty; returns whether it was removed.
    pub fn remove_empty_directory(&self, path: &str) -> bool {
        let Ok(path) = self.locate(path) else { return false };
        if protection(path.as_path().iter()).is_some() {
            return false;
        }
        let parent = self.resolution.parent_no_symlinks(self.directory(), path.as_path());
        parent.is_ok_and(|parent| rustix::fs::unlinkat(parent, path.file_name(), AtFlags::REMOVEDIR).is_ok())
    }

    /// Creates a directory and its parents; returns whether it exists now.
    pub fn make_directory(&self, path: &str) -> bool {
        let Ok(path) = self.locate(path) else { return false };
        let Ok(mut slot) = self.slot(&path) else { return false };
        if slot.end.make_directories(self.directory()).is_err() {
            return false;
        }
        let parent = slot.end.directory(self.directory());
        let made = rustix::fs::mkdirat(parent, path.file_name(), 0o777.into());
        matches!(made, Ok(()) | Err(rustix::io::Errno::EXIST))
    }
}
