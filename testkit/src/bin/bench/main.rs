//! `cargo xtask bench`: measures the figures that Fusee promises and compares each with its target.
//!
//! `measure` runs one program once and takes its times. The figures are in `turns` (cost of a turn),
//! `baseline` (comparison with the bare loop), `tasks` (many in one process), `agent_loop` (the loop's
//! own table), `processes` (many concurrent processes), `trials` (a benchmark with many concurrent trials), `watchers`
//! (a run that is watched on its web page), `conversation` (the terminal chat), `prompts` (a long
//! prompt), `tools` (tools and the sandbox), `changes` (change detection), `soak` (no leaks over ten thousand
//! turns) and `parts` (the index, templates, the language). Because machines are noisy, runs of fusee and of
//! the bare loop alternate, and a figure is a median. Arguments: the directory of the release binaries, then
//! names of figures.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "a bench prints, starts programs, and panics when it cannot measure"
)]

mod agent_loop;
mod baseline;
mod changes;
mod conversation;
mod measure;
mod parts;
mod processes;
mod prompts;
mod soak;
mod tasks;
mod tools;
mod trials;
mod turns;
mod watchers;

use std::path::PathBuf;
use std::process::ExitCode;

use measure::Programs;

/// A measured figure and its target.
pub(crate) struct Figure {
    name: String,
    measured: f64,
    unit: &'static str,
    /// Maximum; `None` for a figure that is only shown.
    target: Option<f64>,
}

impl Figure {
    pub(crate) fn at_most(name: impl Into<String>, measured: f64, unit: &'static str, target: f64) -> Self {
        Self { name: name.into(), measured, unit, target: Some(target) }
    }

    pub(crate) fn shown(name: impl Into<String>, measured: f64, unit: &'static str) -> Self {
        Self { name: name.into(), measured, unit, target: None }
    }

    fn holds(&self) -> bool {
        self.target.is_none_or(|target| self.measured <= target)
    }

    fn print(&self) {
        let Self { name, measured, unit, .. } = self;
        let verdict = match self.target {
            Some(target) => format!("{:>8} {unit:<4} {}", target, if self.holds() { "PASS" } else { "FAIL" }),
            None => String::new(),
        };
        println!("{name:<58} {measured:>10.3} {unit:<4} {verdict}");
    }
}

/// A name on the command line and the function that measures its figures.
type Bench = (&'static str, fn(&Programs) -> Vec<Figure>);

const BENCHES: &[Bench] = &[
    ("start", turns::start),
    ("turns", turns::cost),
    ("growth", turns::growth),
    ("instructions", turns::instructions),
    ("floor", baseline::ratios),
    ("tasks", tasks::memory),
    ("loop", agent_loop::table),
    ("request", agent_loop::request),
    ("prompts", prompts::rendering),
    ("crowd", processes::ratio),
    ("trials", trials::throughput),
    ("watchers", watchers::cost),
    ("conversation", conversation::feel),
    ("long-conversation", conversation::memory),
    ("search", tools::search),
    ("sandbox", tools::sandbox),
    ("copy", tools::copy),
    ("changes", changes::cost),
    ("soak", soak::leaks),
    ("index", parts::index),
    ("language", parts::language),
];

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    let Some(directory) = args.next().map(PathBuf::from) else {
        eprintln!("usage: bench DIRECTORY [NAME…]; run it with `cargo xtask bench`");
        return ExitCode::FAILURE;
    };
    let names: Vec<String> = args.map(|name| name.to_string_lossy().into_owned()).collect();
    if let Some(unknown) = names.iter().find(|name| !BENCHES.iter().any(|(known, _)| known == name)) {
        let known: Vec<&str> = BENCHES.iter().map(|(name, _)| *name).collect();
        eprintln!("unknown figure {unknown:?}; available figures: {}", known.join(", "));
        return ExitCode::FAILURE;
    }
    let programs = Programs {
        fusee: directory.join("fusee"),
        floor: directory.join("floor"),
        many_tasks: directory.join("examples/many_tasks"),
        loop_cost: directory.join("examples/loop_cost"),
        request_cost: directory.join("examples/request_cost"),
        search_cost: directory.join("examples/search_cost"),
        sandbox_cost: directory.join("examples/sandbox_cost"),
        copy_cost: directory.join("examples/copy_cost"),
        look: directory.join("examples/look"),
        index: directory.join("examples/index"),
        fib: directory.join("examples/fib"),
        render_prompt: directory.join("examples/render_prompt"),
    };
    println!("{:<58} {:>10} {:<4} {:>8}", "figure", "measured", "", "at most");
    let mut all_hold = true;
    for (name, bench) in BENCHES {
        if names.is_empty() || names.iter().any(|wanted| wanted == name) {
            for figure in bench(&programs) {
                figure.print();
                all_hold &= figure.holds();
            }
        }
    }
    if all_hold { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
