//! Rate gate per endpoint: when a server tells one task to wait, all tasks that share the endpoint wait.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, sleep_until};

use crate::ReplyDelta;
use crate::wire::stream::DeltaSink;

/// Maximum wait. If the server demands more, its response to the next request decides.
const MAX_WAIT: Duration = Duration::from_secs(3600);
/// Waiting requests are released at this interval, because releasing all at once would trigger the next
/// refusal.
const STEP: Duration = Duration::from_millis(10);
const LONGEST_QUEUE: Duration = Duration::from_secs(5);

#[derive(Default)]
pub(super) struct RateGate {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    opens: Option<Instant>,
    /// Number of requests waiting for this opening.
    queued: u32,
}

impl RateGate {
    /// Closes the gate for `wait` from now, unless it is already closed for longer.
    pub(super) fn hold(&self, wait: Duration) {
        let opens = Instant::now() + wait.min(MAX_WAIT);
        let mut state = self.state.lock();
        if state.opens.is_none_or(|earlier| earlier < opens) {
            *state = State { opens: Some(opens), queued: 0 };
        }
    }

    /// Waits until the gate is open. Notifies `sink` if there is a delay.
    pub(super) async fn pass(&self, sink: &mut DeltaSink<'_>) {
        while let Some(turn) = self.turn() {
            let wait = turn.saturating_duration_since(Instant::now());
            sink(ReplyDelta::Waiting { ms: u64::try_from(wait.as_millis()).unwrap_or(u64::MAX) });
            sleep_until(turn).await;
        }
    }

    /// When this caller may proceed, or `None` if it may proceed now.
    fn turn(&self) -> Option<Instant> {
        let mut state = self.state.lock();
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
