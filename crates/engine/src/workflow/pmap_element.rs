//! Events of a `pmap` element. Elements that only call tasks need no events; one that calls a tool or writes
//! to the log itself becomes a task in the event stream, with a start and an end.

use fusee_journal::event::{ErrorDetail, Event, TaskComplete, TaskStarted, TaskStatus, TurnType};

use super::driver::{BranchEnd, WorkflowDriver};
use super::outcome;
use crate::agent::FactsEnd;

/// State of an element in the event stream.
pub(super) struct PmapElement {
    /// Title in the event stream.
    pub(super) request: String,
    pub(super) parent: String,
    pub(super) started: bool,
}

impl WorkflowDriver<'_> {
    /// Emits an event of this branch.
    pub(super) fn emit(&mut self, event: Event) {
        self.open_element();
        self.context.engine.emit(&self.branch, event);
    }

    fn open_element(&mut self) {
        let Some(element) = &mut self.element else { return };
        if std::mem::replace(&mut element.started, true) {
            return;
        }
        let session = &self.context.session;
        let started = TaskStarted {
            submission_id: self.context.submission_id(),
            turn_type: TurnType::User,
            timestamp: self.context.started_ms + i64::try_from(self.active_ms).unwrap_or_default(),
            request: element.request.clone(),
            model: session.model.name().to_owned(),
            sandbox: session.sandbox.clone(),
            parent: Some(element.parent.clone()),
            continues: None,
        };
        self.context.engine.emit(&self.branch, Event::TaskStarted(started));
    }

    /// Emits the end event if [`WorkflowDriver::emit`] emitted a start event.
    pub(super) fn close_element(&mut self, end: &BranchEnd) {
        let Some(element) = self.element.as_ref().filter(|element| element.started) else { return };
        let (status, answer, error) = match end {
            BranchEnd::Done(value) => (TaskStatus::Completed, value.display(outcome::ANSWER_BYTES), None),
            BranchEnd::Failed(fault) => (TaskStatus::Failed, String::new(), Some(outcome::task_error(fault))),
            BranchEnd::Cancelled => {
                let message = "another element of the `pmap` failed".to_owned();
                let error = ErrorDetail {
                    code: fusee_journal::event::ErrorCode::Cancelled,
                    reason: "cancelled".to_owned(),
                    message,
                };
                (TaskStatus::Cancelled, String::new(), Some(error))
            }
        };
        let report = self.facts.report(
            &self.branch,
            &element.request,
            FactsEnd {
                status,
                plan_steps: 0,
                attempts: 1,
                replan_max: 0,
                error: error.as_ref().map(|e| e.message.as_str()),
            },
        );
        let complete = TaskComplete {
            submission_id: self.context.submission_id(),
            total_turns: 0,
            total_tokens: 0,
            cached_tokens: 0,
            duration_ms: 0,
            cost_usd: None,
            status,
            answer,
            error,
        };
        let engine = &self.context.engine;
        engine.emit(&self.branch, Event::TaskReport(report));
        engine.emit(&self.branch, Event::TaskComplete(complete));
    }
}
