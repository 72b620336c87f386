//! Parts of the engine at scale: the file index, the template registry, the workflow language. Separate
//! programs measure; this module parses their output.

use std::path::Path;
use std::process::Command;

use super::Figure;
use super::measure::Programs;

/// The file index and the templates.
pub(crate) fn index(programs: &Programs) -> Vec<Figure> {
    let stdout_text = output(&programs.index);
    let targets = [
        ("index of 50 000 files", 10_000.0),
        ("ten changed files, beyond the walk", 100.0),
        ("a query among 50 000 files", 20.0),
        ("lookup among 10 000 templates", 1.0),
        ("match among 10 000 templates", 10.0),
    ];
    let measured = |name: &str| {
        let line = stdout_text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('\t'));
        line.and_then(|value| value.parse::<f64>().ok()).expect("every figure is told")
    };
    targets.iter().map(|(name, target)| Figure::at_most(*name, measured(name), "ms", *target)).collect()
}

/// The workflow language.
pub(crate) fn language(programs: &Programs) -> Vec<Figure> {
    let stdout_text = output(&programs.fib);
    let measured = |name: &str| {
        let line = stdout_text.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|rest| rest.split_whitespace().next()?.parse::<f64>().ok())
    };
    let ratio = measured("ratio:").expect("python3 is installed");
    let start = measured("start of 1000 forms:").expect("every figure is told");
    vec![
        Figure::at_most("fib(25) relative to python3", ratio, "x", 3.0),
        Figure::at_most("start-up of a workflow of 1 000 forms", start, "ms", 5.0),
    ]
}

fn output(program: &Path) -> String {
    let output = Command::new(program).output().expect("the program was built");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
