//! Bounded reads of untrusted project files: never blocks on a pipe, never reads a device, and never reads
//! more than the given limit. A cloned repository can contain a symlink to `/dev/zero`, and a command can
//! leave a pipe behind.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use rustix::fs::{Mode, OFlags};

/// Reads a regular file of at most `most` bytes, following symlinks. Other and larger files are errors.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut content = Vec::new();
    // The file may grow while it is read.
    if found.len() <= most {
        file.take(most + 1).read_to_end(&mut content)?;
    }
    if found.len() > most || content.len() as u64 > most {
        return Err(io::Error::other(format!("it is larger than {} KiB", most >> 10)));
    }
    Ok(content)
}

/// Like [`read`], but the content must be UTF-8.
pub fn read_text(path: &Path, most: u64) -> io::Result<String> {
    String::from_utf8(read(path, most)?)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8 text"))
}

/// Whether reading terminates: the path is a regular file of at most `most` bytes, or does not exist.
pub(crate) fn is_bounded_file(path: &Path, most: u64) -> bool {
    path.metadata().map_or(true, |found| found.is_file() && found.len() <= most)
}

#[cfg(test)]
mod tests;
