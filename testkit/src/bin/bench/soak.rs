//! Ten thousand turns in one process with continuous faults and compactions, to find leaks.

use fusee_testkit::soak::soak;

use super::Figure;
use super::measure::{Programs, ms};

const TURNS: usize = 10_000;

/// Growth over the last four fifths of the turns.
pub(crate) fn leaks(programs: &Programs) -> Vec<Figure> {
    let soaked = soak(&programs.fusee, TURNS);
    let (early, late) = (soaked.early, soaked.late);
    let more = |late: usize, early: usize| late as f64 - early as f64;
    let memory = (late.resident_kb as f64 - early.resident_kb as f64) / 1024.0;
    let growth = soaked.late_turn.as_secs_f64() / soaked.early_turn.as_secs_f64();
    vec![
        Figure::shown("soak of 10 000 turns, injected faults", soaked.faults as f64, ""),
        Figure::shown("soak, compactions", soaked.compactions as f64, ""),
        Figure::shown("soak, memory at turn 2 000", early.resident_kb as f64 / 1024.0, "MB"),
        Figure::at_most("soak, memory added by 8 000 more turns", memory, "MB", 4.0),
        // Pooled connections and threads for blocking work come with the load and stay for seconds.
        Figure::at_most(
            "soak, descriptors added by 8 000 more turns",
            more(late.descriptors, early.descriptors),
            "",
            8.0,
        ),
        Figure::at_most(
            "soak, threads added by 8 000 more turns",
            more(late.threads, early.threads),
            "",
            8.0,
        ),
        Figure::shown("soak, turn time around turn 100", ms(soaked.early_turn), "ms"),
        Figure::at_most("soak, turn time at turn 10 000 relative to turn 100", growth, "x", 1.3),
    ]
}
