//! `cargo xtask local`: tests of the in-process model. A separate command because it compiles llama.cpp,
//! which takes long.

use crate::{Outcome, prerequisites, real_model, root, step};

/// Lints the `local` feature, then runs its tests, including those with the real model.
pub(crate) fn run() -> Outcome {
    prerequisites::ensure(prerequisites::LOCAL)?;
    real_model::install()?;
    let lint = ["clippy", "--locked", "-p", "fusee-model", "--features", "local", "--all-targets"];
    step::run("clippy", step::cargo(), lint.into_iter().chain(["--", "-D", "warnings"]))?;
    nextest(
        "local model",
        &["-p", "fusee-model", "--features", "local", "--lib", "--run-ignored", "all", "local::"],
    )?;
    nextest(
        "runs with the local model",
        &["-p", "fusee-cli", "--features", "local", "--test", "local_model", "--run-ignored", "all"],
    )
}

fn nextest(name: &str, args: &[&str]) -> Outcome {
    step::timed(name, || {
        let status = std::process::Command::new(step::cargo())
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
