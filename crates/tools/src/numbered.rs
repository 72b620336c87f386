//! Lines with their numbers, the way every tool shows file content: `12<tab>text`.

use std::fmt::Write;

/// Adds one line. What is over `most` characters is cut, and how much is said.
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

/// The lines of a text without their endings; a carriage return before the line feed belongs to the ending.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive('\n').map(|line| {
        let line = line.strip_suffix('\n').unwrap_or(line);
        line.strip_suffix('\r').unwrap_or(line)
    })
}

/// A part of a text, by lines counted from zero, with some lines around it.
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

/// How much of a region is shown.
#[derive(Clone, Copy)]
pub(crate) struct RegionLimits {
    pub(crate) lines: usize,
    pub(crate) bytes: usize,
    pub(crate) line_characters: usize,
}
