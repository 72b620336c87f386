//! Splits a file into lines that keep their own endings.

/// The content of a file, split into lines.
pub(super) struct FileLines<'f> {
    /// The byte order mark, if any; kept and not part of the first line.
    pub(super) mark: &'f [u8],
    pub(super) lines: Vec<FileLine<'f>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileLine<'f> {
    pub(super) text: &'f [u8],
    /// Empty at the end of a file without a final newline.
    pub(super) ending: &'f [u8],
}

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

impl<'f> FileLines<'f> {
    pub(super) fn split(content: &'f [u8]) -> Self {
        let (mark, rest) = match content.strip_prefix(BYTE_ORDER_MARK) {
            Some(rest) => (BYTE_ORDER_MARK, rest),
            None => (&[][..], content),
        };
        // Classic Mac line endings: carriage returns and no line feed.
        let terminator = if rest.contains(&b'\n') || !rest.contains(&b'\r') { b'\n' } else { b'\r' };
        let lines = rest
            .split_inclusive(|byte| *byte == terminator)
            .map(|line| {
                let text = line.strip_suffix(&[terminator]).unwrap_or(line);
                let text = match text.strip_suffix(b"\r") {
                    Some(text) if terminator == b'\n' && line.ends_with(b"\n") => text,
                    _ => text,
                };
                FileLine { text, ending: &line[text.len()..] }
            })
            .collect();
        Self { mark, lines }
    }

    /// Line ending for a new line at this position, taken from its neighbours.
    pub(super) fn ending_at(&self, place: usize) -> &'f [u8] {
        let before = self.lines[..place.min(self.lines.len())].iter().rev();
        let after = self.lines[place.min(self.lines.len())..].iter();
        before.chain(after).map(|line| line.ending).find(|ending| !ending.is_empty()).unwrap_or(b"\n")
    }

    /// Whether the last line has a line ending; true for an empty file.
    pub(super) fn final_newline(&self) -> bool {
        self.lines.last().is_none_or(|line| !line.ending.is_empty())
    }
}
