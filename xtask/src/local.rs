//! `cargo xtask local`: tests of the in-process model. A separate command because it compiles llama.cpp,
//! which takes long.

use crate::{Outcome, prerequisites, real_model, step};

/// Lints the `local` feature, then runs its tests, including those with the real model.
pub(crate) fn run() -> Outcome {
    prerequisites::ensure(prerequisites::LOCAL)?;
    real_model::install()?;
    let lint = ["clippy", "--locked", "-p", "fusee-model", "--features", "local", "--all-targets"];
    step::run("clippy", step::cargo(), lint.into_iter().chain(["--", "-D", "warnings"]))?;
    let model = || (real_model::VARIABLE, real_model::folder());
    step::nextest(
        "local model",
        &["-p", "fusee-model", "--features", "local", "--lib", "--run-ignored", "all", "local::"],
        model(),
    )?;
    step::nextest(
        "runs with the local model",
        &["-p", "fusee-cli", "--features", "local", "--test", "local_model", "--run-ignored", "all"],
        model(),
    )
}
