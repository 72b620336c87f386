//! `cargo xtask load` and `cargo xtask kills`: many runs on a real Restate server, measured, and under random kills.

use std::path::PathBuf;
use std::process::Command;

use crate::{Outcome, restate, root, step, target_dir};

/// Measures many runs at the same time; docs/scale.md has the figures. Arguments: `--runs N`, `--turns N`, `--model-ms N`.
pub(crate) fn load(args: &[String]) -> Outcome {
    let [runs, turns, model_ms] = numbers(args, [("--runs", 1000), ("--turns", 10), ("--model-ms", 200)])?;
    restate::install()?;
    let build = ["build", "--release", "--locked", "-p", "fusee-cli", "-p", "fusee-restate", "--features"];
    let parts = ["fusee-cli/restate", "--bin", "fusee", "--example", "load"];
    step::run("release build", step::cargo(), build.into_iter().chain(parts))?;
    let release = target_dir().join("release");
    let programs: [PathBuf; 2] = [restate::server(), release.join("fusee")];
    let numbers = [runs, turns, model_ms].map(|number| PathBuf::from(number.to_string()));
    step::run("load", release.join("examples/load"), programs.into_iter().chain(numbers))
}

/// Kills workers and the server at random while runs work. Arguments: `--kills N`, `--runs N`, `--seed S`.
pub(crate) fn kills(args: &[String]) -> Outcome {
    let [kills, runs, seed] = numbers(args, [("--kills", 200), ("--runs", 100), ("--seed", 1)])?;
    restate::install()?;
    step::timed("random kills", || {
        let test = ["test", "--locked", "-p", "fusee-cli", "--features", "restate", "--test", "restate"];
        let status = Command::new(step::cargo())
            .args(test)
            .args(["campaign", "--", "--ignored", "--nocapture"])
            .env(restate::VARIABLE, restate::folder())
            .env("FUSEE_KILLS", kills.to_string())
            .env("FUSEE_KILL_RUNS", runs.to_string())
            .env("FUSEE_KILL_SEED", seed.to_string())
            .current_dir(root())
            .status()
            .map_err(|error| format!("cargo test: {error}"))?;
        if status.success() { Ok(()) } else { Err(format!("random kills failed ({status})")) }
    })
}

/// Reads `--name NUMBER` for these names, which have defaults.
fn numbers(args: &[String], known: [(&str, u64); 3]) -> Result<[u64; 3], String> {
    let mut found = known.map(|(_, default)| default);
    let mut rest = args.iter();
    while let Some(name) = rest.next() {
        let names = known.map(|(name, _)| name).join(", ");
        let at = known.iter().position(|(known, _)| known == name);
        let at = at.ok_or_else(|| format!("unknown argument `{name}`; known are {names}"))?;
        let number = rest.next().and_then(|text| text.parse().ok());
        found[at] = number.ok_or_else(|| format!("{name} takes a number"))?;
    }
    Ok(found)
}
