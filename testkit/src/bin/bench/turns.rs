//! Cost of a run by itself: start-up, one turn, and the growth of a turn's cost with the conversation.

use std::time::Duration;

use super::Figure;
use super::measure::{Programs, Who, Work, median, ms, replies};

/// From process start to the first request.
pub(crate) fn start(programs: &Programs) -> Vec<Figure> {
    let replies = replies(0, Work::Reads, Duration::ZERO);
    let runs: Vec<_> = (0..21).map(|_| programs.run(Who::Fusee, &replies)).collect();
    let first = median(runs.iter().map(|run| ms(run.first_request)).collect());
    let whole = median(runs.iter().map(|run| ms(run.wall)).collect());
    vec![
        Figure::at_most("start to first request", first, "ms", 20.0),
        Figure::shown("start to end, one reply", whole, "ms"),
    ]
}

/// From the end of a reply to the next request, with a tool that reads one line.
pub(crate) fn cost(programs: &Programs) -> Vec<Figure> {
    let replies = replies(100, Work::Reads, Duration::ZERO);
    let runs: Vec<_> = (0..5).map(|_| programs.run(Who::Fusee, &replies)).collect();
    let gaps: Vec<f64> = runs.iter().flat_map(|run| run.gaps.iter().map(|gap| ms(*gap))).collect();
    let mut sorted = gaps.clone();
    sorted.sort_by(f64::total_cmp);
    let slow = sorted[sorted.len() * 99 / 100];
    let peak = median(runs.iter().map(|run| run.peak_mb).collect());
    vec![
        Figure::at_most("reply to next request, median", median(gaps), "ms", 1.0),
        Figure::shown("reply to next request, p99", slow, "ms"),
        Figure::at_most("memory of one task, 100 turns of reads", peak, "MB", 20.0),
    ]
}

/// A turn near the 500th compared with a turn near the 10th.
pub(crate) fn growth(programs: &Programs) -> Vec<Figure> {
    let replies = replies(510, Work::Reads, Duration::ZERO);
    let runs: Vec<_> = (0..5).map(|_| programs.run(Who::Fusee, &replies)).collect();
    let around = |turn: usize| {
        let near =
            |gaps: &[Duration]| gaps[turn - 8..turn + 8].iter().map(|gap| ms(*gap)).collect::<Vec<_>>();
        median(runs.iter().flat_map(|run| near(&run.gaps)).collect())
    };
    let (early, late) = (around(10), around(500));
    vec![
        Figure::shown("reply to next request, around turn 10", early, "ms"),
        Figure::shown("reply to next request, around turn 500", late, "ms"),
        Figure::at_most("turn time at turn 500 relative to turn 10", late / early, "x", 1.3),
    ]
}

/// The same in instructions, which other processes do not disturb: 100 late turns compared with 100 early
/// ones.
pub(crate) fn instructions(programs: &Programs) -> Vec<Figure> {
    if std::process::Command::new("valgrind").arg("--version").output().is_err() {
        println!("instructions: skipped, valgrind is not installed");
        return Vec::new();
    }
    let count = |turns: usize| {
        let wrapper = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"];
        let replies = replies(turns, Work::Reads, Duration::ZERO);
        let said = programs.ready(Who::Fusee, &replies, &wrapper).start().finish_stderr();
        // Every process reports its own count, including the fork server. The run's is by far the largest.
        let counts = said.lines().filter_map(|line| line.split_once("Collected :"));
        let counts = counts.filter_map(|(_, count)| count.trim().parse::<f64>().ok());
        counts.reduce(f64::max).expect("callgrind's count")
    };
    let [a, b, c, d] = [10, 110, 400, 500].map(count);
    let (early, late) = ((b - a) / 100.0, (d - c) / 100.0);
    vec![
        Figure::shown("instructions per turn, turns 10 to 110", early / 1000.0, "k"),
        Figure::shown("instructions per turn, turns 400 to 500", late / 1000.0, "k"),
        Figure::at_most("instructions per turn, late relative to early", late / early, "x", 1.3),
    ]
}
