//! What tools cost: search_text and find_files against `rg`, a confined command against a bare one. The programs that
//! measure are examples of the tools' crate; they say a name and a number a line.

use std::path::Path;
use std::process::Command;

use super::Figure;
use super::measure::Programs;

/// Against `rg` on 50 000 files.
const MOST_RATIO: f64 = 1.5;
/// Milliseconds that the sandbox adds to a command.
const MOST_MS: f64 = 3.0;

/// Our time by that of `rg`, on the same tree in the same run.
pub(crate) fn search(programs: &Programs) -> Vec<Figure> {
    let told = told(&programs.search_cost);
    told.into_iter()
        .map(|(name, ratio)| Figure::at_most(format!("{name} against rg"), ratio, "x", MOST_RATIO))
        .collect()
}

/// What a command costs in the sandbox beyond a bare spawn.
pub(crate) fn sandbox(programs: &Programs) -> Vec<Figure> {
    let told = told(&programs.sandbox_cost);
    let bare = told.first().map_or(0.0, |(_, bare)| *bare);
    let figures = told.into_iter().map(|(name, ms)| match name.as_str() {
        "in the sandbox" | "behind a fence" => {
            Figure::at_most(format!("a command {name}, more than bare"), ms - bare, "ms", MOST_MS)
        }
        _ => Figure::shown(format!("a command {name}"), ms, "ms"),
    });
    figures.collect()
}

fn told(program: &Path) -> Vec<(String, f64)> {
    let output = Command::new(program).output().expect("the tools' examples were built");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let number = |line: &str| {
        let (name, number) = line.split_once('\t')?;
        Some((name.to_owned(), number.trim().parse().ok()?))
    };
    String::from_utf8_lossy(&output.stdout).lines().filter_map(number).collect()
}
