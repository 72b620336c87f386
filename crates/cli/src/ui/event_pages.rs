//! Reads a recorded run's events page by page, so memory does not grow with the length of the run.

use std::io;

use fusee::engine::journal::{EventRecord, Journal, RunId};

use crate::process::error::CliError;
use crate::ui::Ui;

/// Events per page.
const PAGE: usize = 512;

/// Passes every event of a run, in order, to `take`.
pub(crate) fn for_each_event(
    journal: &Journal,
    run: &RunId,
    mut take: impl FnMut(EventRecord) -> Result<(), CliError>,
) -> Result<(), CliError> {
    let mut after = 0;
    loop {
        let page = journal.events(run, after, u64::MAX, PAGE)?;
        let whole = page.len() == PAGE;
        for event in page {
            after = event.seq;
            take(event)?;
        }
        if !whole {
            return Ok(journal.check_complete(run)?);
        }
    }
}

/// Displays every event of a run. A closed pipe is not an error.
pub(crate) fn show_all(journal: &Journal, run: &RunId, ui: &mut dyn Ui) -> Result<(), CliError> {
    let written = |result: io::Result<()>| match result {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(CliError::failed(format!("cannot write to stdout: {error}")))
        }
        other => Ok(other.is_ok()),
    };
    let mut listening = true;
    for_each_event(journal, run, |event| {
        if listening {
            listening = written(ui.show(&event))?;
        }
        Ok(())
    })?;
    written(ui.close()).map(drop)
}
