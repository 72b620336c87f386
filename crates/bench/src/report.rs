//! The report: one self-contained HTML page with plots and tables. It loads nothing, follows the reader's light or dark
//! preference and prints on paper. `plot` draws the SVG.

mod plot;
mod section;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::results::TrialResult;
use crate::statistics::{Interval, wilson};

const STYLE: &str = include_str!("report/style.css");

/// Results of a job, with the name they have in the report.
#[derive(Clone, Debug)]
pub struct ReportInput {
    /// Name, such as the folder.
    pub name: String,
    /// One entry per trial, in the order in which they ended.
    pub results: Vec<TrialResult>,
}

/// The results of one variant.
pub(crate) struct Series {
    pub(crate) name: String,
    pub(crate) results: Vec<TrialResult>,
}

impl Series {
    fn graded(&self) -> impl Iterator<Item = &TrialResult> {
        self.results.iter().filter(|result| result.is_graded())
    }

    pub(crate) fn passed(&self) -> (u64, u64) {
        let graded = self.graded().count() as u64;
        (self.graded().filter(|result| result.passed).count() as u64, graded)
    }

    pub(crate) fn rate(&self) -> f64 {
        let (passed, graded) = self.passed();
        if graded == 0 { 0.0 } else { passed as f64 / graded as f64 }
    }

    pub(crate) fn interval(&self) -> Interval {
        let (passed, graded) = self.passed();
        wilson(passed, graded, 0.95)
    }

    pub(crate) fn sum(&self, field: impl Fn(&TrialResult) -> f64) -> f64 {
        self.results.iter().map(field).sum()
    }

    /// Mean over all trials.
    pub(crate) fn mean(&self, field: impl Fn(&TrialResult) -> f64) -> f64 {
        self.sum(field) / self.results.len().max(1) as f64
    }
}

/// Renders the page. The first series is the baseline of comparisons.
pub fn to_html(inputs: &[ReportInput]) -> String {
    let series = series_of(inputs);
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" \
         content=\"width=device-width, initial-scale=1\">\n<title>Benchmark: {}</title>\n<style>\n{STYLE}</style>\n\
         </head>\n<body>\n<main>\n",
        escape(&inputs.iter().map(|input| input.name.as_str()).collect::<Vec<_>>().join(", "))
    );
    section::heading(&mut page, &series);
    section::pass_rates(&mut page, &series);
    section::comparisons(&mut page, &series);
    section::cost(&mut page, &series);
    section::effort(&mut page, &series);
    section::tool_errors(&mut page, &series);
    section::languages(&mut page, &series);
    section::cases(&mut page, &series);
    let _ = write!(page, "</main>\n</body>\n</html>\n");
    page
}

/// One series per variant and job.
fn series_of(inputs: &[ReportInput]) -> Vec<Series> {
    let mut series = Vec::new();
    for input in inputs {
        let mut variants: BTreeMap<usize, Vec<TrialResult>> = BTreeMap::new();
        for result in &input.results {
            variants.entry(result.variant).or_default().push(result.clone());
        }
        for results in variants.into_values() {
            let label = results.first().map(TrialResult::label).unwrap_or_default();
            let name = if inputs.len() > 1 { format!("{}: {label}", input.name) } else { label };
            series.push(Series { name, results });
        }
    }
    series
}

/// Text for HTML.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            // Control characters have no place in a page; a lone carriage return would be read as a line end.
            c if c.is_control() && c != '\n' && c != '\t' => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}
