//! The last lines of a running command's output, within a bound.

/// So much of the output is kept to find lines in.
const KEPT_BYTES: usize = 4096;

/// The newest output.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    text: String,
}

impl Tail {
    /// More came.
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

    /// The last lines that hold something. Of a line that was written over, the last version counts.
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
