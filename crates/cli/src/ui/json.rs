//! Events as JSON Lines. Complete lines only, flushed as soon as no further event is ready.

use std::io::{self, Write};

use fusee::engine::journal::EventRecord;

use super::Ui;

/// Buffer size in bytes that forces a write.
const GATHERED: usize = 64 << 10;

/// Writes one line per event. Events that are ready together share a write; none is held back for a later
/// one.
pub(crate) struct JsonLines<W: Write> {
    out: W,
    lines: Vec<u8>,
}

impl<W: Write> JsonLines<W> {
    /// Creates a writer on `out`.
    pub(crate) fn new(out: W) -> Self {
        Self { out, lines: Vec::new() }
    }
}

impl<W: Write + Send> Ui for JsonLines<W> {
    fn show(&mut self, event: &EventRecord) -> io::Result<()> {
        serde_json::to_writer(&mut self.lines, event)?;
        self.lines.push(b'\n');
        if self.lines.len() < GATHERED { Ok(()) } else { self.flush() }
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.lines.is_empty() {
            return Ok(());
        }
        let written = self.out.write_all(&self.lines).and_then(|()| self.out.flush());
        self.lines.clear();
        written
    }

    fn close(&mut self) -> io::Result<()> {
        self.flush()
    }
}
