//! Writes rows to a terminal: finished rows above, the redrawn area below. One write per frame, and rows are
//! overwritten without being cleared first, so nothing flickers.

use std::io::{self, Write};

use crate::ui::line::StyledLine;

/// Synchronized output: begins and ends a frame that supporting terminals display atomically.
const BEGIN: &str = "\u{1b}[?2026h";
const END: &str = "\u{1b}[?2026l";
/// Erase to the end of the row, and of the screen.
const CLEAR_ROW: &str = "\u{1b}[K";
const CLEAR_BELOW: &str = "\u{1b}[J";

/// The part of a terminal that is redrawn.
pub(crate) struct Screen<W: Write> {
    out: W,
    colour: bool,
    /// Widths of the area's rows as last drawn.
    drawn: Vec<usize>,
    /// Row of the area that the cursor was left in.
    at: usize,
    newline: &'static str,
}

impl<W: Write> Screen<W> {
    pub(crate) fn new(out: W, colour: bool) -> Self {
        Self { out, colour, drawn: Vec::new(), at: 0, newline: "\n" }
    }

    /// For a terminal in raw mode, where a line feed does not return the cursor to column 0.
    pub(crate) fn raw(out: W, colour: bool) -> Self {
        Self { newline: "\r\n", ..Self::new(out, colour) }
    }

    /// Like [`draw`](Self::draw), but leaves the cursor at a (row, column) of the area, where the user types.
    pub(crate) fn draw_with(
        &mut self,
        done: &[StyledLine],
        area: &[StyledLine],
        columns: usize,
        cursor: (usize, usize),
    ) -> io::Result<()> {
        let (row, column) = (cursor.0.min(area.len().saturating_sub(1)), cursor.1);
        let up = area.len().saturating_sub(row + 1);
        let mut place = String::new();
        if up > 0 {
            place.push_str(&format!("\u{1b}[{up}A"));
        }
        place.push('\r');
        if column > 0 {
            place.push_str(&format!("\u{1b}[{column}C"));
        }
        self.write(done, area, columns, &place)?;
        self.at = row;
        Ok(())
    }

    /// Writes the finished rows and the area below them. The cursor stays at the end of the area.
    pub(crate) fn draw(
        &mut self,
        done: &[StyledLine],
        area: &[StyledLine],
        columns: usize,
    ) -> io::Result<()> {
        self.write(done, area, columns, "")?;
        self.at = area.len().saturating_sub(1);
        Ok(())
    }

    fn write(
        &mut self,
        done: &[StyledLine],
        area: &[StyledLine],
        columns: usize,
        cursor: &str,
    ) -> io::Result<()> {
        if done.is_empty() && area.is_empty() && self.drawn.is_empty() {
            return Ok(());
        }
        let mut frame = String::from(BEGIN);
        frame.push('\r');
        // A terminal that became narrower has wrapped the rows drawn before.
        let rows = |width: &usize| width.div_ceil(columns.max(1)).max(1);
        let above: usize = self.drawn.iter().take(self.at).map(rows).sum();
        let own = self.drawn.get(self.at).map_or(0, |width| rows(width) - 1);
        if above + own > 0 {
            frame.push_str(&format!("\u{1b}[{}A", above + own));
        }
        for line in done {
            frame.push_str(&line.paint(self.colour));
            frame.push_str(CLEAR_ROW);
            frame.push_str(self.newline);
        }
        for (index, line) in area.iter().enumerate() {
            if index > 0 {
                frame.push_str(self.newline);
            }
            frame.push_str(&line.paint(self.colour));
            frame.push_str(CLEAR_ROW);
        }
        frame.push_str(CLEAR_BELOW);
        frame.push_str(cursor);
        frame.push_str(END);
        self.drawn = area.iter().map(StyledLine::width).collect();
        self.out.write_all(frame.as_bytes())?;
        self.out.flush()
    }

    /// Forgets the area and leaves it on the screen, because the user has typed into it.
    pub(crate) fn leave(&mut self) {
        self.drawn.clear();
    }
}
