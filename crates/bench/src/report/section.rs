//! The sections of the report, in its order.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::plot::{self, Bar, Point};
use super::{Series, escape};
use crate::comparison::{Comparison, compare};
use crate::results::TrialResult;
use crate::statistics::{pass_at_k, pass_hat_k, wilson};

/// The difference that the comparison plans for, in points.
const POINTS: f64 = 5.0;

pub(super) fn heading(page: &mut String, series: &[Series]) {
    let cases: BTreeSet<&str> =
        series.iter().flat_map(|one| &one.results).map(|result| result.case.as_str()).collect();
    let trials: usize = series.iter().map(|one| one.results.len()).sum();
    let void = series.iter().flat_map(|one| &one.results).filter(|result| !result.is_graded()).count();
    let _ = writeln!(
        page,
        "<h1>Benchmark</h1>\n<p class=\"faint\">{} cases, {trials} trials, {void} of them not graded.</p>",
        cases.len()
    );
    page.push_str("<ul class=\"legend\">\n");
    for (number, one) in series.iter().enumerate() {
        let colour = plot::colour(number);
        let full = if one.short == one.name {
            String::new()
        } else {
            format!(" <span class=\"faint\">{}</span>", escape(&one.name))
        };
        let _ = writeln!(
            page,
            "<li><svg class=\"key\" viewBox=\"0 0 12 12\"><rect class=\"{colour}\" width=\"12\" height=\"12\" rx=\"3\"/></svg>{}{full}</li>",
            escape(&one.short)
        );
    }
    page.push_str("</ul>\n");
}

pub(super) fn pass_rates(page: &mut String, series: &[Series]) {
    let bars: Vec<Bar> = series
        .iter()
        .enumerate()
        .map(|(number, one)| Bar {
            label: one.short.clone(),
            value: one.rate(),
            interval: Some(one.interval()),
            note: format!("{:.1} %", 100.0 * one.rate()),
            colour: number,
        })
        .collect();
    page.push_str("<h2>Pass rate</h2>\n");
    page.push_str(&plot::bars("Pass rate with 95 % intervals", &bars, 1.0, |value| {
        format!("{:.0} %", 100.0 * value)
    }));
    page.push_str(
        "<div class=\"wide\"><table><tr><th>Variant</th><th class=\"number\">Passed</th><th class=\"number\">Rate</th>\
         <th class=\"number\">95 % interval</th><th class=\"number\">First try</th><th class=\"number\">pass@k</th>\
         <th class=\"number\">pass^k</th></tr>\n",
    );
    for one in series {
        let ((passed, graded), interval) = (one.passed(), one.interval());
        let first = one.graded().filter(|result| result.passed && result.tries == 1).count();
        let (at, hat) = attempts(one);
        let _ = writeln!(
            page,
            "<tr><td>{}</td><td class=\"number\">{passed} of {graded}</td><td class=\"number\">{:.1} %</td>\
             <td class=\"number\">{:.1} to {:.1}</td><td class=\"number\">{:.1} %</td><td class=\"number\">{at}</td>\
             <td class=\"number\">{hat}</td></tr>",
            escape(&one.short),
            100.0 * one.rate(),
            100.0 * interval.low,
            100.0 * interval.high,
            100.0 * first as f64 / graded.max(1) as f64
        );
    }
    page.push_str("</table></div>\n<p class=\"faint\">Wilson intervals. Trials that could not be graded do not count.</p>\n");
}

/// pass@k and pass^k for the least number of attempts, as texts.
fn attempts(one: &Series) -> (String, String) {
    let mut cases: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for result in one.graded() {
        let entry = cases.entry(&result.case).or_default();
        entry.0 += 1;
        entry.1 += u64::from(result.passed);
    }
    let k = cases.values().map(|(attempts, _)| *attempts).min().unwrap_or_default();
    if k < 2 {
        return ("–".to_owned(), "–".to_owned());
    }
    let mean = |of: fn(u64, u64, u64) -> Option<f64>| {
        let values: Vec<f64> = cases.values().filter_map(|(n, c)| of(*n, *c, k)).collect();
        format!("{:.1} % (k = {k})", 100.0 * values.iter().sum::<f64>() / values.len().max(1) as f64)
    };
    (mean(pass_at_k), mean(pass_hat_k))
}

pub(super) fn comparisons(page: &mut String, series: &[Series]) {
    let Some((first, others)) = series.split_first() else { return };
    for other in others {
        let comparison = compare(&other.results, &first.results, POINTS);
        if comparison.cases == 0 {
            continue;
        }
        let _ = writeln!(page, "<h2>{} against {}</h2>", escape(&other.short), escape(&first.short));
        verdict(page, &comparison);
        flips(page, &comparison, [&first.short, &other.short]);
    }
}

fn verdict(page: &mut String, comparison: &Comparison) {
    let Comparison { difference, low, high, p, cases, .. } = comparison;
    let word = match (*low > 0.0 || *high < 0.0) && *p < 0.05 {
        true if *difference > 0.0 => "better",
        true => "worse",
        false => "not significantly different",
    };
    let needed = match comparison.needed {
        Some(needed) => format!(" To see a difference of {POINTS:.0} points, {needed} cases are needed."),
        None => String::new(),
    };
    let _ = writeln!(
        page,
        "<p class=\"verdict\"><strong>{:+.1} points</strong> (95 % interval {:+.1} to {:+.1}, p = {p:.4}, {}) on {cases} \
         paired cases: {word}.{needed}</p>",
        100.0 * difference,
        100.0 * low,
        100.0 * high,
        comparison.test
    );
}

fn flips(page: &mut String, comparison: &Comparison, names: [&str; 2]) {
    if comparison.flipped.is_empty() {
        page.push_str("<p class=\"faint\">No case differs.</p>\n");
        return;
    }
    let [first, other] = names.map(escape);
    let _ = writeln!(
        page,
        "<div class=\"wide\"><table><tr><th>Case that differs</th><th>{first}</th><th>{other}</th></tr>"
    );
    for flip in &comparison.flipped {
        let _ = writeln!(
            page,
            "<tr><td>{}</td>{}{}</tr>",
            escape(&flip.case),
            flip_cell(&flip.b, &flip.b_runs),
            flip_cell(&flip.a, &flip.a_runs)
        );
    }
    page.push_str(
        "</table></div>\n<p class=\"faint\"><code>fusee show RUN</code> shows what a run did.</p>\n",
    );
}

/// A result with its runs, one per line.
fn flip_cell(value: &serde_json::Value, runs: &[String]) -> String {
    let runs: String = runs.iter().map(|run| format!("<br><code>{}</code>", escape(run))).collect();
    format!("<td>{}{runs}</td>", word(value))
}

fn word(value: &serde_json::Value) -> String {
    match value.as_bool() {
        Some(true) => "<span class=\"passed\">passed</span>".to_owned(),
        Some(false) => "<span class=\"failed\">failed</span>".to_owned(),
        None => format!("{:.0}\u{a0}%", 100.0 * value.as_f64().unwrap_or_default()),
    }
}

pub(super) fn cost(page: &mut String, series: &[Series]) {
    page.push_str("<h2>Cost and pass rate</h2>\n");
    if series.iter().flat_map(|one| &one.results).all(|result| result.cost_usd.is_none()) {
        page.push_str(
            "<p class=\"faint\">The prices of these models are not known; tokens stand for cost.</p>\n",
        );
        let points = points(series, |result| result.tokens as f64);
        page.push_str(&plot::scatter("Tokens and pass rate", &points, "tokens per trial", count));
        return;
    }
    let points = points(series, |result| result.cost_usd.unwrap_or_default());
    page.push_str(&plot::scatter("Cost and pass rate", &points, "US dollars per trial", |value| {
        format!("${value:.4}")
    }));
}

fn points(series: &[Series], field: impl Fn(&TrialResult) -> f64) -> Vec<Point> {
    let point = |(number, one): (usize, &Series)| Point {
        label: one.short.clone(),
        x: one.mean(&field),
        y: one.rate(),
        interval: one.interval(),
        colour: number,
    };
    series.iter().enumerate().map(point).collect()
}

/// What is measured of a trial.
type Measure = fn(&TrialResult) -> f64;

pub(super) fn effort(page: &mut String, series: &[Series]) {
    page.push_str("<h2>Turns, tokens and time per trial</h2>\n");
    let fields: [(&str, Measure); 3] = [
        ("Turns", |result| f64::from(result.turns)),
        ("Tokens", |result| result.tokens as f64),
        ("Seconds", |result| result.seconds),
    ];
    for (name, field) in fields {
        let bars: Vec<Bar> = series
            .iter()
            .enumerate()
            .map(|(number, one)| Bar {
                label: one.short.clone(),
                value: one.mean(field),
                interval: None,
                note: format!("{} {}", count(one.mean(field)), name.to_lowercase()),
                colour: number,
            })
            .collect();
        let most = bars.iter().map(|bar| bar.value).fold(0.0, f64::max);
        page.push_str(&plot::bars(&format!("{name} per trial"), &bars, most, count));
    }
}

pub(super) fn tool_errors(page: &mut String, series: &[Series]) {
    let mut tools: BTreeSet<&str> = BTreeSet::new();
    tools.extend(
        series
            .iter()
            .flat_map(|one| &one.results)
            .flat_map(|result| result.tool_errors.keys())
            .map(String::as_str),
    );
    page.push_str("<h2>Tool errors</h2>\n");
    if tools.is_empty() {
        page.push_str("<p class=\"faint\">No tool call failed.</p>\n");
        return;
    }
    let mut bars = Vec::new();
    for tool in tools {
        for (number, one) in series.iter().enumerate() {
            let errors = one.sum(|result| result.tool_errors.get(tool).copied().unwrap_or_default().into());
            let label = if series.len() > 1 { format!("{tool} · {}", one.short) } else { tool.to_owned() };
            bars.push(Bar { label, value: errors, interval: None, note: count(errors), colour: number });
        }
    }
    let most = bars.iter().map(|bar| bar.value).fold(0.0, f64::max);
    page.push_str(&plot::bars("Failed tool calls by tool", &bars, most, count));
}

pub(super) fn languages(page: &mut String, series: &[Series]) {
    let mut languages: BTreeSet<&str> = BTreeSet::new();
    languages
        .extend(series.iter().flat_map(|one| &one.results).filter_map(|result| result.language.as_deref()));
    if languages.len() < 2 {
        return;
    }
    page.push_str("<h2>Pass rate by language</h2>\n");
    let mut bars = Vec::new();
    for language in languages {
        for (number, one) in series.iter().enumerate() {
            let of_language: Vec<&TrialResult> =
                one.graded().filter(|result| result.language.as_deref() == Some(language)).collect();
            let passed = of_language.iter().filter(|result| result.passed).count() as u64;
            let graded = of_language.len() as u64;
            bars.push(Bar {
                label: if series.len() > 1 {
                    format!("{language} · {}", one.short)
                } else {
                    language.to_owned()
                },
                value: passed as f64 / graded.max(1) as f64,
                interval: Some(wilson(passed, graded, 0.95)),
                note: format!("{passed} of {graded}"),
                colour: number,
            });
        }
    }
    page.push_str(&plot::bars("Pass rate by language", &bars, 1.0, |value| {
        format!("{:.0} %", 100.0 * value)
    }));
}

pub(super) fn cases(page: &mut String, series: &[Series]) {
    let mut cases: BTreeMap<&str, Vec<Vec<&TrialResult>>> = BTreeMap::new();
    for (number, one) in series.iter().enumerate() {
        for result in &one.results {
            cases.entry(&result.case).or_insert_with(|| vec![Vec::new(); series.len()])[number].push(result);
        }
    }
    page.push_str("<h2>Cases</h2>\n<div class=\"wide\"><table><tr><th>Case</th>");
    for one in series {
        let _ = write!(page, "<th>{}</th>", escape(&one.short));
    }
    page.push_str("</tr>\n");
    for (case, columns) in &cases {
        let _ = write!(page, "<tr><td>{}</td>", escape(case));
        for results in columns {
            let mut cells: Vec<String> = results.iter().map(|result| cell(result)).collect();
            if is_flaky(results) {
                cells.push("<strong>flaky</strong>".to_owned());
            }
            let _ = write!(page, "<td>{}</td>", cells.join("<br>"));
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</table></div>\n");
}

/// Whether some attempts at a case passed and others did not.
fn is_flaky(results: &[&TrialResult]) -> bool {
    let graded: Vec<bool> =
        results.iter().filter(|result| result.is_graded()).map(|result| result.passed).collect();
    graded.contains(&true) && graded.contains(&false)
}

fn cell(result: &TrialResult) -> String {
    let (class, word) = match (result.passed, result.is_graded()) {
        (true, _) => ("passed", "passed"),
        (false, true) => ("failed", "failed"),
        (false, false) => ("void", "not graded"),
    };
    let cause = result.cause.map(|cause| format!(" ({cause})")).unwrap_or_default();
    let tries = if result.tries > 1 { format!(", {} tries", result.tries) } else { String::new() };
    format!("<span class=\"{class}\" title=\"{}\">{word}{cause}</span>{tries}", escape(&result.run))
}

/// A number with as many digits as help.
fn count(value: f64) -> String {
    match value {
        value if value >= 1e6 => format!("{:.1}M", value / 1e6),
        value if value >= 1e4 => format!("{:.0}k", value / 1e3),
        value if value >= 100.0 || value.fract() == 0.0 => format!("{value:.0}"),
        value if value >= 1.0 => format!("{value:.1}"),
        value if value >= 0.1 => format!("{value:.2}"),
        value => format!("{value:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_as_many_digits_as_help() {
        let shown = [0.0, 0.0125, 0.25, 1.25, 12.0, 123.4, 20_240.0, 1.5e6].map(count);
        assert_eq!(shown, ["0", "0.013", "0.25", "1.2", "12", "123", "20k", "1.5M"]);
    }
}
