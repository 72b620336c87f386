//! x
use crate::stage::{Stage, Test};
use std::process::ExitCode;
pub(crate) const TESTS: &[(&str, Test)] = &[];
pub(crate) fn be_killed(_: &Stage) -> ExitCode { ExitCode::SUCCESS }

