//! Line endings: models write line feeds, files keep what they have.

use std::borrow::Cow;

/// `text` with the line endings that `file` has. A file without CRLF, or with both kinds, decides nothing.
pub(crate) fn like<'t>(file: &[u8], text: &'t str) -> Cow<'t, str> {
    if is_crlf(file) { Cow::Owned(to_crlf(text)) } else { Cow::Borrowed(text) }
}

/// Whether every line that ends, ends with CRLF, and there is at least one.
pub(crate) fn is_crlf(file: &[u8]) -> bool {
    let mut any = false;
    let mut before = 0;
    for &byte in file {
        if byte == b'\n' {
            if before != b'\r' {
                return false;
            }
            any = true;
        }
        before = byte;
    }
    any
}

/// CRLF at the end of every line, whatever was there.
pub(crate) fn to_crlf(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\n', "\r\n")
}
