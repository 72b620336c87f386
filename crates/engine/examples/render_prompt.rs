//! Measures the rendering of a large prompt for `cargo xtask bench`. Argument: number of sections.
//! Prints the median microseconds of rendering it, and of rendering it again after one section was opened.
#![expect(clippy::print_stdout, clippy::expect_used, reason = "a program that measures")]

use std::collections::BTreeSet;
use std::hint::black_box;
use std::time::Instant;

use fusee_engine::prompt::{AnyTask, Prompt, PromptBuilder, PromptSection, TaskSection};
use serde_json::json;

/// Number of rounds for the median.
const ROUNDS: usize = 201;

fn section(n: usize) -> PromptSection {
    let body = format!("Part {n} of ${{project}}. {}", "It says this and that. ".repeat(20));
    let section = PromptSection::text(format!("s{n}"), format!("Part {n}"), body).param("project", "demo");
    if n % 4 == 3 { section.summarised("What ${project} does there.") } else { section }
}

fn median_us(mut measure: impl FnMut()) -> f64 {
    let mut times: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let begun = Instant::now();
            measure();
            begun.elapsed().as_secs_f64() * 1e6
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[ROUNDS / 2]
}

fn main() {
    let count = std::env::args().nth(1).map_or(1_000, |count| count.parse::<usize>().expect("a number"));
    let builder = (0..count).map(section).fold(Prompt::<AnyTask>::builder(), PromptBuilder::section);
    let prompt = builder.section(TaskSection::default()).build().expect("a legal prompt");
    let task: AnyTask = serde_json::from_value(json!({ "request": "Do it." })).expect("a task");
    let bound = prompt.bind(&task).expect("a request is there");
    let none = BTreeSet::new();
    let first = bound.render(&none).expect("rendered");
    let fresh = median_us(|| drop(black_box(bound.render(&none))));
    let open: BTreeSet<String> = first.closed.iter().take(1).cloned().collect();
    let next = bound.clone().expanded("One section is open.".to_owned());
    let again = median_us(|| drop(black_box(next.render_after(&first, &open))));
    println!("{fresh:.1} {again:.1}");
}
