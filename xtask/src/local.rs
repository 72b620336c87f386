//! `cargo xtask local`: the tests of the model inside the process. A command of its own, because llama.cpp is compiled for
//! it, which takes long.

use crate::{Outcome, needs, real_model, root, stage};

/// Lints what only the feature has, then runs its tests, those with the real model included.
pub(crate) fn run() -> Outcome {
    needs::meet(needs::LOCAL)?;
    real_model::install()?;
    let lint = ["clippy", "--locked", "-p", "fusee-model", "--features", "local", "--all-targets"];
    stage::run("clippy", stage::cargo(), lint.into_iter().chain(["--", "-D", "warnings"]))?;
    nextest(
        "local model",
        &["-p", "fusee-model", "--features", "local", "--lib", "--run-ignored", "all", "local::"],
    )?;
    nextest(
        "whole runs with it",
        &["-p", "fusee", "--features", "local", "--test", "local_model", "--run-ignored", "all"],
    )
}

fn nextest(name: &str, args: &[&str]) -> Outcome {
    stage::timed(name, || {
        let status = std::process::Command::new(stage::cargo())
            .args(["nextest", "run", "--locked"])
            .args(args)
            .arg("--config-file")
            .arg(root().join("xtask/nextest.toml"))
            .env(real_model::VARIABLE, real_model::folder())
            .current_dir(root())
            .status()
            .map_err(|error| format!("cargo nextest: {error}"))?;
        if status.success() { Ok(()) } else { Err(format!("{name} failed ({status})")) }
    })
}
