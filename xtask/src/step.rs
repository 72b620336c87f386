//! Runs one step of a command: prints its name before and its duration after, and passes its output through.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use crate::{Outcome, root, target_dir};

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

/// Runs the ignored tests of these test binaries; `variable` tells them where an installation is. They are selected from
/// the whole workspace: a build of one package would unify features differently and compile everything again.
pub(crate) fn ignored_tests(name: &str, binaries: &[&str], variable: (&str, PathBuf)) -> Outcome {
    let selected: Vec<String> = binaries.iter().map(|binary| format!("binary({binary})")).collect();
    nextest(name, &["--workspace", "--run-ignored", "only", "-E", &selected.join(" | ")], variable)
}

/// Runs tests with nextest.
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

/// Builds the binaries as the tests use them, and returns the path of one: nothing is compiled after a run of the tests.
pub(crate) fn binary(name: &str) -> Result<PathBuf, String> {
    run("binaries", cargo(), ["test", "--workspace", "--no-run", "--quiet", "--locked"])?;
    Ok(target_dir().join("debug").join(name))
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
