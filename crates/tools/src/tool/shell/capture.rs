//! A command's output as a model should see it: the beginning and the end of long output, without terminal
//! control sequences.
//!
//! Colours and cursor movements are dropped, and a progress bar that redraws its line leaves its last state.
//! This happens before bytes are counted, so the limits apply to text.

use std::collections::VecDeque;

use super::spool::{SavedOutput, Spool};

/// Maximum length of an unfinished line that is held back, since it may be redrawn.
const LONGEST_HELD: usize = 8 * 1024;
/// Maximum length of a control string; a longer one is treated as text.
const LONGEST_CONTROL: usize = 4 * 1024;
/// Maximum bytes of complete lines in one progress report.
const CHUNK_BYTES: usize = 16 << 10;

/// How much of the output was reported as progress.
#[derive(Debug, Default)]
pub(super) struct ReportedOutput {
    /// Bytes of complete lines.
    bytes: u64,
    /// The line being written, as reported.
    line: Vec<u8>,
}

#[derive(Debug)]
pub(super) struct Capture {
    head: Vec<u8>,
    max_head: usize,
    tail: VecDeque<u8>,
    max_tail: usize,
    /// The line being written.
    line: Vec<u8>,
    state: State,
    carriage_return: bool,
    /// Bytes that were dropped from the tail, and line feeds among them.
    dropped: u64,
    dropped_lines: u64,
    /// Bytes received, and NULs among them.
    received: u64,
    nuls: u64,
    /// Where the complete output is saved.
    spool: Option<Spool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Text,
    /// After an ESC byte.
    Escape,
    /// In a sequence that starts with ESC [.
    Sequence,
    /// One more byte of the sequence follows.
    OneMore,
    /// In a control string, with its length so far; `ControlEscape` is after an ESC in it.
    Control(usize),
    ControlEscape(usize),
}

impl Capture {
    pub(super) fn new(max_head: usize, max_tail: usize) -> Self {
        Self {
            head: Vec::new(),
            max_head,
            tail: VecDeque::new(),
            max_tail,
            line: Vec::new(),
            state: State::Text,
            carriage_return: false,
            dropped: 0,
            dropped_lines: 0,
            received: 0,
            nuls: 0,
            spool: None,
        }
    }

    /// Saves the complete output to `spool` as well.
    pub(super) fn saved_to(self, spool: Option<Spool>) -> Self {
        Self { spool, ..self }
    }

    /// Where the complete output was saved, if it is longer than what is shown.
    pub(super) fn finish(&mut self) -> Option<SavedOutput> {
        if self.dropped == 0 {
            return None;
        }
        self.flush();
        self.spool.as_mut()?.finish()
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.received += bytes.len() as u64;
        for &byte in bytes {
            self.state = match self.state {
                State::Text => self.text_byte(byte),
                State::Escape => match byte {
                    b'[' => State::Sequence,
                    b']' | b'P' | b'X' | b'^' | b'_' => State::Control(0),
                    b' '..=b'/' => State::OneMore,
                    _ => State::Text,
                },
                State::Sequence if (0x40..=0x7e).contains(&byte) => State::Text,
                State::Sequence if byte == b'\n' => self.text_byte(byte),
                State::Sequence => State::Sequence,
                State::OneMore => State::Text,
                State::Control(_) if byte == 0x07 => State::Text,
                State::Control(length) if byte == 0x1b => State::ControlEscape(length),
                State::Control(length) | State::ControlEscape(length) if length >= LONGEST_CONTROL => {
                    State::Text
                }
                State::ControlEscape(_) if byte == b'\\' => State::Text,
                State::Control(length) | State::ControlEscape(length) => State::Control(length + 1),
            };
        }
    }

    fn text_byte(&mut self, byte: u8) -> State {
        if self.carriage_return && byte != b'\r' {
            self.carriage_return = false;
            if byte != b'\n' {
                self.line.clear();
            }
        }
        match byte {
            0x1b => return State::Escape,
            b'\n' => {
                self.line.push(b'\n');
                self.flush();
            }
            b'\r' => self.carriage_return = true,
            // Overstruck text, as in manual pages.
            0x08 => while self.line.pop().is_some_and(|last| (last & 0xC0) == 0x80) {},
            b'\t' => self.line.push(byte),
            0 => self.nuls += 1,
            0x01..0x20 | 0x7f => {}
            _ => self.line.push(byte),
        }
        if self.line.len() >= LONGEST_HELD {
            self.flush();
        }
        State::Text
    }

    fn flush(&mut self) {
        let mut line = std::mem::take(&mut self.line);
        self.keep(&line);
        line.clear();
        self.line = line;
    }

    fn keep(&mut self, mut bytes: &[u8]) {
        if let Some(spool) = &mut self.spool {
            spool.push(bytes);
        }
        if self.head.len() < self.max_head && self.tail.is_empty() {
            let room = (self.max_head - self.head.len()).min(bytes.len());
            self.head.extend_from_slice(&bytes[..room]);
            bytes = &bytes[room..];
        }
        self.tail.extend(bytes);
        let over = self.tail.len().saturating_sub(self.max_tail);
        for byte in self.tail.drain(..over) {
            self.dropped += 1;
            self.dropped_lines += u64::from(byte == b'\n');
        }
    }

    /// The text shown to the model, and whether anything is missing from it.
    pub(super) fn text(&self) -> (String, bool) {
        if self.nuls * 20 > self.received {
            return (
                format!(
                    "(binary output of {} bytes, not shown; write it to a file or pipe it through `od -c | head`)",
                    self.received
                ),
                true,
            );
        }
        let mut end: Vec<u8> = self.tail.iter().chain(&self.line).copied().collect();
        if self.dropped == 0 {
            let mut all = self.head.clone();
            all.append(&mut end);
            return (String::from_utf8_lossy(&all).into_owned(), false);
        }
        let head = whole_lines_before(&self.head);
        // The unfinished line counts as well.
        let tail = whole_lines_after(&end[end.len().saturating_sub(self.max_tail)..]);
        let cut = self.dropped + (self.head.len() - head.len() + end.len() - tail.len()) as u64;
        let count = |bytes: &[u8]| memchr::memchr_iter(b'\n', bytes).count() as u64;
        let lines =
            self.dropped_lines + count(&self.head[head.len()..]) + count(&end[..end.len() - tail.len()]);
        let mut text = String::from_utf8_lossy(head).into_owned();
        if !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&format!("[… {cut} bytes, {lines} lines cut …]\n"));
        text.push_str(&String::from_utf8_lossy(tail));
        (text, true)
    }

    /// The output that was not reported yet; `None` if there is none. A leading carriage return replaces the
    /// line reported so far, as a progress bar does. Of more than [`CHUNK_BYTES`], the newest are reported.
    pub(super) fn unreported(&self, reported: &mut ReportedOutput) -> Option<String> {
        let kept = self.head.len() as u64 + self.dropped + self.tail.len() as u64;
        let held = if self.dropped == 0 { self.head.len() + self.tail.len() } else { self.tail.len() };
        let fresh = usize::try_from(kept - reported.bytes).unwrap_or(usize::MAX);
        let taken = fresh.min(held).min(CHUNK_BYTES);
        let mut new: Vec<u8> =
            self.tail.iter().rev().chain(self.head.iter().rev()).take(taken).copied().collect();
        new.reverse();
        new.extend(self.line.iter().take(CHUNK_BYTES));
        let continued = if taken == fresh { new.strip_prefix(reported.line.as_slice()) } else { None };
        let replaces = continued.is_none() && !reported.line.is_empty();
        let bytes = continued.unwrap_or(&new);
        let bytes = &bytes[..valid_prefix(bytes)];
        if bytes.is_empty() && !replaces {
            return None;
        }
        let line = self.line.get(..valid_prefix(&self.line)).unwrap_or_default();
        *reported = ReportedOutput { bytes: kept, line: line.to_vec() };
        Some(format!("{}{}", if replaces { "\r" } else { "" }, String::from_utf8_lossy(bytes)))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.received == 0
    }
}

/// Cuts after the last line feed if it is in the second half, else at a character boundary.
fn whole_lines_before(bytes: &[u8]) -> &[u8] {
    match memchr::memrchr(b'\n', bytes) {
        Some(at) if at + 1 >= bytes.len() / 2 => &bytes[..=at],
        _ => &bytes[..valid_prefix(bytes)],
    }
}

/// Cuts after the first line feed if it is in the first half, else at a character boundary.
fn whole_lines_after(bytes: &[u8]) -> &[u8] {
    match memchr::memchr(b'\n', bytes) {
        Some(at) if at < bytes.len() / 2 => &bytes[at + 1..],
        _ => {
            let start = bytes.iter().take(3).take_while(|byte| (**byte & 0xC0) == 0x80).count();
            &bytes[start..]
        }
    }
}

/// Length without an incomplete character at the end.
fn valid_prefix(bytes: &[u8]) -> usize {
    let from = bytes.len().saturating_sub(3);
    match std::str::from_utf8(&bytes[from..]) {
        Err(error) if error.error_len().is_none() => from + error.valid_up_to(),
        _ => bytes.len(),
    }
}

#[cfg(test)]
mod tests;
