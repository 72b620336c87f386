//! Events as JSON Lines, each written whole and as soon as there is nothing more to go with it.

use std::io::{self, Write};

use fusee_engine::journal::Stamped;

use super::Face;

/// Lines are gathered up to this size.
const GATHERED: usize = 64 << 10;

/// Writes one line an event. Those that come together are written together; none waits for the next.
pub(crate) struct Json<W: Write> {
    out: W,
    lines: Vec<u8>,
}

impl<W: Write> Json<W> {
    /// A face on `out`.
    pub(crate) fn new(out: W) -> Self {
        Self { out, lines: Vec::new() }
    }
}

impl<W: Write + Send> Face for Json<W> {
    fn show(&mut self, event: &Stamped) -> io::Result<()> {
        serde_json::to_writer(&mut self.lines, event)?;
        self.lines.push(b'\n');
        if self.lines.len() < GATHERED { Ok(()) } else { self.rest() }
    }

    fn rest(&mut self) -> io::Result<()> {
        if self.lines.is_empty() {
            return Ok(());
        }
        let written = self.out.write_all(&self.lines).and_then(|()| self.out.flush());
        self.lines.clear();
        written
    }

    fn close(&mut self) -> io::Result<()> {
        self.rest()
    }
}
