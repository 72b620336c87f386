//! A real Restate server from npm, for the tests of distributed runs, installed once into the target directory.

use std::path::PathBuf;

use crate::{Outcome, root, step, target_dir};

/// Environment variable that tells the tests where the server is.
const VARIABLE: &str = "FUSEE_RESTATE";

const SERVER: &str = "@restatedev/restate-server@1.7.12";

fn folder() -> PathBuf {
    target_dir().join("restate")
}

/// Installs the server unless exactly this version is installed.
pub(crate) fn install() -> Outcome {
    let folder = folder();
    let installed = folder.join("installed");
    if std::fs::read_to_string(&installed).is_ok_and(|known| known == SERVER) {
        return Ok(());
    }
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    std::fs::create_dir_all(&folder).map_err(failed)?;
    let place = folder.display().to_string();
    let install = ["install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", &place, SERVER];
    step::run("Restate server from npm", "npm", install)?;
    std::fs::write(&installed, SERVER).map_err(failed)
}

/// Lints the crate and runs the tests that need the server; they are ignored by a plain `cargo nextest run`.
pub(crate) fn test() -> Outcome {
    let lint = ["clippy", "--locked", "-p", "fusee-cli", "--features", "restate", "--all-targets"];
    step::run("clippy of distributed runs", step::cargo(), lint.into_iter().chain(["--", "-D", "warnings"]))?;
    step::timed("tests with a Restate server", || {
        let tests = ["nextest", "run", "--locked", "-p", "fusee-cli", "--features", "restate"];
        let status = std::process::Command::new(step::cargo())
            .args(tests)
            .args(["--test", "restate", "--run-ignored", "only", "--config-file"])
            .arg(root().join("xtask/nextest.toml"))
            .env(VARIABLE, folder())
            .current_dir(root())
            .status()
            .map_err(|error| format!("cargo nextest: {error}"))?;
        if status.success() { Ok(()) } else { Err(format!("tests with a Restate server failed ({status})")) }
    })
}
