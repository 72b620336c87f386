//! Snapshot file of a [`WorkspaceTracker`]: written before the first command of a run and read by a process that
//! resumes the run, so that changes of a killed command are still detected. The file ends with a checksum of
//! everything before it; a truncated or damaged file counts as absent.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use super::scan::{FileStamp, ScanRoot};
use super::{ContentId, MAX_FILES, TrackedDirectory, TrackedFile, WorkspaceTracker};
use crate::workspace::content::ContentHash;

/// Magic bytes with the format version.
const MARK: &[u8] = b"fusee look 2\n";

/// Maximum number of snapshot files kept for runs that were killed and never resumed; the oldest is deleted
/// first.
const MAX_KEPT: usize = 16;

/// Larger snapshot files are not read.
const MAX_BYTES: u64 = 1 << 30;

const CHECK: usize = 32;

impl WorkspaceTracker {
    /// Writes the snapshot atomically, by renaming a temporary file.
    pub(crate) fn save(&self, file: &Path) -> io::Result<()> {
        let mut out = Vec::with_capacity(MARK.len() + self.files * 128);
        out.extend_from_slice(MARK);
        for (path, directory) in &self.directories {
            put_bytes(&mut out, path.as_bytes());
            put_stamp(&mut out, directory.stamp.as_ref());
            out.extend_from_slice(&(directory.files.len() as u32).to_le_bytes());
            for (name, known) in &directory.files {
                put_bytes(&mut out, name.as_bytes());
                put_stamp(&mut out, Some(&known.stamp));
                match &known.content {
                    ContentId::Hash(hash) => {
                        out.push(0);
                        out.extend_from_slice(hash.as_bytes());
                    }
                    ContentId::Large(stamp) => {
                        out.push(1);
                        put_stamp(&mut out, Some(stamp));
                    }
                }
            }
        }
        let check = blake3::hash(&out);
        out.extend_from_slice(check.as_bytes());
        let folder = file.parent().unwrap_or(Path::new("."));
        // Names and hashes of the user's files, beside the journal: nobody else reads them.
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        drop_oldest(folder);
        let unfinished = file.with_extension("unfinished");
        fs::write(&unfinished, out)?;
        fs::rename(&unfinished, file)
    }

    /// Reads a snapshot; `None` if it is missing, damaged or too large.
    pub(crate) fn load(root: &Path, file: &Path) -> Option<Self> {
        let size = fs::metadata(file).ok()?.len();
        let bytes = (size <= MAX_BYTES).then(|| fs::read(file).ok()).flatten()?;
        let (body, check) = bytes.split_at_checked(bytes.len().checked_sub(CHECK)?)?;
        if blake3::hash(body).as_bytes() != check {
            return None;
        }
        let mut rest = SnapshotReader(body.strip_prefix(MARK)?);
        let (mut directories, mut count) = (BTreeMap::new(), 0);
        while !rest.0.is_empty() {
            let path = String::from_utf8(rest.bytes()?.to_vec()).ok()?;
            let stamp = rest.stamp()?;
            let many = rest.number()? as usize;
            let mut files = HashMap::with_capacity(many.min(MAX_FILES));
            for _ in 0..many {
                let name = OsString::from_vec(rest.bytes()?.to_vec());
                let stamp = rest.stamp()??;
                let content = match rest.take(1)? {
                    [0] => ContentId::Hash(ContentHash::from_bytes(rest.take(CHECK)?.try_into().ok()?)),
                    _ => ContentId::Large(rest.stamp()??),
                };
                files.insert(name, TrackedFile { stamp, content });
            }
            count += files.len();
            directories.insert(path, TrackedDirectory { stamp, files });
        }
        let (root, moved, modes) = (ScanRoot::open(root)?, Vec::new(), Vec::new());
        Some(Self { root, directories, files: count, moved, modes })
    }
}

/// Deletes the oldest files so that one more stays within [`MAX_KEPT`].
fn drop_oldest(folder: &Path) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<_> =
        entries.filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path()))).collect();
    files.sort();
    let surplus = (files.len() + 1).saturating_sub(MAX_KEPT);
    for (_, path) in files.into_iter().take(surplus) {
        // A file that cannot be removed only wastes space.
        let _ = fs::remove_file(path);
    }
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    out.extend_from_slice(bytes);
}

fn put_stamp(out: &mut Vec<u8>, stamp: Option<&FileStamp>) {
    let Some(stamp) = stamp else { return out.push(0) };
    out.push(1 | u8::from(stamp.link) << 1 | u8::from(stamp.is_fresh()) << 2);
    out.extend_from_slice(&stamp.size.to_le_bytes());
    out.extend_from_slice(&stamp.mtime_ns.to_le_bytes());
    out.extend_from_slice(&stamp.ctime_ns.to_le_bytes());
    out.extend_from_slice(&stamp.inode.to_le_bytes());
    out.extend_from_slice(&stamp.mode.to_le_bytes());
}

/// Bytes not yet parsed.
struct SnapshotReader<'a>(&'a [u8]);

impl<'a> SnapshotReader<'a> {
    fn take(&mut self, many: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(many)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let many = self.number()? as usize;
        self.take(many)
    }

    fn stamp(&mut self) -> Option<Option<FileStamp>> {
        let [marks] = *self.take(1)? else { return None };
        if marks == 0 {
            return Some(None);
        }
        let size = u64::from_le_bytes(self.take(8)?.try_into().ok()?);
        let mtime_ns = i128::from_le_bytes(self.take(16)?.try_into().ok()?);
        let ctime_ns = i128::from_le_bytes(self.take(16)?.try_into().ok()?);
        let inode = u64::from_le_bytes(self.take(8)?.try_into().ok()?);
        let mode = self.number()?;
        let (link, fresh) = (marks & 2 != 0, marks & 4 != 0);
        Some(Some(FileStamp { size, mtime_ns, ctime_ns, inode, link, mode, fresh }))
    }
}
