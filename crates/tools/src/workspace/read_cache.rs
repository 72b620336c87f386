//! Read cache: file contents, reused while their stamps are unchanged. Bounded by bytes; the least recently
//! used are evicted first. A file that changed just before it was read is not cached, since it can change
//! again under the same stamp.

use std::collections::HashMap;
use std::fs::File;
use std::sync::Arc;

use crate::workspace::content::ContentHash;
use crate::workspace::file_status;

/// Maximum bytes of all cached content.
const MAX_BYTES: usize = 32 << 20;

/// Larger files are not cached.
const MAX_FILE: usize = 4 << 20;

/// A file changed this shortly before it was read may change again under the same stamp.
const FRESH_NS: i128 = 20_000_000;

/// File metadata that identifies a version of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CacheStamp {
    size: u64,
    mtime_ns: i128,
    ctime_ns: i128,
    inode: u64,
    device: i128,
}

impl CacheStamp {
    /// Stamp of an open file; `None` if fstat fails.
    pub(crate) fn read(file: &File) -> Option<Self> {
        let stat = rustix::fs::fstat(file).ok()?;
        Some(Self {
            size: stat.st_size as u64,
            mtime_ns: file_status::modified_ns(&stat),
            ctime_ns: file_status::changed_ns(&stat),
            inode: stat.st_ino,
            device: file_status::device(&stat),
        })
    }

    fn is_settled(&self, now_ns: i128) -> bool {
        now_ns - self.mtime_ns.max(self.ctime_ns) > FRESH_NS
    }
}

/// Content of a file and its hash.
#[derive(Clone, Debug)]
pub(crate) struct CachedContent {
    pub(crate) bytes: Arc<[u8]>,
    pub(crate) hash: ContentHash,
}

/// Cached file contents by path.
#[derive(Debug, Default)]
pub(super) struct ReadCache {
    files: HashMap<String, CacheEntry>,
    bytes: usize,
    counter: u64,
}

#[derive(Debug)]
struct CacheEntry {
    stamp: CacheStamp,
    content: CachedContent,
    used: u64,
}

impl ReadCache {
    /// Cached content for this stamp; an entry with another stamp is dropped.
    pub(super) fn find(&mut self, path: &str, stamp: &CacheStamp) -> Option<CachedContent> {
        let known = self.files.get_mut(path)?;
        if known.stamp != *stamp {
            self.remove(path);
            return None;
        }
        self.counter += 1;
        known.used = self.counter;
        Some(known.content.clone())
    }

    /// Caches the content if it is small enough and its stamp is reliable.
    pub(super) fn insert(&mut self, path: &str, stamp: CacheStamp, content: &CachedContent, now_ns: i128) {
        self.remove(path);
        let length = content.bytes.len();
        if length > MAX_FILE || length as u64 != stamp.size || !stamp.is_settled(now_ns) {
            return;
        }
        self.counter += 1;
        self.bytes += length;
        let entry = CacheEntry { stamp, content: content.clone(), used: self.counter };
        self.files.insert(path.to_owned(), entry);
        while self.bytes > MAX_BYTES {
            let oldest = self.files.iter().min_by_key(|(_, entry)| entry.used).map(|(path, _)| path.clone());
            let Some(oldest) = oldest else { break };
            self.remove(&oldest);
        }
    }

    /// Drops an entry, for example because the file is written to.
    pub(super) fn remove(&mut self, path: &str) {
        if let Some(entry) = self.files.remove(path) {
            self.bytes -= entry.content.bytes.len();
        }
    }
}

#[cfg(test)]
mod tests;
