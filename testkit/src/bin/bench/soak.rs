//! Ten thousand turns in one process, with faults and compactions all along: nothing is added on the way.

use fusee_testkit::soak::soak;

use super::Figure;
use super::measure::{Programs, ms};

const TURNS: usize = 10_000;

/// What the last four fifths of the turns add.
pub(crate) fn leaks(programs: &Programs) -> Vec<Figure> {
    let soaked = soak(&programs.fusee, TURNS);
    let (early, late) = (soaked.early, soaked.late);
    let more = |late: usize, early: usize| late as f64 - early as f64;
    let memory = (late.resident_kb as f64 - early.resident_kb as f64) / 1024.0;
    let growth = soaked.late_turn.as_secs_f64() / soaked.early_turn.as_secs_f64();
    vec![
        Figure::shown("soak of 10 000 turns, faults met", soaked.faults as f64, ""),
        Figure::shown("soak, compactions", soaked.compactions as f64, ""),
        Figure::shown("soak, memory at turn 2 000", early.resident_kb as f64 / 1024.0, "MB"),
        Figure::at_most("soak, memory that 8 000 more turns add", memory, "MB", 4.0),
        // Connections kept for the next request and threads for what blocks come with the work and stay for seconds.
        Figure::at_most(
            "soak, descriptors that they add",
            more(late.descriptors, early.descriptors),
            "",
            8.0,
        ),
        Figure::at_most("soak, threads that they add", more(late.threads, early.threads), "", 8.0),
        Figure::shown("soak, a turn about turn 100", ms(soaked.early_turn), "ms"),
        Figure::at_most("soak, growth of a turn's time to turn 10 000", growth, "x", 1.3),
    ]
}
