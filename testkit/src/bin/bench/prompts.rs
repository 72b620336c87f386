//! Renders a prompt of a thousand sections, and again after an expansion.

use std::process::Command;

use super::Figure;
use super::measure::Programs;

/// Both rendering times in milliseconds.
pub(crate) fn rendering(programs: &Programs) -> Vec<Figure> {
    let output = Command::new(&programs.render_prompt).arg("1000").output().expect("render_prompt was built");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let stdout_text = String::from_utf8_lossy(&output.stdout);
    let mut figures = stdout_text.split_whitespace().filter_map(|us| us.parse::<f64>().ok());
    let mut next = || figures.next().expect("two times in microseconds") / 1e3;
    vec![
        Figure::at_most("rendering 1000 sections", next(), "ms", 2.0),
        Figure::at_most("rendering 1000 sections again after an expansion", next(), "ms", 1.0),
    ]
}
