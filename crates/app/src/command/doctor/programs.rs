//! Checks for programs that tasks need or often use.

use std::path::{Path, PathBuf};

use super::{Finding, State};
use crate::environment::Environment;

/// Runs the checks.
pub(crate) fn look(environment: &Environment) -> Vec<Finding> {
    let shell = match Path::new("/bin/sh").exists() {
        true => Finding::new("sh", State::Ready, "/bin/sh"),
        false => Finding::new("sh", State::Broken, "/bin/sh not found, and commands need it"),
    };
    let others = ["git", "python3"].map(|name| match on_path(name, environment) {
        Some(path) => Finding::new(name, State::Ready, path.display().to_string()),
        None => Finding::new(name, State::Absent, "not on the PATH; not needed by fusee itself"),
    });
    [shell].into_iter().chain(others).collect()
}

fn on_path(name: &str, environment: &Environment) -> Option<PathBuf> {
    let path = environment.variable("PATH")?;
    std::env::split_paths(path)
        .map(|folder| folder.join(name))
        .find(|file| file.is_file() && rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok())
}
