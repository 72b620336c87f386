//! Reading a recorded run's events, a page at a time: memory does not grow with the length of the run.

use fusee_journal::{Journal, RunId, Stamped};

use crate::failure::Failure;

/// Events read at a time.
const PAGE: usize = 512;

/// Hands every event of a run, in order, to `take`.
pub(crate) fn each(
    journal: &Journal,
    run: &RunId,
    mut take: impl FnMut(Stamped) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut after = 0;
    loop {
        let page = journal.events(run, after, u64::MAX, PAGE)?;
        let whole = page.len() == PAGE;
        for event in page {
            after = event.seq;
            take(event)?;
        }
        if !whole {
            return Ok(());
        }
    }
}
