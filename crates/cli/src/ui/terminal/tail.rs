//! The last lines of a running command's output, in bounded memory.

/// Bytes of output that are kept.
const KEPT_BYTES: usize = 4096;

/// The most recent output of a command.
#[derive(Debug, Default)]
pub(crate) struct OutputTail {
    text: String,
}

impl OutputTail {
    /// Appends output.
    pub(crate) fn push(&mut self, piece: &str) {
        self.text.push_str(piece);
        if self.text.len() > 2 * KEPT_BYTES {
            let mut cut = self.text.len() - KEPT_BYTES;
            while !self.text.is_char_boundary(cut) {
                cut += 1;
            }
            self.text.drain(..cut);
        }
    }

    /// The last `most` lines that are not blank. Of a line overwritten with `\r`, the last version counts.
    pub(crate) fn lines(&self, most: usize) -> Vec<&str> {
        let shown = |line: &'_ str| -> bool { !line.trim().is_empty() };
        let mut lines: Vec<&str> = self
            .text
            .lines()
            .rev()
            .map(|line| line.trim_end_matches('\r').rsplit('\r').next().unwrap_or_default())
            .filter(|line| shown(line))
            .take(most)
            .collect();
        lines.reverse();
        lines
    }
}
