//! Numbered lines, the format in which all tools show file content: `12<tab>text`.

use std::fmt::Write;

/// Appends one line, cut to `most` characters with a note of how many were cut.
pub(crate) fn push_line(out: &mut String, number: usize, line: &str, most: usize) {
    let _ = write!(out, "{number}\t");
    match line.char_indices().nth(most) {
        None => out.push_str(line),
        Some((end, _)) => {
            out.push_str(&line[..end]);
            let _ = write!(out, " […{} more characters]", line[end..].chars().count());
        }
    }
    out.push('\n');
}

/// Splits a text into lines without their endings (LF or CRLF).
pub(crate) fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive('\n').map(|line| {
        let line = line.strip_suffix('\n').unwrap_or(line);
        line.strip_suffix('\r').unwrap_or(line)
    })
}

/// Formats a zero-based range of lines with `around` lines of context on either side.
pub(crate) fn region(
    text: &str,
    lines_shown: std::ops::Range<usize>,
    around: usize,
    limits: RegionLimits,
) -> String {
    let first = lines_shown.start.saturating_sub(around);
    let last = lines_shown.end.saturating_add(around);
    let mut out = String::new();
    for (shown, (at, line)) in lines(text).enumerate().skip(first).enumerate() {
        if at >= last {
            break;
        }
        if shown == limits.lines || out.len() >= limits.bytes {
            let _ = writeln!(out, "[… {} more lines]", lines(text).count().min(last) - at);
            break;
        }
        push_line(&mut out, at + 1, line, limits.line_characters);
    }
    out
}

/// Limits on the size of a shown region.
#[derive(Clone, Copy)]
pub(crate) struct RegionLimits {
    pub(crate) lines: usize,
    pub(crate) bytes: usize,
    pub(crate) line_characters: usize,
}
