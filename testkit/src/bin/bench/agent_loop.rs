//! The performance table of the agent loop's specification; each target is a tenth of the specified limit.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use super::Figure;
use super::measure::Programs;
use super::tasks::peak_mb;

/// Number of concurrent tasks; the specification requires five.
const TASKS: usize = 500;

/// Turn initialisation, compaction, event emission, memory per task, concurrent tasks.
pub(crate) fn table(programs: &Programs) -> Vec<Figure> {
    let measured = measure(&programs.loop_cost);
    let figure = |shown: &str, name: &str, target: f64| Figure::at_most(shown, measured(name), "ms", target);
    let alone = peak_mb(programs, 1);
    let begun = Instant::now();
    // Fails unless every task completes.
    let together = peak_mb(programs, TASKS);
    let seconds = begun.elapsed().as_secs_f64();
    vec![
        figure("turn initialisation after 100 000 tokens, median", "turn, median", 5.0),
        figure("turn initialisation after 100 000 tokens, p99", "turn, 99 of 100", 5.0),
        figure("rule compaction of 100 000 tokens, typical", "compaction, usual", 5.0),
        figure("rule compaction of 100 000 tokens, worst", "compaction, worst", 20.0),
        figure("event emission including commit, mean", "event, mean with its commit", 0.05),
        figure("event emission, p99", "event, 99 of 100", 0.05),
        Figure::at_most("memory per task among 500", (together - alone) / (TASKS - 1) as f64, "MB", 5.0),
        Figure::shown("500 concurrent tasks, 10 turns each, all completed", seconds, "s"),
    ]
}

/// Building the request of turn 500: allocations and bytes beyond the turn's own content.
pub(crate) fn request(programs: &Programs) -> Vec<Figure> {
    let measured = measure(&programs.request_cost);
    let figures = ["chat", "responses", "anthropic"].map(|format| {
        let figure = |what: &str, unit: &'static str, target: f64| {
            Figure::at_most(
                format!("request of turn 500, {format}: {what}"),
                measured(&format!("{format}, {what}")),
                unit,
                target,
            )
        };
        [
            figure("allocations", "", 60.0),
            figure("kilobytes beyond its own", "KB", 128.0),
            figure("share of the body", "", 0.1),
        ]
    });
    figures.into_iter().flatten().collect()
}

/// Runs a program that prints one figure per line: name, tab, number.
fn measure(program: &Path) -> impl Fn(&str) -> f64 + use<> {
    let output = Command::new(program).output().expect("the program was built");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let stdout_text = String::from_utf8_lossy(&output.stdout).into_owned();
    move |name| {
        let line = stdout_text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('\t'));
        line.and_then(|value| value.parse::<f64>().ok()).expect("every figure is printed")
    }
}
