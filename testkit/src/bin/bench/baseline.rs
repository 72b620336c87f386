//! Compares Fusee with the bare loop: the same requests and commands, in alternating runs.

use std::time::Duration;

use super::Figure;
use super::measure::{Measured, Programs, Who, Work, median, ms, replies};

/// Wall time, CPU time and memory at 50 and 200 turns.
pub(crate) fn ratios(programs: &Programs) -> Vec<Figure> {
    let length = programs.run(Who::Fusee, &replies(1, Work::Commands, Duration::ZERO)).first_length;
    [(50, 11), (200, 5)].into_iter().flat_map(|(turns, pairs)| at(programs, turns, pairs, length)).collect()
}

fn at(programs: &Programs, turns: usize, pairs: usize, length: usize) -> Vec<Figure> {
    let replies = replies(turns, Work::Commands, Duration::ZERO);
    let runs: Vec<(Measured, Measured)> = (0..pairs)
        .map(|_| (programs.run(Who::Floor(length), &replies), programs.run(Who::Fusee, &replies)))
        .collect();
    let of = |value: &dyn Fn(&(Measured, Measured)) -> f64| median(runs.iter().map(value).collect());
    let per_turn = |time: Duration| ms(time) / turns as f64;
    vec![
        Figure::shown(
            format!("{turns} turns: baseline, wall time per turn"),
            of(&|(floor, _)| per_turn(floor.wall)),
            "ms",
        ),
        Figure::shown(
            format!("{turns} turns: fusee, wall time per turn"),
            of(&|(_, ours)| per_turn(ours.wall)),
            "ms",
        ),
        Figure::at_most(
            format!("{turns} turns: wall time relative to baseline"),
            of(&|(floor, ours)| ours.wall.as_secs_f64() / floor.wall.as_secs_f64()),
            "x",
            1.5,
        ),
        Figure::at_most(
            format!("{turns} turns: CPU time relative to baseline"),
            of(&|(floor, ours)| ours.cpu.as_secs_f64() / floor.cpu.as_secs_f64()),
            "x",
            1.5,
        ),
        Figure::shown(format!("{turns} turns: baseline, memory"), of(&|(floor, _)| floor.peak_mb), "MB"),
        Figure::at_most(format!("{turns} turns: fusee, memory"), of(&|(_, ours)| ours.peak_mb), "MB", 20.0),
    ]
}
