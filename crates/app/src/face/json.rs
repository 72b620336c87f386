//! Events as JSON Lines, each written whole and at once.

use std::io::{self, Write};

use fusee_engine::journal::Stamped;

use super::Face;

/// Writes one line an event.
pub(crate) struct Json<W> {
    out: W,
    line: Vec<u8>,
}

impl<W: Write> Json<W> {
    /// A face on `out`.
    pub(crate) fn new(out: W) -> Self {
        Self { out, line: Vec::new() }
    }
}

impl<W: Write + Send> Face for Json<W> {
    fn show(&mut self, event: &Stamped) -> io::Result<()> {
        self.line.clear();
        serde_json::to_writer(&mut self.line, event)?;
        self.line.push(b'\n');
        self.out.write_all(&self.line)?;
        self.out.flush()
    }
}
