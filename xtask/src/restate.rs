//! A real Restate server from npm and an S3 server from PyPI, for the tests of distributed runs, installed once into the
//! target directory.

use std::path::PathBuf;

use crate::{Outcome, prerequisites, root, step, target_dir};

/// Environment variable that tells the tests where the server is.
pub(crate) const VARIABLE: &str = "FUSEE_RESTATE";

const SERVER: &str = "@restatedev/restate-server@1.7.12";

const STORAGE: &str = "moto[server]==5.2.5";

/// Where the servers are installed.
pub(crate) fn folder() -> PathBuf {
    target_dir().join("restate")
}

/// The Restate server's binary.
pub(crate) fn server() -> PathBuf {
    folder().join("node_modules/@restatedev/restate-server-linux-x64/bin/restate-server")
}

/// Installs the servers unless exactly these versions are installed.
pub(crate) fn install() -> Outcome {
    let folder = folder();
    prerequisites::install_once(&folder, &format!("{SERVER}\n{STORAGE}"), || {
        prerequisites::pip("python3".as_ref(), &folder.join("s3"), &[STORAGE])?;
        prerequisites::npm(&folder, &[SERVER])
    })
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
