//! The live face of a terminal: what is done scrolls by as ordinary output, what is under way stands below it and
//! is redrawn.
//!
//! `view.rs` knows what there is to show and does no output; `screen.rs` puts it on the terminal. The cursor is
//! never hidden and the terminal's modes are never changed, so there is nothing to restore however we end.

mod glyphs;
mod rows;
mod screen;
mod status;
mod stream;
mod tail;
mod view;

use std::io::{self, Write};
use std::time::{Duration, Instant};

use fusee_engine::journal::event::{Event, TaskStatus};
use fusee_engine::journal::{Branch, Stamped};
use fusee_engine::model::CancellationToken;

use super::{Face, Plan};
pub(crate) use glyphs::{ASCII, Glyphs, UNICODE};
pub(crate) use screen::Screen;
pub(crate) use view::View;

#[cfg(test)]
mod tests;

/// At most twenty frames a second.
const FRAME: Duration = Duration::from_millis(50);

/// How often the elapsed time and the spinner move while nothing else does.
const BREATH: Duration = Duration::from_millis(100);

/// How a terminal is to be treated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Looks {
    pub(crate) colour: bool,
    pub(crate) glyphs: &'static Glyphs,
    /// Whether stdout is this terminal too; then the answer that was streamed is not written again.
    pub(crate) answer_shows: bool,
}

/// The face.
pub(crate) struct Terminal<W: Write> {
    view: View,
    screen: Screen<W>,
    looks: Looks,
    cancel: CancellationToken,
    begun: Instant,
    last_frame: Option<Instant>,
    size: fn() -> (usize, usize),
    /// A question stands on the screen and must not be drawn over: somebody types there.
    asked: bool,
    /// The answer for a stdout that is something else.
    answer: Option<String>,
}

impl<W: Write> Terminal<W> {
    /// A face on `out`, whose columns and rows `size` knows.
    pub(crate) fn new(
        out: W,
        plan: Plan,
        looks: Looks,
        cancel: CancellationToken,
        size: fn() -> (usize, usize),
    ) -> Self {
        let screen = Screen::new(out, looks.colour);
        let view = View::new(plan, looks.glyphs);
        Self {
            view,
            screen,
            looks,
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
        let done = self.view.done(columns);
        let area = self.view.area(columns, rows, now, self.cancel.is_cancelled());
        self.last_frame = Some(Instant::now());
        self.screen.draw(&done, &area, columns)
    }
}

impl<W: Write + Send> Face for Terminal<W> {
    fn recall(&mut self, stamped: &Stamped) {
        self.view.recall(stamped);
    }

    fn show(&mut self, stamped: &Stamped) -> io::Result<()> {
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

    fn pace(&self) -> Option<Duration> {
        let wanted = if self.view.is_dirty() { FRAME } else { BREATH };
        let passed = self.last_frame.map_or(FRAME, |last| last.elapsed());
        Some(wanted.saturating_sub(passed).max(Duration::from_millis(1)))
    }

    fn tick(&mut self) -> io::Result<()> {
        self.draw()
    }

    fn close(&mut self) -> io::Result<()> {
        let (columns, _) = (self.size)();
        let done = self.view.done(columns);
        self.screen.draw(&done, &[], columns)?;
        match self.answer.take() {
            Some(answer) if !self.looks.answer_shows && !answer.is_empty() => {
                let mut out = io::stdout().lock();
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
        // A terminal that does not tell is an ordinary one.
        _ => (80, 24),
    }
}
