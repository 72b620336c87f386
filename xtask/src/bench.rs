//! `cargo xtask bench`: builds what is measured and starts the test kit's `bench` program, which measures it.

use crate::{Outcome, root, stage};

/// Release builds of the product, the floor and the bench; the names pick some of the figures.
pub(crate) fn run(names: &[String]) -> Outcome {
    let packages = ["build", "--release", "--locked", "-p", "fusee", "-p", "fusee-testkit", "--bins"];
    stage::run("release build", stage::cargo(), packages)?;
    let example = ["build", "--release", "--locked", "-p", "fusee-engine", "--example", "many_tasks"];
    stage::run("release build of many tasks", stage::cargo(), example)?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), Into::into);
    let release = target.join("release");
    stage::run(
        "bench",
        release.join("bench"),
        [release.into_os_string()].into_iter().chain(names.iter().map(Into::into)),
    )
}
