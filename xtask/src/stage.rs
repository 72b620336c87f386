//! Running one command of several: its name before, its time after, its output as it comes.

use std::ffi::OsStr;
use std::process::Command;
use std::time::Instant;

use crate::{Outcome, root};

/// Runs a command in the root of the repository and says on stderr how long it took.
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

/// Runs anything between a line that names it and a line with its seconds.
pub(crate) fn timed<T>(name: &str, work: impl FnOnce() -> T) -> T {
    eprintln!("── {name}");
    let begun = Instant::now();
    let result = work();
    eprintln!("── {name}: {:.1} s", begun.elapsed().as_secs_f64());
    result
}

/// The cargo that started us, so that a chosen toolchain stays chosen.
pub(crate) fn cargo() -> String {
    std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned())
}
