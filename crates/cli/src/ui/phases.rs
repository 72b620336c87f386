//! Phase events on stdout, one line each (`phase_log = "stdout"`). All other events go to the wrapped UI.

use std::io::{self, Write};
use std::time::Duration;

use fusee::engine::journal::EventRecord;
use fusee::engine::text::render::sanitize;

use super::{Ui, format};

#[cfg(test)]
mod tests;

/// Wraps a UI and diverts phase events to `out`.
pub(crate) struct PhaseUi<O> {
    out: O,
    rest: Box<dyn Ui>,
}

impl<O: Write> PhaseUi<O> {
    /// Writes phase events to `out` and passes everything else to `rest`.
    pub(crate) fn new(out: O, rest: Box<dyn Ui>) -> Self {
        Self { out, rest }
    }
}

impl<O: Write + Send> Ui for PhaseUi<O> {
    fn show(&mut self, event: &EventRecord) -> io::Result<()> {
        match format::phase_text(&event.event) {
            Some(text) => {
                writeln!(self.out, "{}", sanitize(&text))?;
                self.out.flush()
            }
            None => self.rest.show(event),
        }
    }

    fn note_rendered(&mut self, event: &EventRecord) {
        self.rest.note_rendered(event);
    }

    fn flush(&mut self) -> io::Result<()> {
        self.rest.flush()
    }

    fn redraw_interval(&self) -> Option<Duration> {
        self.rest.redraw_interval()
    }

    fn tick(&mut self) -> io::Result<()> {
        self.rest.tick()
    }

    fn close(&mut self) -> io::Result<()> {
        self.rest.close()
    }
}
