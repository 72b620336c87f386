//! Drives one run of a session until it ends, asks the user, or is cancelled, and passes its updates on.

use std::time::Duration;

use agent_client_protocol_schema::v1::{Error, PromptResponse, StopReason, Usage};
use fusee::Outcome;
use fusee::engine::run::{RunHandle, RunOutcome};
use fusee::journal::EventStream;
use fusee::journal::event::{ErrorCode, Event, TaskStatus};
use fusee::model::CancellationToken;

use crate::connection::failed;
use crate::session_output::SessionOutput;
use crate::update::{ASK_USER, UpdateMapper};

/// How often a run is checked for a panic.
const CHECK: Duration = Duration::from_millis(500);

/// A run that works for a session.
pub(crate) struct RunInProgress {
    pub(crate) handle: RunHandle,
    events: EventStream,
    mapper: UpdateMapper,
}

/// Why the agent stopped answering a prompt.
pub(crate) enum TurnEnd {
    /// The run has ended.
    Ended(Box<Result<PromptResponse, Error>>),
    /// The model asked the user, who answers with the next prompt.
    Asked(Box<RunInProgress>),
}

impl RunInProgress {
    pub(crate) fn new(handle: RunHandle, mapper: UpdateMapper) -> Self {
        let events = handle.events();
        Self { handle, events, mapper }
    }

    /// Passes the run's updates on until the turn ends.
    pub(crate) async fn drive(mut self, output: &SessionOutput, cancel: &CancellationToken) -> TurnEnd {
        let mut check = tokio::time::interval(CHECK);
        let (mut cancelled, mut was_finished) = (false, false);
        loop {
            tokio::select! {
                biased;
                next = self.events.next() => {
                    let Ok(Some(record)) = next else { break };
                    for update in self.mapper.updates(&record) {
                        output.update(update).await;
                    }
                    if matches!(&record.event, Event::ApprovalRequested { name, .. } if name == ASK_USER) {
                        return TurnEnd::Asked(Box::new(self));
                    }
                }
                () = cancel.cancelled(), if !cancelled => {
                    cancelled = true;
                    self.handle.cancel();
                }
                // A task that panicked leaves the stream open.
                _ = check.tick() => {
                    if std::mem::replace(&mut was_finished, self.handle.is_finished()) {
                        break;
                    }
                }
            }
        }
        let usage = self.handle.progress().token_usage();
        let usage =
            Usage::new(usage.input_tokens + usage.output_tokens, usage.input_tokens, usage.output_tokens)
                .cached_read_tokens(usage.cached_tokens)
                .thought_tokens(usage.reasoning_tokens);
        let answer = match self.handle.outcome().await {
            RunOutcome::Ended(outcome) => {
                stop_reason(&outcome).map(|reason| PromptResponse::new(reason).usage(usage))
            }
            RunOutcome::Stopped(stop) => Err(failed(&stop.to_string())),
            RunOutcome::Lost(cause) => Err(failed(&format!("internal error: the run panicked: {cause}"))),
        };
        TurnEnd::Ended(Box::new(answer))
    }
}

fn stop_reason(outcome: &Outcome) -> Result<StopReason, Error> {
    let error = match (outcome.status, &outcome.error) {
        (TaskStatus::Completed, _) => return Ok(StopReason::EndTurn),
        (TaskStatus::Cancelled, _) => return Ok(StopReason::Cancelled),
        (TaskStatus::Failed, None) => return Err(failed("the task failed")),
        (TaskStatus::Failed, Some(error)) => error,
    };
    match error.code {
        ErrorCode::MaxTurns => Ok(StopReason::MaxTurnRequests),
        ErrorCode::TokenLimit => Ok(StopReason::MaxTokens),
        ErrorCode::Cancelled => Ok(StopReason::Cancelled),
        ErrorCode::InitFailed | ErrorCode::TurnFailed | ErrorCode::Timeout | ErrorCode::Budget => {
            Err(failed(&error.message))
        }
    }
}
