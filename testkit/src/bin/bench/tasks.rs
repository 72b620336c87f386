//! Many tasks in one process: the memory each one adds.

use std::process::Command;

use super::Figure;
use super::measure::Programs;

/// Turns of each task: enough for its conversation and its events to count.
const TURNS: usize = 10;

/// Peak memory with 1, 100 and 1000 concurrent tasks, and the memory per task.
pub(crate) fn memory(programs: &Programs) -> Vec<Figure> {
    let [one, hundred, thousand] = [1, 100, 1000].map(|tasks| peak_mb(programs, tasks));
    let shown = [(1, one), (100, hundred), (1000, thousand)]
        .map(|(tasks, peak)| Figure::shown(format!("memory, {tasks} tasks in one process"), peak, "MB"));
    let added = Figure::at_most("memory added per task", (thousand - one) / 999.0, "MB", 1.0);
    shown.into_iter().chain([added]).collect()
}

/// Peak memory of a process with this many concurrent tasks.
pub(crate) fn peak_mb(programs: &Programs, tasks: usize) -> f64 {
    let mut command = Command::new(&programs.many_tasks);
    let output = command.args([tasks, TURNS].map(|n| n.to_string())).output().expect("many_tasks was built");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let stdout_text = String::from_utf8_lossy(&output.stdout);
    let after = stdout_text.split_whitespace().nth(1).and_then(|kib| kib.parse::<f64>().ok());
    after.expect("peak memory in KiB, before and after") / 1024.0
}
