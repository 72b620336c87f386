//! Control of a run in progress: its events, its questions, and stopping it. Unlike [`super::RunHandle`], which waits for the
//! outcome, it can be cloned, so that several user interfaces control one run.

use std::sync::Arc;
use std::time::Duration;

use fusee_journal::{DurableRun as _, EventStream, RunAborted, RunId, SqliteRun};
use fusee_model::CancellationToken;
use tokio::task::AbortHandle;

use crate::agent::{TaskProgress, TurnInterrupt};
use crate::approval::OutsideAnswer;

/// How long a stopped turn is waited for.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

/// Interval at which it is waited for.
const INTERVAL: Duration = Duration::from_millis(20);

/// Why a message did not reach a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// Nothing that could be stopped is running.
    #[error("no turn is running that could take a message")]
    NoTurn,
    /// The run ended first.
    #[error("the run ended before the message reached it")]
    Ended,
    /// The turn did not stop within 10 seconds.
    #[error("the turn could not be stopped in time")]
    NotStopped,
}

/// Control of a run in progress.
#[derive(Clone)]
pub struct RunControl {
    pub(super) sqlite_run: Arc<SqliteRun>,
    pub(super) cancel: CancellationToken,
    pub(super) progress: Arc<TaskProgress>,
    pub(super) work: AbortHandle,
}

impl RunControl {
    /// Returns the run's id.
    pub fn id(&self) -> &RunId {
        self.sqlite_run.run()
    }

    /// Subscribes to the events after number `seq`.
    pub fn events_after(&self, seq: u64) -> EventStream {
        self.sqlite_run.events_after(seq)
    }

    /// Whether the run has ended, or has stopped and can be resumed.
    pub fn is_ended(&self) -> bool {
        self.work.is_finished()
    }

    /// Cancels the run.
    pub fn cancel(&self) {
        self.cancel.cancel();
    }

    /// Releases the run so that another process can resume it. Tool calls in progress are waited for; a model's reply in
    /// progress is requested again by the other process.
    pub async fn park(&self) -> Result<(), RunAborted> {
        self.sqlite_run.park().await?;
        self.work.abort();
        Ok(())
    }

    /// Returns the handle that interrupts single turns: the current work ends, and the user is asked what to
    /// do next.
    pub fn turn_stop(&self) -> TurnInterrupt {
        self.progress.turn_stop.clone()
    }

    /// Answers the oldest open question of its kind, or the one about this call. Returns false if there is none.
    pub fn answer(&self, call_id: Option<&str>, answer: &OutsideAnswer) -> bool {
        let about = |signal: &str| match call_id {
            Some(id) => signal.strip_suffix(id).is_some_and(|task| task.ends_with(' ')),
            None => true,
        };
        let open = self.sqlite_run.waiting();
        let question = open.iter().find(|wait| answer.answers(&wait.callee) && about(&wait.signal));
        let value = serde_json::to_value(answer).unwrap_or_default();
        question.map(|wait| self.sqlite_run.signal(&wait.signal, value)).is_some()
    }

    /// Answers the question that waits for the signal of this name. Returns false if none does, or not yet.
    pub fn answer_signal(&self, name: &str, value: &serde_json::Value) -> bool {
        let waits = self.sqlite_run.waiting().iter().any(|wait| wait.signal == name);
        if waits {
            self.sqlite_run.signal(name, value.clone());
        }
        waits
    }

    /// Gives the model a message: stops its turn, unless it waits for a text already.
    pub async fn say(&self, text: String) -> Result<(), MessageError> {
        let answer = OutsideAnswer::Text(text);
        if self.answer(None, &answer) {
            return Ok(());
        }
        if !self.turn_stop().stop() {
            return Err(MessageError::NoTurn);
        }
        let asked = async {
            while !self.answer(None, &answer) && !self.is_ended() {
                tokio::time::sleep(INTERVAL).await;
            }
        };
        match tokio::time::timeout(STOP_TIMEOUT, asked).await {
            Ok(()) if !self.is_ended() => Ok(()),
            Ok(()) => Err(MessageError::Ended),
            Err(_) => Err(MessageError::NotStopped),
        }
    }
}
