//! What the trials that are being worked on have cost so far, read from the events of their runs. `job` compares it with
//! the budget.

use std::collections::BTreeMap;
use std::sync::Arc;

use fusee::Event;
use fusee::engine::journal::{EventRecord, Journal, RunId};
use fusee::engine::model::{Price, Usage};
use fusee::engine::run::settings_of;
use fusee::launch::Launcher;
use parking_lot::Mutex;

/// Number of events read at once.
const PAGE: usize = 512;

/// Cost of the running trials. Runs whose price is not known count as free.
pub(crate) struct TrialCosts {
    launcher: Arc<dyn Launcher>,
    trials: Mutex<BTreeMap<String, Vec<RunCost>>>,
}

/// Cost of a run up to an event.
struct RunCost {
    run: RunId,
    seen: u64,
    /// Input tokens of the open turn of each task.
    inputs: BTreeMap<String, u64>,
    usd: f64,
    /// `None` as long as the run has no settings; then the price of its model, if known.
    price: Option<Option<Price>>,
}

impl TrialCosts {
    pub(crate) fn new(launcher: Arc<dyn Launcher>) -> Self {
        Self { launcher, trials: Mutex::default() }
    }

    /// Notes that a trial starts a run.
    pub(crate) fn add_run(&self, trial: &str, run: RunId) {
        let cost = RunCost { run, seen: 0, inputs: BTreeMap::new(), usd: 0.0, price: None };
        self.trials.lock().entry(trial.to_owned()).or_default().push(cost);
    }

    /// Forgets a trial, whose cost is in its result.
    pub(crate) fn remove_trial(&self, trial: &str) {
        self.trials.lock().remove(trial);
    }

    /// What the running trials have cost, in US dollars.
    pub(crate) fn of_running(&self) -> f64 {
        // A journal that cannot be read ends the runs themselves.
        let Ok(Some(journal)) = self.launcher.journal(self.launcher.directory()) else { return 0.0 };
        let mut trials = self.trials.lock();
        trials.values_mut().flatten().map(|run| run.read(&journal)).sum()
    }
}

impl RunCost {
    fn read(&mut self, journal: &Journal) -> f64 {
        if self.price.is_none() {
            self.price = settings_of(journal, &self.run).ok().map(|settings| settings.price);
        }
        let Some(Some(price)) = self.price else { return self.usd };
        while let Ok(events) = journal.events(&self.run, self.seen, u64::MAX, PAGE) {
            let Some(last) = events.last() else { break };
            self.seen = last.seq;
            events.into_iter().for_each(|record| self.add(record, price));
        }
        self.usd
    }

    fn add(&mut self, record: EventRecord, price: Price) {
        let task = record.task.as_str().to_owned();
        match record.event {
            Event::TurnStart { input_tokens, .. } => {
                self.inputs.insert(task, input_tokens);
            }
            Event::TurnComplete { output_tokens, cached_tokens, .. } => {
                let input_tokens = self.inputs.remove(&task).unwrap_or_default();
                let usage = Usage { input_tokens, output_tokens, cached_tokens, ..Usage::default() };
                self.usd += price.cost_usd(&usage);
            }
            _ => {}
        }
    }
}
