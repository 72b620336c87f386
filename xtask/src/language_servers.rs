//! Language servers for the tests of `diagnostics`, from npm, installed once into the target directory.

use std::path::PathBuf;

use crate::{Outcome, prerequisites, step, target_dir};

/// Environment variable that tells the tests where the servers are.
const VARIABLE: &str = "FUSEE_LANGUAGE_SERVERS";

const PACKAGES: [&str; 3] = ["pyright@1.1.414", "typescript-language-server@6.0.2", "typescript@5.9.3"];

fn folder() -> PathBuf {
    target_dir().join("language-servers")
}

/// Installs the servers unless exactly these versions are installed.
pub(crate) fn install() -> Outcome {
    let folder = folder();
    prerequisites::install_once(&folder, &PACKAGES.join("\n"), || prerequisites::npm(&folder, &PACKAGES))
}

/// Runs the tests that need the servers; they are ignored by a plain `cargo nextest run`.
pub(crate) fn test() -> Outcome {
    step::ignored_tests("tests with real language servers", &["language_servers"], (VARIABLE, folder()))
}
