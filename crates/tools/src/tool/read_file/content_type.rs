//! Detects whether content is text, and its format if it is not.

/// Bytes inspected; a text file with a NUL after them is still shown.
const LOOKED_AT: usize = 8 * 1024;

/// Magic bytes of common formats, so that an answer can say more than "binary".
const MAGIC: [(&[u8], &str); 14] = [
    (b"\x89PNG", "PNG image"),
    (b"\xff\xd8\xff", "JPEG image"),
    (b"GIF8", "GIF image"),
    (b"RIFF", "RIFF media"),
    (b"%PDF", "PDF document"),
    (b"PK\x03\x04", "ZIP archive"),
    (b"\x1f\x8b", "gzip data"),
    (b"BZh", "bzip2 data"),
    (b"\xfd7zXZ", "xz data"),
    (b"\x28\xb5\x2f\xfd", "zstd data"),
    (b"\x7fELF", "ELF executable or library"),
    (b"SQLite format 3", "SQLite database"),
    (b"\x00asm", "WebAssembly module"),
    (b"\xff\xfe", "UTF-16 text; convert it with iconv in the shell"),
];

/// Name of the format if the content is binary; `None` for text.
pub(super) fn of_binary(content: &[u8]) -> Option<&'static str> {
    let head = &content[..content.len().min(LOOKED_AT)];
    if !head.contains(&0) && !head.starts_with(b"%PDF") {
        return None;
    }
    Some(MAGIC.iter().find(|(magic, _)| head.starts_with(magic)).map_or("binary data", |(_, name)| name))
}
