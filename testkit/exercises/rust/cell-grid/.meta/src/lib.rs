mod grid;

pub use grid::Grid;

/// Returns the next generation.
pub fn next(grid: &Grid) -> Grid {
    let mut cells = grid.cells.clone();
    for (row, line) in cells.iter_mut().enumerate() {
        for (column, cell) in line.iter_mut().enumerate() {
            *cell = matches!((*cell, grid.neighbours(row, column)), (true, 2) | (_, 3));
        }
    }
    Grid { cells }
}

/// Returns after how many generations the grid looks the same again.
pub fn period(grid: &Grid, limit: usize) -> Option<usize> {
    let mut current = grid.clone();
    for generation in 1..=limit {
        current = next(&current);
        if current == *grid {
            return Some(generation);
        }
    }
    None
}
