//! Twenty concurrent processes on a slow model: the cost of contention.

use std::time::{Duration, Instant};

use super::Figure;
use super::measure::{Programs, Ready, Started, Who, Work, median, replies};

const PROCESSES: usize = 20;
const TURNS: usize = 10;
const LATENCY: Duration = Duration::from_millis(200);

/// Time until all processes have exited, compared with as many bare loops.
pub(crate) fn ratio(programs: &Programs) -> Vec<Figure> {
    let length = programs.run(Who::Fusee, &replies(1, Work::Commands, Duration::ZERO)).first_length;
    let replies = replies(TURNS, Work::Commands, LATENCY);
    let all = |who: Who| {
        let ready: Vec<Ready> = (0..PROCESSES).map(|_| programs.ready(who, &replies, &[])).collect();
        let begun = Instant::now();
        let crowd: Vec<Started> = ready.into_iter().map(Ready::start).collect();
        crowd.into_iter().for_each(|one| drop(one.finish()));
        begun.elapsed().as_secs_f64()
    };
    let pairs: Vec<(f64, f64)> = (0..5).map(|_| (all(Who::Floor(length)), all(Who::Fusee))).collect();
    let of = |value: fn(&(f64, f64)) -> f64| median(pairs.iter().map(value).collect());
    vec![
        Figure::shown("20 processes, 10 turns, 200 ms per reply: baseline", of(|pair| pair.0), "s"),
        Figure::shown("20 processes, 10 turns, 200 ms per reply: fusee", of(|pair| pair.1), "s"),
        Figure::at_most("20 processes relative to baseline", of(|pair| pair.1 / pair.0), "x", 1.15),
    ]
}
