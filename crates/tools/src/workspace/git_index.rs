//! Iterates over the entries of git's index, versions 2 to 4. The callers interpret them: `changes` for
//! content, `sandbox::linked` for submodules.

use std::ops::ControlFlow;

/// Maximum size of an index; a larger one is not read.
pub(crate) const MAX_BYTES: u64 = 256 << 20;

/// Value of [`GitIndexEntry::kind`] for a submodule (gitlink).
pub(crate) const LINK: u32 = 0o16;

/// One tracked file in git's index.
pub(crate) struct GitIndexEntry<'i> {
    /// Where the entry begins in the index.
    pub(crate) offset: usize,
    /// The ten 32-bit fields at the start of an entry.
    numbers: &'i [u8],
    /// Object id: 20 or 32 bytes.
    pub(crate) content: &'i [u8],
    pub(crate) flags: u16,
    pub(crate) path: &'i [u8],
}

impl GitIndexEntry<'_> {
    /// The 32-bit field at this position.
    pub(crate) fn number(&self, place: usize) -> u32 {
        let bytes = self.numbers.get(4 * place..4 * place + 4).and_then(|bytes| bytes.try_into().ok());
        bytes.map(u32::from_be_bytes).unwrap_or_default()
    }

    /// Object type: file, symlink, gitlink or directory. Like git, it looks only at these four mode bits.
    pub(crate) fn kind(&self) -> u32 {
        (self.number(6) >> 12) & 0o17
    }
}

/// Visits every entry and returns the bytes after the last one. `None` if the format is unsupported, the
/// index is truncated, or the visitor breaks.
pub(crate) fn visit_entries(
    bytes: &[u8],
    content_length: usize,
    mut visit: impl FnMut(GitIndexEntry<'_>) -> ControlFlow<()>,
) -> Option<&[u8]> {
    let number = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let version = (bytes.get(..4)? == b"DIRC").then(|| number(4)).flatten()?;
    if !(2..=4).contains(&version) {
        return None;
    }
    let (mut at, mut path) = (12, Vec::new());
    for _ in 0..number(8)? {
        let (start, after) = (at, at + 40 + content_length);
        let (numbers, content) = bytes.get(start..after)?.split_at(40);
        let flags = u16::from_be_bytes(bytes.get(after..after + 2)?.try_into().ok()?);
        at = after + if flags & 0x4000 == 0 { 2 } else { 4 };
        if version == 4 {
            let (dropped, next) = variable_length(bytes, at)?;
            path.truncate(path.len().checked_sub(dropped)?);
            at = next;
        } else {
            path.clear();
        }
        let end = at + memchr::memchr(0, bytes.get(at..)?)?;
        path.extend_from_slice(&bytes[at..end]);
        // Up to version 3, entries are padded to a multiple of eight bytes.
        at = if version == 4 { end + 1 } else { start + ((end - start) / 8 + 1) * 8 };
        if visit(GitIndexEntry { offset: start, numbers, content, flags, path: &path }).is_break() {
            return None;
        }
    }
    bytes.get(at..)
}

/// Decodes a variable-length integer with seven bits per byte, as used by version 4.
fn variable_length(bytes: &[u8], mut at: usize) -> Option<(usize, usize)> {
    let mut byte = *bytes.get(at)?;
    at += 1;
    let mut value = usize::from(byte & 0x7f);
    while byte & 0x80 != 0 {
        byte = *bytes.get(at)?;
        at += 1;
        value = value.checked_add(1)?.checked_mul(128)?.checked_add(usize::from(byte & 0x7f))?;
    }
    Some((value, at))
}
