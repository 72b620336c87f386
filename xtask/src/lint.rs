//! `cargo xtask lint`: static checks.

use crate::step::{self, cargo};
use crate::{Outcome, prerequisites};

/// Checks the format, then dependencies, then clippy: the quick ones first.
pub(crate) fn run() -> Outcome {
    prerequisites::ensure(prerequisites::LINT)?;
    step::run("format", cargo(), ["fmt", "--all", "--check"])?;
    step::run(
        "dependencies",
        cargo(),
        ["deny", "--locked", "check", "--hide-inclusion-graph", "licenses", "bans", "sources"],
    )?;
    step::run(
        "clippy",
        cargo(),
        ["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"],
    )
}
