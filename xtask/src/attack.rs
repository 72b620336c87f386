//! `cargo xtask attack`: builds the binary and starts the test kit's `attack` program, a random campaign against it.
//! `cargo xtask suites attack` runs two minutes of it.

use crate::{Outcome, prerequisites, step, target_dir};

/// Length of the short campaign, in minutes.
const MINUTES_IN_TESTS: &str = "2";

/// Starts a campaign with these arguments.
pub(crate) fn run(args: &[String]) -> Outcome {
    prerequisites::ensure(prerequisites::ATTACK)?;
    let fusee = step::binary("fusee")?.to_string_lossy().into_owned();
    let has_binary = args.iter().any(|arg| arg == "--fusee" || arg.starts_with("--fusee="));
    let binary = (!has_binary).then(|| ["--fusee".to_owned(), fusee]).into_iter().flatten();
    step::run("attack", target_dir().join("debug/attack"), binary.chain(args.iter().cloned()))
}

/// The short campaign.
pub(crate) fn test() -> Outcome {
    run(&["--minutes".to_owned(), MINUTES_IN_TESTS.to_owned()])
}
