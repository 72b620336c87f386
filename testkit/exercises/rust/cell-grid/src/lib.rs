mod grid;

pub use grid::Grid;

/// Returns the next generation.
pub fn next(grid: &Grid) -> Grid {
    grid.clone()
}
