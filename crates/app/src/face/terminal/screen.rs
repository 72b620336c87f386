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
    /// The row of the area that the cursor was left on.
    at: usize,
    newline: &'static str,
}

impl<W: Write> Screen<W> {
    pub(crate) fn new(out: W, colour: bool) -> Self {
        Self { out, colour, drawn: Vec::new(), at: 0, newline: "\n" }
    }

    /// For a terminal that takes bytes as they are: a new row begins where the last one ended.
    pub(crate) fn raw(out: W, colour: bool) -> Self {
        Self { newline: "\r\n", ..Self::new(out, colour) }
    }

    /// The same as [`draw`](Self::draw), and the cursor is left where somebody types: in a row of the area, at a column.
    pub(crate) fn draw_with(
        &mut self,
        done: &[Line],
        area: &[Line],
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

    /// Writes what is done, and the area below it. The cursor stays at the end of the area.
    pub(crate) fn draw(&mut self, done: &[Line], area: &[Line], columns: usize) -> io::Result<()> {
        self.write(done, area, columns, "")?;
        self.at = area.len().saturating_sub(1);
        Ok(())
    }

    fn write(&mut self, done: &[Line], area: &[Line], columns: usize, cursor: &str) -> io::Result<()> {
        if done.is_empty() && area.is_empty() && self.drawn.is_empty() {
            return Ok(());
        }
        let mut frame = String::from(BEGIN);
        frame.push('\r');
        // A terminal that became narrower has broken our rows.
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
        self.drawn = area.iter().map(Line::width).collect();
        self.out.write_all(frame.as_bytes())?;
        self.out.flush()
    }

    /// Forgets the area: somebody has typed into it, so it stays where it is.
    pub(crate) fn leave(&mut self) {
        self.drawn.clear();
    }
}
