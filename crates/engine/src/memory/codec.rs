//! Binary encoding of the index: little-endian numbers, length-prefixed texts and lists, checksums against
//! damage.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

/// The data read is not what was written; the index is discarded and rebuilt.
#[derive(Debug)]
pub(super) struct DamagedIndex;

pub(super) fn number(bytes: &mut Vec<u8>, number: usize) {
    bytes.extend(u32::try_from(number).unwrap_or(u32::MAX).to_le_bytes());
}

pub(super) fn text(bytes: &mut Vec<u8>, text: &str) {
    number(bytes, text.len());
    bytes.extend(text.as_bytes());
}

/// Bytes not yet decoded.
pub(super) struct Decoder<'a>(pub(super) &'a [u8]);

impl<'a> Decoder<'a> {
    pub(super) fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*taken)
    }

    pub(super) fn number(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    pub(super) fn wide(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    pub(super) fn time(&mut self) -> Option<i64> {
        self.take().map(i64::from_le_bytes)
    }

    pub(super) fn text(&mut self) -> Option<&'a str> {
        let length = self.number()? as usize;
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        std::str::from_utf8(text).ok()
    }

    pub(super) fn list(&mut self) -> Option<Vec<u32>> {
        let length = self.number()? as usize;
        let (list, rest) = self.0.split_at_checked(length.checked_mul(4)?)?;
        self.0 = rest;
        Some(list.as_chunks::<4>().0.iter().map(|four| u32::from_le_bytes(*four)).collect())
    }
}

/// Checksum over eight bytes at a time: megabytes are checked on every start, so it must be almost free. It
/// detects accidental damage, not tampering.
pub(super) fn sum(bytes: &[u8]) -> u64 {
    let (eights, rest) = bytes.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let words = eights.iter().chain([&last]).map(|eight| u64::from_le_bytes(*eight));
    let mix = |sum: u64, word: u64| (sum.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    words.fold(bytes.len() as u64 ^ 0x9e37_79b9_7f4a_7c15, mix)
}

/// Writes a file atomically: readers see the old or the new content, even if two processes write at once.
pub(super) fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let new = path.with_extension(format!("{}.new", std::process::id()));
    let written = fs::File::create(&new).and_then(|mut file| file.write_all(bytes));
    let done = written.and_then(|()| fs::rename(&new, path));
    if done.is_err() {
        let _ = fs::remove_file(&new);
    }
    done
}
