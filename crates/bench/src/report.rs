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
    /// What tells it from the others, for plots.
    pub(crate) short: String,
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
    let mut parts: Vec<[String; 4]> = Vec::new();
    for input in inputs {
        let mut variants: BTreeMap<usize, Vec<TrialResult>> = BTreeMap::new();
        for result in &input.results {
            variants.entry(result.variant).or_default().push(result.clone());
        }
        for results in variants.into_values() {
            let Some(first) = results.first() else { continue };
            let label = first.label();
            let name = if inputs.len() > 1 { format!("{}: {label}", input.name) } else { label };
            let agent = first.agent.clone().unwrap_or_default();
            parts.push([first.model.clone(), first.flow.clone(), agent, input.name.clone()]);
            series.push(Series { name, short: String::new(), results });
        }
    }
    for (one, short) in series.iter_mut().zip(short_names(&parts)) {
        one.short = short;
    }
    series
}

/// Names made of the parts that differ; of the first part if none does. The last part is used only where the others
/// do not tell two names apart.
fn short_names(parts: &[[String; 4]]) -> Vec<String> {
    let differs = |at: &usize| parts.iter().any(|one| one[*at] != parts[0][*at]);
    let join = |one: &[String; 4], used: &[usize]| {
        let shown = used.iter().map(|at| one[*at].as_str()).filter(|part| !part.is_empty());
        shown.collect::<Vec<_>>().join(" · ")
    };
    let mut used: Vec<usize> = (0..3).filter(differs).collect();
    let names: std::collections::BTreeSet<String> = parts.iter().map(|one| join(one, &used)).collect();
    if names.len() < parts.len() && parts.len() > 1 {
        used.insert(0, 3);
    }
    if used.is_empty() {
        used.push(0);
    }
    parts.iter().map(|one| join(one, &used)).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_names_say_what_differs() {
        let parts = |rows: &[[&str; 4]]| rows.iter().map(|row| row.map(str::to_owned)).collect::<Vec<_>>();
        let flows = parts(&[["m", "auto", "", "a"], ["m", "direct", "", "b"]]);
        assert_eq!(short_names(&flows), ["auto", "direct"]);
        let both = parts(&[["m", "auto", "", "a"], ["n", "direct", "x.toml", "a"]]);
        assert_eq!(short_names(&both), ["m · auto", "n · direct · x.toml"]);
        let jobs = parts(&[["m", "auto", "", "monday"], ["m", "auto", "", "tuesday"]]);
        assert_eq!(short_names(&jobs), ["monday", "tuesday"]);
        assert_eq!(short_names(&parts(&[["m", "auto", "", "a"]])), ["m"]);
    }
}
