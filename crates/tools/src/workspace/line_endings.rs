//! Line endings: models write line feeds, files keep the line endings they have.

use std::borrow::Cow;

/// Converts `text` to the line endings of `file`. Only a file that uses CRLF throughout changes anything.
pub(crate) fn with_line_endings_of<'t>(file: &[u8], text: &'t str) -> Cow<'t, str> {
    if is_crlf(file) { Cow::Owned(to_crlf(text)) } else { Cow::Borrowed(text) }
}

/// Whether the file has line endings and all of them are CRLF.
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

/// Converts every line ending to CRLF.
pub(crate) fn to_crlf(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\n', "\r\n")
}
