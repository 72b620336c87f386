//! Runs one step of a command: prints its name before and its duration after, and passes its output through.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use crate::{Outcome, root};

/// Runs a command in the repository root and prints its duration to stderr.
pub(crate) fn run<A: AsRef<OsStr>>(
    name: &str,
    program: impl AsRef<OsStr>,
    args: impl IntoIterator<Item = A>,
) -> Outcome {
    timed(name, || {
        let program = program.as_ref();
        let status = Command::new(program)
            .args(args)
            .current_dir(root())
            .status()
            .map_err(|error| format!("{}: {error}", program.display()))?;
        if status.success() { Ok(()) } else { Err(format!("{name} failed ({status})")) }
    })
}

/// Runs tests with nextest; `variable` tells them where an installation is.
pub(crate) fn nextest(name: &str, args: &[&str], variable: (&str, PathBuf)) -> Outcome {
    timed(name, || {
        let status = Command::new(cargo())
            .args(["nextest", "run", "--locked", "--config-file"])
            .arg(root().join("xtask/nextest.toml"))
            .args(args)
            .env(variable.0, variable.1)
            .current_dir(root())
            .status()
            .map_err(|error| format!("cargo nextest: {error}"))?;
        if status.success() { Ok(()) } else { Err(format!("{name} failed ({status})")) }
    })
}

/// Runs any work between a line with its name and a line with its duration.
pub(crate) fn timed<T>(name: &str, work: impl FnOnce() -> T) -> T {
    eprintln!("── {name}");
    let begun = Instant::now();
    let result = work();
    eprintln!("── {name}: {:.1} s", begun.elapsed().as_secs_f64());
    result
}

/// The cargo that started xtask, so that the selected toolchain is kept.
pub(crate) fn cargo() -> String {
    std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned())
}
