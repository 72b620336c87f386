//! Putting rows on a terminal: what is done above, the area that changes below it. One write a frame, no row
//! cleared before it is written again, so nothing flickers.

use std::io::{self, Write};

use crate::face::line::Line;

/// Begins and ends a frame that the terminal shows at once, where it knows how.
const BEGIN: &str = "\u{1b}[?2026h";
const END: &str = "\u{1b}[?2026l";
/// Clears to the end of the row, and of the screen.
const CLEAR_ROW: &str = "\u{1b}[K";
const CLEAR_BELOW: &str = "\u{1b}[J";

/// The part of a terminal that is ours.
pub(crate) struct Screen<W: Write> {
    out: W,
    colour: bool,
    /// The widths of the rows of the area as they were drawn last.
    drawn: Vec<usize>,
}

impl<W: Write> Screen<W> {
    pub(crate) fn new(out: W, colour: bool) -> Self {
        Self { out, colour, drawn: Vec::new() }
    }

    /// Writes what is done, and the area below it. The cursor stays at the end of the area.
    pub(crate) fn draw(&mut self, done: &[Line], area: &[Line], columns: usize) -> io::Result<()> {
        if done.is_empty() && area.is_empty() && self.drawn.is_empty() {
            return Ok(());
        }
        let mut frame = String::from(BEGIN);
        frame.push('\r');
        // A terminal that became narrower has broken our rows.
        let rows: usize = self.drawn.iter().map(|width| width.div_ceil(columns.max(1)).max(1)).sum();
        if rows > 1 {
            frame.push_str(&format!("\u{1b}[{}A", rows - 1));
        }
        for line in done {
            frame.push_str(&line.paint(self.colour));
            frame.push_str(CLEAR_ROW);
            frame.push('\n');
        }
        for (index, line) in area.iter().enumerate() {
            if index > 0 {
                frame.push('\n');
            }
            frame.push_str(&line.paint(self.colour));
            frame.push_str(CLEAR_ROW);
        }
        frame.push_str(CLEAR_BELOW);
        frame.push_str(END);
        self.drawn = area.iter().map(Line::width).collect();
        self.out.write_all(frame.as_bytes())?;
        self.out.flush()
    }

    /// Forgets the area: somebody has typed into it, so it stays where it is.
    pub(crate) fn leave(&mut self) {
        self.drawn.clear();
    }
}
