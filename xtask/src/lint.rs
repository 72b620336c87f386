//! `cargo xtask lint`: static checks.

use crate::stage::{self, cargo};
use crate::{Outcome, needs};

/// Checks the format, then dependencies, then clippy: the quick ones first.
pub(crate) fn run() -> Outcome {
    needs::meet(needs::LINT)?;
    stage::run("format", cargo(), ["fmt", "--all", "--check"])?;
    stage::run(
        "dependencies",
        cargo(),
        ["deny", "--locked", "check", "--hide-inclusion-graph", "licenses", "bans", "sources"],
    )?;
    stage::run(
        "clippy",
        cargo(),
        ["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"],
    )
}
