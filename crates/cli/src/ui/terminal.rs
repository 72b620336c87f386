//! The live terminal UI of a run: finished rows scroll by as ordinary output, work in progress is redrawn in
//! an area below them.
//!
//! `view.rs` holds the content and performs no I/O; `screen.rs` writes it to the terminal. The cursor is
//! never hidden and the terminal's modes are never changed, so nothing has to be restored on any exit.

mod glyphs;
mod rows;
mod screen;
mod status;
mod stream_buffer;
mod tail;
mod view;

use std::io::{self, Write};
use std::time::{Duration, Instant};

use fusee::engine::journal::event::{Event, TaskStatus};
use fusee::engine::journal::{Branch, EventRecord};
use fusee::engine::model::CancellationToken;

use super::{RunHeader, Ui};
use crate::process::stdio;
pub(crate) use glyphs::{ASCII, Glyphs, UNICODE};
pub(crate) use screen::Screen;
pub(crate) use view::View;

#[cfg(test)]
mod tests;

/// Minimum time between frames: at most 20 frames per second.
const FRAME: Duration = Duration::from_millis(50);

/// Update interval of the elapsed time and the spinner while no events arrive.
const TICK: Duration = Duration::from_millis(100);

/// Appearance of the terminal UI.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Appearance {
    pub(crate) colour: bool,
    pub(crate) glyphs: &'static Glyphs,
    /// Whether stdout is this terminal too; then the streamed answer is not written again.
    pub(crate) answer_shows: bool,
}

/// The live UI.
pub(crate) struct TerminalUi<W: Write> {
    view: View,
    screen: Screen<W>,
    appearance: Appearance,
    cancel: CancellationToken,
    begun: Instant,
    last_frame: Option<Instant>,
    size: fn() -> (usize, usize),
    /// A question is on the screen and the user is typing below it, so it must not be redrawn.
    asked: bool,
    /// The answer, to be written to a stdout that is not this terminal.
    answer: Option<String>,
}

impl<W: Write> TerminalUi<W> {
    /// Creates a UI on `out`; `size` returns the terminal's columns and rows.
    pub(crate) fn new(
        out: W,
        plan: RunHeader,
        appearance: Appearance,
        cancel: CancellationToken,
        size: fn() -> (usize, usize),
    ) -> Self {
        let screen = Screen::new(out, appearance.colour);
        let view = View::new(plan, appearance.glyphs);
        Self {
            view,
            screen,
            appearance,
            cancel,
            begun: Instant::now(),
            last_frame: None,
            size,
            asked: false,
            answer: None,
        }
    }

    fn draw(&mut self) -> io::Result<()> {
        match (self.view.is_asking(), self.asked) {
            (true, true) => return Ok(()),
            (false, true) => self.screen.leave(),
            (_, false) => {}
        }
        self.asked = self.view.is_asking();
        let (columns, rows) = (self.size)();
        let now = self.begun.elapsed();
        let done = self.view.take_finished_rows(columns);
        let area = self.view.render_progress(columns, rows, now, self.cancel.is_cancelled());
        self.last_frame = Some(Instant::now());
        self.screen.draw(&done, &area, columns)
    }
}

impl<W: Write + Send> Ui for TerminalUi<W> {
    fn note_rendered(&mut self, stamped: &EventRecord) {
        self.view.note_rendered(stamped);
    }

    fn show(&mut self, stamped: &EventRecord) -> io::Result<()> {
        self.view.take(stamped, self.begun.elapsed());
        if let (Event::TaskComplete(complete), true) = (&stamped.event, stamped.task == Branch::main())
            && complete.status == TaskStatus::Completed
        {
            self.answer = Some(complete.answer.clone());
        }
        match self.last_frame {
            Some(last) if last.elapsed() < FRAME => Ok(()),
            _ => self.draw(),
        }
    }

    fn redraw_interval(&self) -> Option<Duration> {
        let wanted = if self.view.is_dirty() { FRAME } else { TICK };
        let passed = self.last_frame.map_or(FRAME, |last| last.elapsed());
        Some(wanted.saturating_sub(passed).max(Duration::from_millis(1)))
    }

    fn tick(&mut self) -> io::Result<()> {
        self.draw()
    }

    fn close(&mut self) -> io::Result<()> {
        let (columns, _) = (self.size)();
        let done = self.view.take_finished_rows(columns);
        self.screen.draw(&done, &[], columns)?;
        match self.answer.take() {
            Some(answer) if !self.appearance.answer_shows && !answer.is_empty() => {
                let mut out = stdio::ExactStdout;
                out.write_all(answer.trim_end().as_bytes())?;
                out.write_all(b"\n")?;
                out.flush()
            }
            _ => Ok(()),
        }
    }
}

/// Columns and rows of the terminal on stderr.
pub(crate) fn size_of_stderr() -> (usize, usize) {
    size_of(io::stderr())
}

/// Columns of the terminal on stdout.
pub(crate) fn columns_of_stdout() -> usize {
    size_of(io::stdout()).0
}

pub(crate) fn size_of(stream: impl std::os::fd::AsFd) -> (usize, usize) {
    match rustix::termios::tcgetwinsize(stream) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col.into(), size.ws_row.into()),
        // Default size for terminals that do not report one.
        _ => (80, 24),
    }
}
