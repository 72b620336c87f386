//! A page of a file: numbered lines, and notes about what is left out.

use std::fmt::Write;
use std::fs::File;
use std::io::{self, BufRead, BufReader};

use tokio_util::sync::CancellationToken;

use super::Read;
use crate::tool::line_numbers;
use crate::workspace::WorkspacePath;
use crate::workspace::content::SeenVersion;

/// The requested part of a file, and its limits.
#[derive(Clone, Copy)]
pub(super) struct PageWindow {
    /// First line, counted from 1.
    pub(super) first: usize,
    pub(super) lines: usize,
    pub(super) bytes: usize,
    pub(super) line_characters: usize,
}

/// The lines that are shown, and what is known about the rest.
pub(super) struct FilePage {
    text: String,
    first: usize,
    pub(super) shown: usize,
    /// Number of lines; `None` if the file was not read to its end.
    pub(super) total: Option<usize>,
    more: bool,
    ends_with_newline: bool,
    carriage_returns: bool,
    lossy: bool,
}

impl FilePage {
    fn new(window: PageWindow) -> Self {
        Self {
            text: String::new(),
            first: window.first,
            shown: 0,
            total: None,
            more: false,
            ends_with_newline: true,
            carriage_returns: false,
            lossy: false,
        }
    }

    pub(super) fn of_content(content: &[u8], window: PageWindow) -> Self {
        let mut page = Self::new(window);
        let mut total = 0;
        for line in content.split_inclusive(|byte| *byte == b'\n') {
            total += 1;
            if total >= window.first && !page.more {
                page.more = !page.push(total, line, window);
            }
        }
        page.total = Some(total);
        page
    }

    /// Reads a page of a file that is too large for memory. `None` if it is not text.
    pub(super) fn of_stream(
        file: File,
        window: PageWindow,
        cancel: &CancellationToken,
    ) -> io::Result<Option<Self>> {
        let mut page = Self::new(window);
        let mut reader = BufReader::with_capacity(64 * 1024, file);
        if reader.fill_buf()?.contains(&0) {
            return Ok(None);
        }
        let longest = window.line_characters * 4;
        let mut number = 0;
        loop {
            number += 1;
            if number % 4096 == 0 && cancel.is_cancelled() {
                page.more = true;
                return Ok(Some(page));
            }
            let wanted = number >= window.first;
            let mut line = Vec::new();
            let length = read_line(&mut reader, &mut line, if wanted { longest } else { 0 })?;
            if length == 0 {
                page.total = Some(number - 1);
                return Ok(Some(page));
            }
            if wanted && !page.push_cut(number, &line, length, window) {
                page.more = true;
                return Ok(Some(page));
            }
        }
    }

    /// Adds a line if it fits; returns whether it did.
    fn push(&mut self, number: usize, line: &[u8], window: PageWindow) -> bool {
        self.push_cut(number, line, line.len(), window)
    }

    /// Like `push`, for a line of `length` bytes of which only the beginning is available.
    fn push_cut(&mut self, number: usize, line: &[u8], length: usize, window: PageWindow) -> bool {
        if self.shown == window.lines {
            return false;
        }
        let had = self.text.len();
        let whole = length == line.len();
        let ended = line.ends_with(b"\n");
        let stripped = line.strip_suffix(b"\n").unwrap_or(line);
        let stripped = match stripped.strip_suffix(b"\r") {
            Some(stripped) if ended => {
                self.carriage_returns = true;
                stripped
            }
            _ => stripped,
        };
        let text = String::from_utf8_lossy(stripped);
        self.lossy |= whole && matches!(text, std::borrow::Cow::Owned(_));
        line_numbers::push_line(&mut self.text, number, &text, window.line_characters);
        if !whole {
            self.text.truncate(self.text.len() - 1);
            let _ = writeln!(self.text, " [… line of {length} bytes]");
        }
        // The first line of a page is always shown, however long; otherwise no offset would ever get past it.
        if self.text.len() > window.bytes && self.shown > 0 {
            self.text.truncate(had);
            return false;
        }
        self.shown += 1;
        self.ends_with_newline = ended || !whole;
        true
    }

    pub(super) fn into_read(self, path: &WorkspacePath, seen: Option<SeenVersion>) -> Read {
        let last = self.first + self.shown - usize::from(self.shown > 0);
        let mut notes = Vec::new();
        match self.total {
            Some(total) if self.more => {
                notes.push(format!("lines {}-{last} of {total}; go on with offset {}", self.first, last + 1))
            }
            None => notes.push(format!(
                "lines {}-{last}; there are more, go on with offset {}",
                self.first,
                last + 1
            )),
            Some(total) if self.first > 1 => {
                notes.push(format!("lines {}-{last} of {total}, to the end", self.first))
            }
            Some(_) => {}
        }
        if self.carriage_returns {
            notes.push("lines end with CRLF".to_owned());
        }
        if self.lossy {
            notes.push("not valid UTF-8: \u{fffd} stands for what is not".to_owned());
        }
        if !self.ends_with_newline && !self.more {
            notes.push("no newline at the end of the file".to_owned());
        }
        if seen.is_none() {
            notes.push("too large to be edited by a tool".to_owned());
        }
        let mut text = self.text;
        if self.shown == 0 {
            text = format!("`{path}` has no line {}.\n", self.first);
        }
        if !notes.is_empty() {
            let _ = writeln!(text, "[{}]", notes.join("; "));
        }
        Read { truncated: self.more, seen, ..Read::description(text) }
    }
}

/// Reads one line and keeps at most `keep` bytes of it. Returns its full length, 0 at the end of the file.
fn read_line(reader: &mut impl BufRead, line: &mut Vec<u8>, keep: usize) -> io::Result<usize> {
    let mut length = 0;
    loop {
        let buffer = reader.fill_buf()?;
        if buffer.is_empty() {
            return Ok(length);
        }
        let end = buffer.iter().position(|byte| *byte == b'\n').map(|at| at + 1);
        let taken = end.unwrap_or(buffer.len());
        let kept = taken.min(keep.saturating_sub(line.len()));
        line.extend_from_slice(&buffer[..kept]);
        length += taken;
        reader.consume(taken);
        if end.is_some() {
            return Ok(length);
        }
    }
}
