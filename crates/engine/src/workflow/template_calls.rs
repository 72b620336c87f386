//! Calls of registered templates by a program: the task system runs them, each on its own branch.

use std::sync::Arc;

use fusee_journal::RunAborted;
use fusee_lang::{CallForm, ResumeInput, TaskCall};
use serde_json::{Map, Value as Json};

use super::budget::TaskGrant;
use super::driver::{EffectAnswer, WorkflowDriver};
use super::task_calls::{granted, reply};
use crate::agent::Remaining;
use crate::task_system::{
    ExecutionPath, Reason, SubtaskRequest, TaskResult, TaskScope, TaskSystem, TemplateTaskError,
};

/// Maximum number of earlier results kept for later tasks; the oldest are dropped.
const MOST_EARLIER: usize = 50;

impl WorkflowDriver<'_> {
    /// Runs the template of this name.
    pub(super) async fn template(
        &mut self,
        name: &str,
        call: &TaskCall,
        grant: TaskGrant,
        began_ms: i64,
    ) -> Result<EffectAnswer, RunAborted> {
        let request = match request(name, call) {
            Ok(request) => request,
            Err(error) => {
                return Ok(EffectAnswer::Go(ResumeInput::Reply(reply(TaskResult::failed(&error, "")))));
            }
        };
        let world = self.world;
        let system = Arc::new(TaskSystem {
            registry: Arc::clone(&world.registry),
            base: Arc::new(world.session.for_child(granted(world.session.limits, grant))),
            engine: Arc::clone(&world.engine),
            environment: world.environment.clone(),
            memory: Arc::clone(&world.memory),
        });
        let place = TaskScope {
            branch: self.branch.child(self.effects),
            parent: Some(self.branch.clone()),
            started_ms: began_ms,
            cancel: self.cancel.child_token(),
            progress: Arc::default(),
            path: ExecutionPath::Template,
            chain: Vec::new(),
            left: grant.turns.map(|share| {
                let turns = u32::try_from(share.left).unwrap_or(u32::MAX);
                // Time and cost are already part of the session's limits.
                Remaining { turns, ms: None, usd: None }
            }),
            earlier: self.earlier.clone(),
            handover: None,
            history: Arc::clone(&world.history),
        };
        let kept = request.history_config.unwrap_or_default().record_in_session_history;
        let outcome = system.execute(request, None, place).await?;
        let result = match outcome.result.as_deref() {
            Some(result) => result.clone(),
            None => TaskResult::complete(outcome.answer.as_str()),
        };
        if kept {
            if self.earlier.len() == MOST_EARLIER {
                self.earlier.remove(0);
            }
            self.earlier.push((name.to_owned(), result.clone()));
        }
        Ok(self.spent(outcome, grant, |_, _| result))
    }
}

/// Builds the request of a call from its inputs and settings.
fn request(name: &str, call: &TaskCall) -> Result<SubtaskRequest, TemplateTaskError> {
    let mut fields = Map::new();
    fields.insert("name".to_owned(), name.into());
    fields.insert("inputs".to_owned(), Json::Object(call.inputs.clone()));
    if call.form == CallForm::Spawn {
        fields.insert("subtype".to_owned(), "subtask".into());
    }
    for (key, value) in call.settings.iter().filter(|(_, value)| !value.is_null()) {
        let (key, value) = match key.as_str() {
            "files" => ("file_paths", value.clone()),
            // Any value can be passed as context; one that does not have the form of a context is shown as
            // text.
            "context" if value.is_object() && value.get("parts").is_none() => {
                ("inherited_context", value.to_string().into())
            }
            "context" if value.is_string() || value.is_object() => ("inherited_context", value.clone()),
            "context" => ("inherited_context", value.to_string().into()),
            other => (other, value.clone()),
        };
        fields.insert(key.to_owned(), value);
    }
    serde_json::from_value(Json::Object(fields)).map_err(|error| {
        let message = format!("invalid call of `{name}`: {error}");
        TemplateTaskError::failure(Reason::InputValidationFailure, message)
    })
}
