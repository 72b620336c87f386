//! The completed turns of a run, and which steps and events had been recorded after each.

use std::collections::{BTreeMap, HashMap};

use fusee_journal::event::Event;
use fusee_journal::{Branch, Journal, JournalError, RunId, StepKey, StepRow};

use crate::agent::{is_reply, is_request};
use crate::run::RunOrigin;

/// Number of events read at once.
const PAGE: usize = 512;

/// Position of a turn's end in the journal.
#[derive(Clone, Debug)]
struct CompletedTurn {
    branch: Branch,
    /// Number of the turn on its branch, from 1.
    ordinal: usize,
    /// Number of the event that completed it.
    seq: u64,
}

/// The steps and events that had been recorded at some point.
#[derive(Clone, Debug)]
pub(super) struct Cut {
    /// Number of steps of each branch.
    pub(super) steps: BTreeMap<Branch, u64>,
    /// Number of the last event.
    pub(super) last_seq: u64,
}

impl Cut {
    /// The beginning of a run: only its settings are recorded, and that it started.
    fn start(started: u64) -> Self {
        Self { steps: BTreeMap::from([(Branch::main(), 1)]), last_seq: started }
    }

    /// Everything that is recorded.
    pub(super) fn end(steps: &[StepRow], last_seq: u64) -> Self {
        let mut counts = BTreeMap::new();
        for step in steps {
            counts.insert(step.key.branch.clone(), step.key.n + 1);
        }
        counts.remove(&RunOrigin::branch());
        Self { steps: counts, last_seq }
    }

    /// Whether a step had been recorded.
    pub(super) fn includes(&self, key: &StepKey) -> bool {
        self.steps.get(&key.branch).is_some_and(|count| key.n < *count)
    }
}

/// The completed turns of a run, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct TurnList {
    turns: Vec<CompletedTurn>,
    /// Number of the event that started the main task, if it is the first; otherwise 0.
    started: u64,
}

impl TurnList {
    /// Number of completed turns.
    pub(super) fn count(&self) -> u32 {
        u32::try_from(self.turns.len()).unwrap_or(u32::MAX)
    }
}

/// Reads the completed turns of a run. Those of subtasks belong to the turn that started them, unless the run has
/// no others.
pub(super) fn turns(journal: &Journal, run: &RunId) -> Result<TurnList, JournalError> {
    let (mut all, mut after) = (Vec::new(), 0);
    let mut started = 0;
    let mut ordinals: HashMap<Branch, usize> = HashMap::new();
    loop {
        let page = journal.events(run, after, u64::MAX, PAGE)?;
        let Some(last) = page.last() else { break };
        if after == 0 && matches!(page[0].event, Event::TaskStarted(_)) {
            started = page[0].seq;
        }
        after = last.seq;
        for record in page.iter().filter(|record| matches!(record.event, Event::TurnComplete { .. })) {
            let ordinal = ordinals.entry(record.task.clone()).or_default();
            *ordinal += 1;
            all.push(CompletedTurn { branch: record.task.clone(), ordinal: *ordinal, seq: record.seq });
        }
    }
    let is_main =
        |turn: &CompletedTurn| !turn.branch.as_str().split('/').any(|part| part.starts_with("sub-"));
    if all.iter().any(is_main) {
        all.retain(is_main);
    }
    Ok(TurnList { turns: all, started })
}

/// What had been recorded when `turn` turns were completed: everything before the request of the next one.
pub(super) fn cut(steps: &[StepRow], list: &TurnList, turn: u32) -> Cut {
    let Some(last) = (turn as usize).checked_sub(1).and_then(|index| list.turns.get(index)) else {
        return Cut::start(list.started);
    };
    let own: Vec<&StepRow> = steps.iter().filter(|step| step.key.branch == last.branch).collect();
    let replies = own.iter().enumerate().filter(|(_, step)| is_reply(step));
    let reply = replies.map(|(index, _)| index).nth(last.ordinal - 1).unwrap_or_default();
    let next = own.iter().enumerate().skip(reply + 1).find(|(_, step)| is_request(step));
    let own_count = next.map_or(own.len(), |(index, _)| index);
    let last_ms = own[..own_count].iter().map(|step| step.at_ms).max().unwrap_or_default();
    let next_ms = own.get(own_count).map(|step| step.at_ms);
    let mut counts = BTreeMap::from([(last.branch.clone(), own_count as u64)]);
    let below = format!("{}/", last.branch);
    for step in steps.iter().filter(|step| step.key.branch != last.branch) {
        // What a step of this branch started has ended with it. The branches above may have gone on in the same
        // millisecond, but not before the end of this one.
        let is_before = step.at_ms <= last_ms
            && (step.key.branch.as_str().starts_with(&below) || next_ms.is_none_or(|next| step.at_ms < next));
        let count = counts.entry(step.key.branch.clone()).or_insert(0);
        if is_before && *count == step.key.n {
            *count += 1;
        }
    }
    let settings = counts.entry(Branch::main()).or_insert(1);
    *settings = (*settings).max(1);
    counts.remove(&RunOrigin::branch());
    Cut { steps: counts, last_seq: last.seq }
}
