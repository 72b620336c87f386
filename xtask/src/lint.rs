//! `cargo xtask lint`: static checks.

use std::process::Command;

use crate::step::{self, cargo};
use crate::{Outcome, book, prerequisites, root, target_dir, web};

/// Runs all static checks, the quick ones first. Steps that compile share the artifacts of the clippy step.
pub(crate) fn run() -> Outcome {
    prerequisites::ensure(prerequisites::LINT)?;
    step::run("format", cargo(), ["fmt", "--all", "--check"])?;
    step::run(
        "dependencies",
        cargo(),
        ["deny", "--locked", "check", "--hide-inclusion-graph", "licenses", "bans", "sources"],
    )?;
    // Called directly: as `cargo machete` inside `cargo run` it takes its own name for a path.
    step::run("unused dependencies", "cargo-machete", ["--skip-target-dir", "."])?;
    step::run(
        "packages",
        cargo(),
        ["package", "--workspace", "--locked", "--allow-dirty", "--no-verify", "--quiet"],
    )?;
    web::run(&["--check".to_owned()])?;
    clippy("clippy", &[])?;
    clippy("clippy without default features", &["--no-default-features"])?;
    documentation()?;
    book::run()?;
    let fuzz = ["check", "--locked", "--manifest-path", "fuzz/Cargo.toml", "--target-dir"].map(Into::into);
    step::run("fuzz targets", cargo(), fuzz.into_iter().chain([target_dir()]))
}

fn clippy(name: &str, features: &[&str]) -> Outcome {
    let workspace = ["clippy", "--workspace", "--all-targets", "--locked"];
    step::run(name, cargo(), workspace.iter().chain(features).chain(&["--", "-D", "warnings"]))
}

/// Builds the documentation of all items, private ones included, because module pages link to their neighbours.
fn documentation() -> Outcome {
    step::timed("documentation", || {
        let status = Command::new(cargo())
            .args(["doc", "--workspace", "--no-deps", "--document-private-items", "--locked"])
            .env("RUSTDOCFLAGS", "-D warnings")
            .current_dir(root())
            .status()
            .map_err(|error| format!("cargo doc: {error}"))?;
        if status.success() { Ok(()) } else { Err(format!("documentation failed ({status})")) }
    })
}
