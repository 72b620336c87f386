//! x
use crate::stage::Stage;
pub(crate) struct Attempt { pub(crate) name: &'static str }
impl Attempt { pub(crate) fn fails_only_in_the_sandbox(&self, _: &Stage) {} }
pub(crate) fn attempts() -> Vec<Attempt> { Vec::new() }

