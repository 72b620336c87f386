//! Workflows called by other workflows: a registered workflow runs as part of the calling program.

use fusee_journal::RunAborted;
use fusee_lang::{EvaluationLimits as LanguageLimits, Machine, ResumeInput, Status, TaskCall, TaskResult};
use fusee_text::Severity;
use serde_json::{Value as Json, json};

use super::driver::{BranchEnd, EffectAnswer, WorkflowDriver};
use super::outcome::ANSWER_BYTES;
use super::pmap_element::PmapElement;
use super::run::{WorkflowRun, compiled};
use crate::agent::Facts;
use crate::task_system::{Reason, TaskError};

/// Maximum nesting of workflows; deeper nesting is most likely a cycle.
const MAX_DEPTH: u32 = 5;

impl WorkflowDriver<'_> {
    /// Runs a registered workflow on its own branch; its value or failure is the result of the call.
    pub(super) async fn workflow(
        &mut self,
        workflow: &WorkflowRun,
        call: &TaskCall,
    ) -> Result<EffectAnswer, RunAborted> {
        let name = call.callee();
        let failed = |error: TaskError| Ok(EffectAnswer::Go(ResumeInput::Reply(error.to_result(""))));
        if self.depth >= MAX_DEPTH {
            let message = format!("cannot run `{name}`: workflows can be nested at most {MAX_DEPTH} deep");
            return failed(TaskError::failure(Reason::ExecutionHalted, message));
        }
        let compiled = compiled(workflow, &self.context.session);
        let Some(program) = compiled.program else {
            let problems = compiled.diagnostics.into_sorted();
            let first = problems.iter().find(|problem| problem.severity == Severity::Error);
            let first = first.map(|problem| format!(": {}: {}", problem.start, problem.message));
            let message =
                format!("the workflow `{name}` ({}) has errors{}", workflow.name, first.unwrap_or_default());
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
        let mut driver = WorkflowDriver {
            context: self.context,
            branch: self.branch.child(self.effects),
            cancel: self.cancel.clone(),
            effects: 0,
            active_ms: self.active_ms,
            budget: self.budget.clone(),
            facts: Facts::default(),
            element: Some(PmapElement {
                request: format!("{name} {}", Json::Object(call.inputs.clone())),
                parent: self.branch.to_string(),
                started: false,
            }),
            stops_after: None,
            depth: self.depth + 1,
            earlier: Vec::new(),
            accepted_tokens: self.accepted_tokens,
        };
        let end = driver.drive(&mut machine).await?;
        self.active_ms = driver.active_ms;
        Ok(match end {
            BranchEnd::Cancelled => EffectAnswer::Cancelled,
            BranchEnd::Done(value) => {
                let parsed_content = value.to_json().ok();
                let result = match value {
                    fusee_lang::Value::Result(result) => result.to_result(),
                    value => {
                        TaskResult { parsed_content, ..TaskResult::complete(value.display(ANSWER_BYTES)) }
                    }
                };
                EffectAnswer::Go(ResumeInput::Reply(result))
            }
            BranchEnd::Failed(fault) => {
                let message = format!("the workflow `{name}` failed: {}", fault.headline());
                let error = json!({
                    "type": &*fault.kind,
                    "reason": fault.reason.as_deref().unwrap_or("subtask_failure"),
                    "message": message,
                    "cause": fault.to_json(),
                });
                let mut result = TaskResult { status: Status::Failed, ..TaskResult::complete("") };
                result.note("error", error);
                EffectAnswer::Go(ResumeInput::Reply(result))
            }
        })
    }
}
