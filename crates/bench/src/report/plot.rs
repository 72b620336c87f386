//! Plots as inline SVG. Colours come from the page's style, so that they follow its theme.

use std::fmt::Write as _;

use super::escape;
use crate::statistics::Interval;

const WIDTH: f64 = 720.0;
const LABEL: f64 = 230.0;
const ROW: f64 = 30.0;

/// A bar with an interval.
pub(super) struct Bar {
    pub(super) label: String,
    pub(super) value: f64,
    pub(super) interval: Option<Interval>,
    /// Text at its end.
    pub(super) note: String,
    /// Colour, by the number of its series.
    pub(super) colour: usize,
}

/// Horizontal bars from 0 to `most`, with ticks named by `tick`.
pub(super) fn bars(title: &str, bars: &[Bar], most: f64, tick: impl Fn(f64) -> String) -> String {
    let (most, steps) = scale(most);
    let height = ROW * bars.len() as f64 + 34.0;
    let (left, right) = (LABEL, WIDTH - 110.0);
    let x = |value: f64| left + (right - left) * (value / most).clamp(0.0, 1.0);
    let mut svg = open(title, height);
    for step in 0..=steps {
        let value = most * f64::from(step) / f64::from(steps);
        let _ = write!(
            svg,
            "<line class=\"grid\" x1=\"{0:.1}\" x2=\"{0:.1}\" y1=\"4\" y2=\"{1:.1}\"/><text class=\"tick\" x=\"{0:.1}\" \
             y=\"{2:.1}\" text-anchor=\"middle\">{3}</text>",
            x(value),
            height - 28.0,
            height - 10.0,
            escape(&tick(value))
        );
    }
    for (number, bar) in bars.iter().enumerate() {
        let y = ROW * number as f64 + 6.0;
        let middle = y + 9.0;
        let _ = write!(
            svg,
            "<text class=\"label\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text><rect class=\"c{}\" \
             x=\"{left:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"18\" rx=\"3\"><title>{}: {}</title></rect>",
            left - 8.0,
            middle + 4.0,
            escape(&cut(&bar.label)),
            bar.colour % COLOURS,
            (x(bar.value) - left).max(1.0),
            escape(&bar.label),
            escape(&bar.note)
        );
        let mut end = x(bar.value);
        if let Some(Interval { low, high }) = bar.interval {
            end = x(high);
            let _ = write!(
                svg,
                "<path class=\"whisker\" d=\"M{0:.1} {1:.1}H{2:.1}M{0:.1} {3:.1}v8M{2:.1} {3:.1}v8\"/>",
                x(low),
                middle,
                x(high),
                middle - 4.0
            );
        }
        let _ = write!(
            svg,
            "<text class=\"value\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            end + 6.0,
            middle + 4.0,
            escape(&bar.note)
        );
    }
    svg.push_str("</svg></div>\n");
    svg
}

/// A point of a scatter plot, with an interval of `y`.
pub(super) struct Point {
    pub(super) label: String,
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) interval: Interval,
    pub(super) colour: usize,
}

/// Points over an axis from 0 to a little more than the largest x; y from 0 to 1.
pub(super) fn scatter(title: &str, points: &[Point], x_name: &str, x_tick: impl Fn(f64) -> String) -> String {
    let (left, right, top, bottom) = (56.0, WIDTH - 24.0, 14.0, 250.0);
    let most = points.iter().map(|point| point.x).fold(0.0, f64::max);
    let (most, steps) = scale(most * 1.05);
    let x = |value: f64| left + (right - left) * value / most;
    let y = |value: f64| bottom - (bottom - top) * value;
    let mut svg = open(title, bottom + 44.0);
    for step in 0..=4 {
        let share = f64::from(step) / 4.0;
        let _ = write!(
            svg,
            "<line class=\"grid\" x1=\"{left:.1}\" x2=\"{right:.1}\" y1=\"{0:.1}\" y2=\"{0:.1}\"/><text class=\"tick\" \
             x=\"{1:.1}\" y=\"{2:.1}\" text-anchor=\"end\">{3:.0} %</text>",
            y(share),
            left - 8.0,
            y(share) + 4.0,
            100.0 * share
        );
    }
    for step in 0..=steps {
        let value = most * f64::from(step) / f64::from(steps);
        let _ = write!(
            svg,
            "<text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            x(value),
            bottom + 18.0,
            escape(&x_tick(value))
        );
    }
    let _ = write!(
        svg,
        "<text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
        (left + right) / 2.0,
        bottom + 36.0,
        escape(x_name)
    );
    for point in points {
        let (at, side) =
            (x(point.x), if x(point.x) > WIDTH * 0.62 { ("end", -10.0) } else { ("start", 10.0) });
        let _ = write!(
            svg,
            "<path class=\"whisker\" d=\"M{at:.1} {:.1}V{:.1}\"/><circle class=\"c{}\" cx=\"{at:.1}\" cy=\"{:.1}\" r=\"6\">\
             <title>{}</title></circle><text class=\"label\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"{}\">{}</text>",
            y(point.interval.high),
            y(point.interval.low),
            point.colour % COLOURS,
            y(point.y),
            escape(&point.label),
            at + side.1,
            y(point.y) - 8.0,
            side.0,
            escape(&cut(&point.label))
        );
    }
    svg.push_str("</svg></div>\n");
    svg
}

/// Number of colours in the style.
const COLOURS: usize = 6;

/// Class of the colour of a series, by its number.
pub(super) fn colour(series: usize) -> String {
    format!("c{}", series % COLOURS)
}

fn open(title: &str, height: f64) -> String {
    format!(
        "<div class=\"wide\"><svg class=\"plot\" viewBox=\"0 0 {WIDTH:.0} {height:.0}\" role=\"img\" aria-label=\"{}\">",
        escape(title)
    )
}

/// The end of an axis that reaches `most`, and its number of steps: each is 1, 2, 2.5 or 5 times a power of ten.
fn scale(most: f64) -> (f64, u32) {
    if !most.is_finite() || most <= 0.0 {
        return (1.0, 1);
    }
    let power = 10f64.powf((most / 5.0).log10().floor());
    let size = [1.0, 2.0, 2.5, 5.0, 10.0].map(|factor| factor * power);
    // Rounding may make the largest step a little too small.
    let size = size.into_iter().find(|size| most / size <= 5.0 + 1e-9).unwrap_or(most);
    let steps = (most / size - 1e-9).ceil().max(1.0);
    (size * steps, steps as u32)
}

/// A label that fits beside a plot; its whole text is in the tooltip.
fn cut(label: &str) -> String {
    const HEAD: usize = 14;
    const TAIL: usize = 17;
    let all = label.chars().count();
    if all <= HEAD + TAIL + 1 {
        return label.to_owned();
    }
    let head: String = label.chars().take(HEAD).collect();
    let tail: String = label.chars().skip(all - TAIL).collect();
    format!("{head}…{tail}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_end_and_step_at_round_numbers() {
        for (most, end, steps) in [
            (1.0, 1.0, 5),
            (5688.0, 6000.0, 3),
            (5.2, 6.0, 3),
            (101.0, 125.0, 5),
            (21.0, 25.0, 5),
            (0.0, 1.0, 1),
            (0.0042, 0.005, 5),
        ] {
            let (found, count) = scale(most);
            assert!((found - end).abs() < 1e-9 && count == steps, "{most}: {found} in {count} steps");
        }
    }

    #[test]
    fn long_labels_keep_their_beginning_and_their_end() {
        assert_eq!(cut("python · auto"), "python · auto");
        assert_eq!(
            cut("javascript · llama.cpp:qwen2.5-coder-1.5b · auto"),
            "javascript · l…coder-1.5b · auto"
        );
    }
}
