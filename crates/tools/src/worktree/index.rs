//! Git's index of a working copy: that of the original, with the stamps of the copied files.
//!
//! Git compares inode and times with its index before it reads a file, and `workspace::diff` does the same. Stamps of
//! the original fit no copy, and every file would be read once more.

use std::collections::HashMap;
use std::io;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use sha1::Digest as _;

use super::copy::{Copied, Stamp};
use crate::workspace::{bounded_read, git_index};

/// Length of the checksum at the end, and of the object ids.
const SHA1_BYTES: usize = 20;

/// The index for a working copy.
pub(super) enum Restamped {
    /// The whole file.
    Bytes(Vec<u8>),
    /// Its entries are in another file, which only the original finds.
    Split,
    /// Too large, or of a format that is not known here: git reads the files itself.
    Unsupported,
}

/// The index at `original`, in which each entry of an unchanged file has the stamp of its copy.
pub(super) fn restamped(original: &Path, copies: &[Copied<'_>]) -> io::Result<Restamped> {
    let found = original.metadata()?;
    if found.len() > git_index::MAX_BYTES {
        return Ok(Restamped::Unsupported);
    }
    let written = (found.mtime(), found.mtime_nsec());
    let mut bytes = bounded_read::read(original, git_index::MAX_BYTES)?;
    let Some(end) = bytes.len().checked_sub(SHA1_BYTES) else { return Ok(Restamped::Unsupported) };
    // Without a checksum (index.skipHash), or with one of SHA-256, it cannot be told that this is the format expected here.
    if sha1::Sha1::digest(&bytes[..end])[..] != bytes[end..] {
        return Ok(Restamped::Unsupported);
    }
    let copies: HashMap<&[u8], &Copied<'_>> =
        copies.iter().map(|copied| (copied.path.as_os_str().as_bytes(), copied)).collect();
    let mut stamps: Vec<(usize, Stamp)> = Vec::with_capacity(copies.len());
    let rest = git_index::visit_entries(&bytes, SHA1_BYTES, |entry| {
        // A file changed in the instant in which the index was written may have the stamp of its earlier content.
        let copied = copies.get(entry.path).filter(|copied| copied.modified < written);
        let unchanged =
            copied.filter(|copied| copied.original.fields().all(|(at, value)| entry.number(at) == value));
        if let Some(copied) = unchanged {
            stamps.push((entry.offset, copied.copy));
        }
        ControlFlow::Continue(())
    });
    match rest {
        None => return Ok(Restamped::Unsupported),
        Some(rest) if rest.starts_with(b"link") => return Ok(Restamped::Split),
        Some(_) => {}
    }
    for (offset, stamp) in stamps {
        for (at, value) in stamp.fields() {
            let start = offset + 4 * at;
            bytes[start..start + 4].copy_from_slice(&value.to_be_bytes());
        }
    }
    let checksum = sha1::Sha1::digest(&bytes[..end]);
    bytes[end..].copy_from_slice(&checksum);
    Ok(Restamped::Bytes(bytes))
}
