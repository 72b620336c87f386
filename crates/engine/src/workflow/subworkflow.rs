//! Workflows called by other workflows: a registered workflow runs as part of the calling program.

use fusee_journal::Stop;
use fusee_lang::{Input, Limits as LanguageLimits, Machine, Reply, Status, TaskCall};
use serde_json::{Map, Value as Json, json};

use super::driver::{Answer, Driver, End};
use super::element::Element;
use super::outcome::ANSWER_BYTES;
use super::start::compiled;
use super::tasks::reply;
use crate::agent::Facts;
use crate::run::Workflow;
use crate::task_system::{Reason, TaskError, TaskResult};

/// Maximum nesting of workflows; deeper nesting is most likely a cycle.
const DEEPEST: u32 = 5;

impl Driver<'_> {
    /// Runs a registered workflow on its own branch; its value or failure is the result of the call.
    pub(super) async fn workflow(&mut self, workflow: &Workflow, call: &TaskCall) -> Result<Answer, Stop> {
        let name = call.callee();
        let failed = |error: TaskError| Ok(Answer::Go(Input::Reply(reply(TaskResult::failed(&error, "")))));
        if self.depth >= DEEPEST {
            let message = format!("cannot run `{name}`: workflows can be nested at most {DEEPEST} deep");
            return failed(TaskError::failure(Reason::ExecutionHalted, message));
        }
        let Some(program) = compiled(workflow, &self.world.session).program else {
            let message =
                format!("the workflow `{name}` has errors; run `fusee check {}` to see them", workflow.name);
            return failed(TaskError::invalid(Reason::ConfigurationError, message));
        };
        let mut machine = match Machine::start(&program, &call.inputs, LanguageLimits::default()) {
            Ok(machine) => machine,
            Err(problems) => {
                let messages: Vec<_> = problems.into_iter().map(|problem| problem.message).collect();
                let message = format!("`{name}`: {}", messages.join("; "));
                return failed(TaskError::invalid(Reason::InputValidationFailure, message));
            }
        };
        let mut driver = Driver {
            world: self.world,
            branch: self.branch.child(self.effects),
            cancel: self.cancel.clone(),
            effects: 0,
            active_ms: self.active_ms,
            budget: self.budget.clone(),
            facts: Facts::default(),
            element: Some(Element {
                request: format!("{name} {}", Json::Object(call.inputs.clone())),
                parent: self.branch.to_string(),
                started: false,
            }),
            stops_after: None,
            depth: self.depth + 1,
            earlier: Vec::new(),
        };
        let end = driver.drive(&mut machine).await?;
        self.active_ms = driver.active_ms;
        Ok(match end {
            End::Cancelled => Answer::Cancelled,
            End::Done(value) => {
                let parsed = value.to_json().ok();
                let reply = match value {
                    fusee_lang::Value::Result(result) => result.to_reply(),
                    value => Reply { parsed, ..Reply::complete(value.display(ANSWER_BYTES)) },
                };
                Answer::Go(Input::Reply(reply))
            }
            End::Failed(fault) => {
                let message = format!("the workflow `{name}` failed: {}", fault.headline());
                let error = json!({
                    "type": &*fault.kind,
                    "reason": fault.reason.as_deref().unwrap_or("subtask_failure"),
                    "message": message,
                    "cause": fault.to_json(),
                });
                let notes = Map::from_iter([("error".to_owned(), error)]);
                Answer::Go(Input::Reply(Reply {
                    status: Status::Failed,
                    content: String::new(),
                    parsed: None,
                    notes,
                }))
            }
        })
    }
}
