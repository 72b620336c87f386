//! The plain UI of a chat. It tells the keyboard when the events before a question have been shown.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use fusee::engine::journal::{Event, EventRecord};

use super::keyboard::Keyboard;
use crate::ui::Ui;

/// Wraps a UI and notifies the keyboard, which asks the questions.
pub(super) struct PlainRenderer<F> {
    pub(super) ui: F,
    pub(super) keyboard: Arc<Keyboard>,
}

impl<F: Ui> Ui for PlainRenderer<F> {
    fn show(&mut self, stamped: &EventRecord) -> io::Result<()> {
        self.ui.show(stamped)?;
        if let Event::ApprovalRequested { .. } = &stamped.event {
            self.ui.flush()?;
            self.keyboard.has_shown();
        }
        Ok(())
    }

    fn note_rendered(&mut self, stamped: &EventRecord) {
        self.ui.note_rendered(stamped);
    }

    fn flush(&mut self) -> io::Result<()> {
        self.ui.flush()
    }

    fn batch_delay(&self) -> Duration {
        self.ui.batch_delay()
    }

    fn redraw_interval(&self) -> Option<Duration> {
        self.ui.redraw_interval()
    }

    fn tick(&mut self) -> io::Result<()> {
        self.ui.tick()
    }

    fn close(&mut self) -> io::Result<()> {
        self.ui.close()
    }
}
