use std::fmt;

/// A grid of cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grid {
    pub cells: Vec<Vec<bool>>,
}

impl Grid {
    /// Reads lines of `#` and `.`.
    pub fn parse(text: &str) -> Option<Self> {
        let mut cells: Vec<Vec<bool>> = Vec::new();
        for line in text.lines() {
            let mut row = Vec::new();
            for character in line.chars() {
                match character {
                    '#' => row.push(true),
                    '.' => row.push(false),
                    _ => return None,
                }
            }
            cells.push(row);
        }
        let width = cells.first()?.len();
        if width == 0 || cells.iter().any(|row| row.len() != width) {
            return None;
        }
        Some(Grid { cells })
    }

    /// Counts the living cells around a cell.
    pub fn neighbours(&self, row: usize, column: usize) -> usize {
        let (height, width) = (self.cells.len(), self.cells[0].len());
        let mut count = 0;
        for down in [height - 1, 0, 1] {
            for right in [width - 1, 0, 1] {
                let is_center = down == 0 && right == 0;
                if !is_center && self.cells[(row + down) % height][(column + right) % width] {
                    count += 1;
                }
            }
        }
        count
    }
}

impl fmt::Display for Grid {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        for row in &self.cells {
            let line: String = row.iter().map(|alive| if *alive { '#' } else { '.' }).collect();
            writeln!(f, "{line}")?;
        }
        Ok(())
    }
}
