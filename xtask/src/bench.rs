//! `cargo xtask bench`: builds the programs and starts the test kit's `bench` program, which measures them.

use crate::{Outcome, prerequisites, step, target_dir};

/// Builds the product, the baseline and the bench in release mode; `names` selects figures.
pub(crate) fn run(names: &[String]) -> Outcome {
    prerequisites::ensure(prerequisites::BENCH)?;
    // A single build: separate builds would unify features differently and compile everything twice.
    let packages = ["fusee-cli", "fusee-testkit", "fusee-engine", "fusee-model", "fusee-tools", "fusee-lang"];
    let packages = packages.into_iter().flat_map(|name| ["-p", name]);
    let parts = ["build", "--release", "--locked", "--bins"];
    let examples = [
        "many_tasks",
        "loop_cost",
        "request_cost",
        "render_prompt",
        "search_cost",
        "sandbox_cost",
        "copy_cost",
        "look",
        "index",
        "fib",
    ];
    let examples = examples.into_iter().flat_map(|name| ["--example", name]);
    step::run("release build", step::cargo(), parts.into_iter().chain(examples).chain(packages))?;
    let release = target_dir().join("release");
    step::run(
        "bench",
        release.join("bench"),
        [release.into_os_string()].into_iter().chain(names.iter().map(Into::into)),
    )
}
