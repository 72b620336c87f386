//! Waiting for a run on behalf of a call: reports progress, passes questions on, and notices a cancelled call.

use std::sync::Arc;
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{ClientCapabilities, ProgressNotificationParam, ProtocolVersion};
use rmcp::service::RequestContext;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::question::OpenQuestion;
use crate::run_state::{RunProgress, RunState};
use crate::runs::FollowedRun;

/// Shortest time between two progress notifications.
const PROGRESS_EVERY: Duration = Duration::from_millis(200);
/// Longest time between them, so that a client sees that the call is alive.
const HEARTBEAT: Duration = Duration::from_secs(10);
/// How long a user may take to fill in a form.
const FORM_WAIT: Duration = Duration::from_secs(3600);

/// What happens to the run when the client cancels the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnCancel {
    /// The run is cancelled, because the call started it.
    CancelRun,
    /// Only the waiting ends.
    StopWaiting,
}

/// A call that waits for a run.
pub(crate) struct Waiting<'a> {
    pub(crate) run: &'a Arc<FollowedRun>,
    pub(crate) limit: Duration,
    pub(crate) on_cancel: OnCancel,
    pub(crate) context: &'a RequestContext<RoleServer>,
}

impl Waiting<'_> {
    /// Waits until the run has ended, needs an answer that the client must give by another call, or the time is
    /// over. Returns its state.
    pub(crate) async fn end(self) -> RunState {
        let deadline = Instant::now() + self.limit;
        let asks = can_ask_by_request(self.context);
        let mut changes = self.run.changes();
        let mut progress = ProgressReport::new(self.context);
        let mut asked: Vec<String> = Vec::new();
        loop {
            let state = changes.borrow_and_update().clone();
            match state.status {
                RunProgress::Completed | RunProgress::Failed | RunProgress::Cancelled => return state,
                RunProgress::Interrupted => return state,
                RunProgress::Waiting if !asks => return state,
                RunProgress::Waiting => {
                    for question in state.waiting.iter().filter(|open| !asked.contains(&open.call)) {
                        self.ask(question.clone());
                    }
                    asked = state.waiting.iter().map(|question| question.call.clone()).collect();
                }
                RunProgress::Working => {}
            }
            let again = progress.send(&state).await;
            tokio::select! {
                changed = changes.changed() => if changed.is_err() { return changes.borrow().clone() },
                () = tokio::time::sleep_until(deadline) => return changes.borrow().clone(),
                () = tokio::time::sleep(again) => {}
                () = self.context.ct.cancelled() => {
                    if self.on_cancel == OnCancel::CancelRun {
                        // The call started the run, so it runs in this process.
                        let _ = self.run.cancel().await;
                    }
                    return changes.borrow().clone();
                }
            }
        }
    }

    /// Puts a question to the client's user. The form stays open after the call has ended, and closes when
    /// somebody else answers first.
    fn ask(&self, question: OpenQuestion) {
        let Some(form) = question.form() else { return };
        let (peer, run, mut changes) = (self.context.peer.clone(), Arc::clone(self.run), self.run.changes());
        tokio::spawn(async move {
            let still_open = wait_until_closed(&mut changes, &question.call);
            let answered = peer.create_elicitation_with_timeout(form, Some(FORM_WAIT));
            let result = tokio::select! {
                result = answered => result,
                () = still_open => return,
            };
            if let Some(answer) = result.ok().and_then(|result| question.answer_of_form(&result)) {
                // False if somebody else was faster; the first answer counts.
                let _ = run.answer(&question, answer).await;
            }
        });
    }
}

async fn wait_until_closed(changes: &mut watch::Receiver<RunState>, call: &str) {
    // An error means that the run is not followed any more.
    let _ = changes.wait_for(|state| !state.waiting.iter().any(|question| question.call == call)).await;
}

/// Progress notifications of one call.
struct ProgressReport<'a> {
    context: &'a RequestContext<RoleServer>,
    count: u32,
    last: Option<(Instant, Option<String>)>,
}

impl<'a> ProgressReport<'a> {
    fn new(context: &'a RequestContext<RoleServer>) -> Self {
        Self { context, count: 0, last: None }
    }

    /// Sends the state if the client asked for progress and there is something to say. Returns when to try again.
    async fn send(&mut self, state: &RunState) -> Duration {
        let Some(token) = self.context.meta.get_progress_token() else { return HEARTBEAT };
        if let Some((at, said)) = &self.last {
            let pause = if *said == state.doing { HEARTBEAT } else { PROGRESS_EVERY };
            let left = pause.saturating_sub(at.elapsed());
            if !left.is_zero() {
                return left;
            }
        }
        self.count += 1;
        let mut param = ProgressNotificationParam::new(token, f64::from(self.count));
        param.message.clone_from(&state.doing);
        self.last = Some((Instant::now(), state.doing.clone()));
        // A client that has gone is noticed elsewhere; one that does not read must not delay the result.
        let _ = tokio::time::timeout(PROGRESS_EVERY, self.context.peer.notify_progress(param)).await;
        HEARTBEAT
    }
}

fn is_stateless(context: &RequestContext<RoleServer>) -> bool {
    context.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28)
}

fn has_forms(capabilities: &ClientCapabilities) -> bool {
    // Revisions that do not distinguish forms from URLs have forms.
    capabilities.elicitation.as_ref().is_some_and(|ask| ask.form.is_some() || ask.url.is_none())
}

/// Whether the client's user can be asked by a request during the call.
fn can_ask_by_request(context: &RequestContext<RoleServer>) -> bool {
    !is_stateless(context) && context.client_capabilities().is_some_and(|client| has_forms(&client))
}

/// Whether the client's user can be asked by a result that requires input.
pub(crate) fn can_ask_by_result(context: &RequestContext<RoleServer>) -> bool {
    is_stateless(context) && context.client_capabilities().is_some_and(|client| has_forms(&client))
}

/// Whether the client polls tasks.
pub(crate) fn has_tasks(context: &RequestContext<RoleServer>) -> bool {
    context.client_capabilities().is_some_and(|client| client.supports_tasks())
}
