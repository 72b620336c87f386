//! What runs used, read from their events.

use std::collections::BTreeMap;

use fusee::Event;
use fusee::engine::journal::{EventRecord, Journal, JournalError, RunId};

/// Number of events read at once.
const PAGE: usize = 512;

/// Sums over the runs of a trial.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct RunUsage {
    pub(crate) turns: u32,
    pub(crate) tokens: u64,
    pub(crate) output_tokens: u64,
    /// `None` as long as no run had a price.
    pub(crate) cost_usd: Option<f64>,
    pub(crate) duration_ms: u64,
    pub(crate) tool_calls: u32,
    pub(crate) tool_errors: BTreeMap<String, u32>,
    /// Calls whose arguments were not an object.
    pub(crate) malformed_calls: u32,
    pub(crate) user_asks: u32,
}

impl RunUsage {
    /// Adds a run. What cannot be read counts as unused; the run's own end is not affected by it.
    pub(crate) fn add(&mut self, journal: &Journal, run: &RunId) {
        let mut last = None;
        let ended = for_each_event(journal, run, |record| match record.event {
            Event::TurnComplete { output_tokens, .. } => self.output_tokens += output_tokens,
            Event::ToolCall { name, arguments, .. } => {
                self.malformed_calls += u32::from(!arguments.is_object());
                self.user_asks += u32::from(name == "ask_user");
            }
            Event::TaskReport(report) if record.task.as_str() == "main" => {
                self.tool_calls += report.tool_calls_total;
                for (tool, count) in report.tool_error_counts {
                    *self.tool_errors.entry(tool).or_default() += count;
                }
            }
            // The last one is that of the main task.
            Event::TaskComplete(complete) => last = Some(complete),
            _ => {}
        });
        if let (Ok(()), Some(complete)) = (ended, last) {
            self.turns += complete.total_turns;
            self.tokens += complete.total_tokens;
            self.duration_ms += complete.duration_ms;
            if let Some(cost) = complete.cost_usd {
                *self.cost_usd.get_or_insert_default() += cost;
            }
        }
    }

    pub(crate) fn seconds(&self) -> f64 {
        self.duration_ms as f64 / 1000.0
    }
}

/// Reads all events of a run, in order, without holding them in memory together.
pub(crate) fn for_each_event(
    journal: &Journal,
    run: &RunId,
    mut each: impl FnMut(EventRecord),
) -> Result<(), JournalError> {
    let mut after = 0;
    loop {
        let page = journal.events(run, after, u64::MAX, PAGE)?;
        let Some(last) = page.last() else { return Ok(()) };
        after = last.seq;
        page.into_iter().for_each(&mut each);
    }
}
