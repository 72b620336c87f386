//! x
use crate::stage::{Stage, Test};
use std::process::ExitCode;
pub(crate) const TESTS: &[(&str, Test)] = &[];
pub(crate) fn say_what_holds(_: &Stage) -> ExitCode { ExitCode::SUCCESS }

