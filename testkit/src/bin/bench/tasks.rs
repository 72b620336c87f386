//! Many tasks in one process: what each adds to its memory.

use std::process::Command;

use super::Figure;
use super::measure::Programs;

/// Turns of each task: enough for its conversation and its events to count.
const TURNS: usize = 10;

/// The process's peak with 1, 100 and 1000 tasks at once, and what a task adds.
pub(crate) fn memory(programs: &Programs) -> Vec<Figure> {
    let [one, hundred, thousand] = [1, 100, 1000].map(|tasks| peak_mb(programs, tasks));
    let shown = [(1, one), (100, hundred), (1000, thousand)]
        .map(|(tasks, peak)| Figure::shown(format!("memory, {tasks} tasks in one process"), peak, "MB"));
    let added = Figure::at_most("memory that a task adds", (thousand - one) / 999.0, "MB", 1.0);
    shown.into_iter().chain([added]).collect()
}

/// The peak of a process that works on so many tasks at once.
pub(crate) fn peak_mb(programs: &Programs, tasks: usize) -> f64 {
    let mut command = Command::new(&programs.many_tasks);
    let output = command.args([tasks, TURNS].map(|n| n.to_string())).output().expect("many_tasks was built");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let told = String::from_utf8_lossy(&output.stdout);
    let after = told.split_whitespace().nth(1).and_then(|kib| kib.parse::<f64>().ok());
    after.expect("peak memory in KiB, before and after") / 1024.0
}
