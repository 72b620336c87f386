//! Checks for programs that tasks need or often use.

use std::path::{Path, PathBuf};

use super::{CheckState, DoctorCheck};
use crate::process::environment::Environment;

/// Runs the checks.
pub(crate) fn check(environment: &Environment) -> Vec<DoctorCheck> {
    let shell = match Path::new("/bin/sh").exists() {
        true => DoctorCheck::new("sh", CheckState::Ready, "/bin/sh"),
        false => DoctorCheck::new("sh", CheckState::Broken, "/bin/sh not found, and commands need it"),
    };
    let others = ["git", "python3"].map(|name| match on_path(name, environment) {
        Some(path) => DoctorCheck::new(name, CheckState::Ready, path.display().to_string()),
        None => DoctorCheck::new(name, CheckState::Absent, "not on the PATH; not needed by fusee itself"),
    });
    [shell].into_iter().chain(others).collect()
}

fn on_path(name: &str, environment: &Environment) -> Option<PathBuf> {
    let path = environment.variable("PATH")?;
    std::env::split_paths(path)
        .map(|folder| folder.join(name))
        .find(|file| file.is_file() && rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok())
}
