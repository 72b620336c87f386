//! Cost of tools: `search_text` and `find_files` compared with `rg`, a sandboxed command compared with a bare
//! one. The measuring programs are examples of the tools crate; they print one name and number per line.

use std::path::Path;
use std::process::Command;

use super::Figure;
use super::measure::Programs;

/// Maximum ratio to `rg` on 50 000 files.
const MAX_RATIO: f64 = 1.5;
/// Maximum milliseconds the sandbox adds to a command.
const MAX_MS: f64 = 3.0;
/// Maximum milliseconds of a copy that the kernel can make as an overlay.
const MAX_COPY_MS: f64 = 50.0;

/// Our time divided by the time of `rg`, on the same tree in the same run.
pub(crate) fn search(programs: &Programs) -> Vec<Figure> {
    let figures = measure(&programs.search_cost);
    figures
        .into_iter()
        .map(|(name, ratio)| Figure::at_most(format!("{name} relative to rg"), ratio, "x", MAX_RATIO))
        .collect()
}

/// Time of a command in the sandbox beyond a bare spawn.
pub(crate) fn sandbox(programs: &Programs) -> Vec<Figure> {
    let figures = measure(&programs.sandbox_cost);
    let bare = figures.first().map_or(0.0, |(_, bare)| *bare);
    let figures = figures.into_iter().map(|(name, ms)| match name.as_str() {
        "in the namespace sandbox"
        | "in a workspace of a thousand directories"
        | "in the Landlock sandbox" => {
            Figure::at_most(format!("command {name}, overhead"), ms - bare, "ms", MAX_MS)
        }
        _ => Figure::shown(format!("command {name}"), ms, "ms"),
    });
    figures.collect()
}

/// Time of a copy of a project with 50 000 files. Copies as files depend on the file system.
pub(crate) fn copy(programs: &Programs) -> Vec<Figure> {
    let figures = measure(&programs.copy_cost).into_iter().map(|(name, ms)| match name.as_str() {
        "as an overlay" => Figure::at_most(format!("copy of 50 000 files {name}"), ms, "ms", MAX_COPY_MS),
        _ => Figure::shown(format!("copy of 50 000 files {name}"), ms, "ms"),
    });
    figures.collect()
}

fn measure(program: &Path) -> Vec<(String, f64)> {
    let output = Command::new(program).output().expect("the tools' examples were built");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let number = |line: &str| {
        let (name, number) = line.split_once('\t')?;
        Some((name.to_owned(), number.trim().parse().ok()?))
    };
    String::from_utf8_lossy(&output.stdout).lines().filter_map(number).collect()
}
