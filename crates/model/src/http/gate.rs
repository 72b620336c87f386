//! One rate gate an endpoint: when a server tells one task to wait, all tasks that share the endpoint do.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use crate::Delta;
use crate::stream::Sink;

/// A server that asks for more is not waited for here; its answer to the next request decides.
const LONGEST: Duration = Duration::from_secs(3600);
/// Those who waited go on one after the other and not all in one instant, which would earn the next refusal.
const STEP: Duration = Duration::from_millis(10);
const LONGEST_QUEUE: Duration = Duration::from_secs(5);

#[derive(Default)]
pub(super) struct Gate {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    opens: Option<Instant>,
    /// How many wait for this opening.
    queued: u32,
}

impl Gate {
    /// Closes the gate for `wait` from now, unless it is closed for longer already.
    pub(super) fn hold(&self, wait: Duration) {
        let opens = Instant::now() + wait.min(LONGEST);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.opens.is_none_or(|earlier| earlier < opens) {
            *state = State { opens: Some(opens), queued: 0 };
        }
    }

    /// Returns when the gate is open. Tells `sink` if that takes a while.
    pub(super) async fn pass(&self, sink: &mut Sink<'_>) {
        while let Some(turn) = self.turn() {
            let wait = turn.saturating_duration_since(Instant::now());
            sink(Delta::Waiting { ms: u64::try_from(wait.as_millis()).unwrap_or(u64::MAX) });
            sleep_until(turn).await;
        }
    }

    /// When this caller may go on, or `None` if it may now.
    fn turn(&self) -> Option<Instant> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let opens = state.opens?;
        if opens <= Instant::now() {
            state.opens = None;
            return None;
        }
        let place = STEP.saturating_mul(state.queued).min(LONGEST_QUEUE);
        state.queued += 1;
        Some(opens + place)
    }
}

#[cfg(test)]
mod tests;
