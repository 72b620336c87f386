use cell_grid::{next, period, Grid};

fn grid(lines: &[&str]) -> Grid {
    Grid::parse(&lines.join("\n")).unwrap()
}

#[test]
fn reading_and_writing() {
    let text = "#..\n.#.\n";
    assert_eq!(Grid::parse(text).unwrap().to_string(), text);
    assert_eq!(Grid::parse(text).unwrap().cells, [[true, false, false], [false, true, false]]);
}

#[test]
fn faulty_texts() {
    for text in ["", "\n", "#.\n#", "#x", "#. \n..."] {
        assert_eq!(Grid::parse(text), None, "{text:?}");
    }
}

#[test]
fn neighbours() {
    let grid = grid(&["####", "#..#", "#..#", "####"]);
    assert_eq!(grid.neighbours(1, 1), 5);
    assert_eq!(grid.neighbours(0, 0), 7);
    assert_eq!(grid.neighbours(3, 1), 6);
}

#[test]
fn edges_are_connected() {
    let grid = grid(&["#....", ".....", ".....", "....."]);
    assert_eq!(grid.neighbours(3, 4), 1);
    assert_eq!(grid.neighbours(1, 1), 1);
    assert_eq!(grid.neighbours(0, 0), 0);
    assert_eq!(grid.neighbours(2, 2), 0);
}

#[test]
fn generations() {
    let line = grid(&[".....", "..#..", "..#..", "..#..", "....."]);
    let turned = grid(&[".....", ".....", ".###.", ".....", "....."]);
    assert_eq!(next(&line), turned);
    assert_eq!(next(&turned), line);
    let lonely = grid(&["....", ".#..", "....", "...."]);
    assert_eq!(next(&lonely), grid(&["....", "....", "....", "...."]));
}

#[test]
fn periods() {
    let block = grid(&["....", ".##.", ".##.", "...."]);
    assert_eq!(period(&block, 10), Some(1));
    let line = grid(&[".....", "..#..", "..#..", "..#..", "....."]);
    assert_eq!(period(&line, 10), Some(2));
    assert_eq!(period(&line, 1), None);
    let glider = grid(&[".#....", "..#...", "###...", "......", "......", "......"]);
    assert_eq!(period(&glider, 30), Some(24));
    let lonely = grid(&["....", ".#..", "....", "...."]);
    assert_eq!(period(&lonely, 5), None);
}
