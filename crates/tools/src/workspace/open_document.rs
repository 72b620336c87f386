//! Documents that are open in the user's editor. A read shows text that was not saved yet, and a change of such a file
//! is refused, so that neither side overwrites the other.

use std::fmt;
use std::os::fd::AsFd as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{AtFlags, FileType, Stat};

use super::{Workspace, WorkspacePath, now_ns};

/// How long the folders of a file must be unchanged before the editor is asked for it: longer than a tick of the
/// kernel's clock, so that every later change of a folder gives it another time.
const SETTLED: Duration = Duration::from_millis(50);

/// The documents of an editor.
pub trait OpenDocuments: Send + Sync {
    /// The text of the file at this absolute path as the editor has it; `None` if the editor does not say. Blocks for a
    /// bounded time; it is called on threads that may block.
    fn text(&self, path: &Path) -> Option<String>;
}

/// Who can be asked for open documents.
#[derive(Clone, Default)]
pub(super) struct DocumentSource(Option<Arc<dyn OpenDocuments>>);

impl fmt::Debug for DocumentSource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("DocumentSource").field(&self.0.is_some()).finish()
    }
}

/// Identity and times of a file and of the folders above it.
#[derive(PartialEq, Eq)]
struct PathStamp(Vec<(u64, u64, i64, i64)>);

impl Workspace {
    /// Asks an editor for the documents that are open there.
    #[must_use]
    pub fn with_documents(self, documents: Option<Arc<dyn OpenDocuments>>) -> Self {
        Self { documents: DocumentSource(documents), ..self }
    }

    /// Whether an editor can be asked for open documents.
    pub(crate) fn has_documents(&self) -> bool {
        self.documents.0.is_some()
    }

    /// The text that the editor has for this file, if it is not what is on disk. Line endings and the last newline make
    /// no difference, because editors convert them.
    ///
    /// The editor opens the path itself, outside of our confinement. A file below a symlink, and one whose folders
    /// change meanwhile, count as not open, so that no command can direct the editor to another file.
    pub(crate) fn unsaved_text(&self, path: &WorkspacePath, on_disk: &[u8]) -> Option<String> {
        let documents = self.documents.0.as_ref()?;
        let on_disk = std::str::from_utf8(on_disk).ok()?;
        let before = self.settled_stamp(path)?;
        let text = documents.text(&self.given_root.join(path.as_path()))?;
        let is_same_file = self.path_stamp(path).is_some_and(|(after, _)| after == before);
        (is_same_file && !is_same_text(&text, on_disk)).then_some(text)
    }

    fn settled_stamp(&self, path: &WorkspacePath) -> Option<PathStamp> {
        let is_settled = |changed_ns: i128| now_ns() - changed_ns > SETTLED.as_nanos() as i128;
        let (stamp, changed_ns) = self.path_stamp(path)?;
        if is_settled(changed_ns) {
            return Some(stamp);
        }
        std::thread::sleep(SETTLED + Duration::from_millis(10));
        self.path_stamp(path).filter(|(_, changed_ns)| is_settled(*changed_ns)).map(|(stamp, _)| stamp)
    }

    /// The stamp of a path without symlinks, and when one of its folders changed last.
    fn path_stamp(&self, path: &WorkspacePath) -> Option<(PathStamp, i128)> {
        let status =
            |path: &Path| rustix::fs::statat(self.directory.as_fd(), path, AtFlags::SYMLINK_NOFOLLOW).ok();
        #[cfg_attr(
            target_os = "linux",
            expect(clippy::unnecessary_cast, reason = "the fields have other types on other systems")
        )]
        let entry = |status: &Stat| {
            (status.st_dev as u64, status.st_ino as u64, status.st_ctime as i64, status.st_ctime_nsec as i64)
        };
        let (mut entries, mut changed_ns) = (Vec::new(), i128::MIN);
        let mut folders: Vec<&Path> = path.as_path().ancestors().skip(1).collect();
        folders.reverse();
        for folder in folders {
            let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
            let found = status(folder)?;
            if FileType::from_raw_mode(found.st_mode) != FileType::Directory {
                return None;
            }
            let (.., seconds, nanoseconds) = entry(&found);
            changed_ns = changed_ns.max(i128::from(seconds) * 1_000_000_000 + i128::from(nanoseconds));
            entries.push(entry(&found));
        }
        let file = status(path.as_path())?;
        entries.push(entry(&file));
        (FileType::from_raw_mode(file.st_mode) == FileType::RegularFile)
            .then_some((PathStamp(entries), changed_ns))
    }
}

fn is_same_text(a: &str, b: &str) -> bool {
    a.trim_start_matches('\u{feff}').lines().eq(b.trim_start_matches('\u{feff}').lines())
}

#[cfg(test)]
mod tests;
