//! `spawn_subtask`: hands a subtask to another handler and waits for it. The task system runs it; this module
//! charges its cost to the task and turns its outcome into the result of the call.

use std::sync::LazyLock;

use fusee_journal::event::CallFate;
use fusee_journal::{BoxFuture, RunAborted, StepMeta};
use fusee_model::{Message, ToolCall, ToolSpec};
use fusee_tools::tool::arguments;
use fusee_tools::{Access, ToolDefinition, ToolOutput};
use serde_json::{Value, json};

use crate::agent::conversation::Conversation;
use crate::agent::execution::Execution;
use crate::agent::facts::Facts;
use crate::agent::flow::FlowState;
use crate::agent::limits::budget::{Remaining, Spent};
use crate::agent::task::AgentTask;
use crate::agent::tool_calls::CallRoute;
use crate::agent::tool_calls::tool_executor::CallRecord;
use crate::prompt::Recap;

/// Name of the tool.
pub(crate) const SPAWN_SUBTASK: &str = "spawn_subtask";

/// Runs subtasks on their own branches.
pub(crate) trait SubtaskRunner: Send + Sync {
    /// Runs the subtask described by `arguments`; `conversation` is the conversation so far.
    fn spawn<'a>(
        &'a self,
        arguments: Value,
        left: Remaining,
        recap: Recap,
        conversation: &'a [Message],
    ) -> BoxFuture<'a, Result<SubtaskOutcome, RunAborted>>;
}

/// What `spawn_subtask` returns to the parent task.
pub(crate) struct SubtaskOutcome {
    /// Result for the model.
    pub(crate) output: ToolOutput,
    pub(crate) spent: Spent,
    /// Facts observed in the subtask.
    pub(crate) facts: Facts,
}

/// Definition of the tool.
pub(crate) fn definition() -> &'static ToolDefinition {
    static DEFINITION: LazyLock<ToolDefinition> = LazyLock::new(|| ToolDefinition {
        name: SPAWN_SUBTASK.into(),
        description:
            "Have a part of the work done as a task of its own, with a fresh context, and get its answer. \
                      Name a template, or describe the task in words."
                .into(),
        parameters: json!({
            "type": "object",
            "properties": {
                "description": { "type": "string", "description": "the task in words" },
                "inputs": { "type": "object", "description": "the template's inputs" },
                "name": { "type": "string", "description": "a template" },
                "subtype": { "type": "string" },
                "type": { "enum": ["atomic"] },
                "context_management": { "type": "object" },
                "file_paths": { "type": "array", "items": { "type": "string" } },
                "history_config": { "type": "object" }
            },
            "additionalProperties": false
        }),
        category: Access::Control,
        aliases: &[],
        parameter_aliases: &[],
    });
    &DEFINITION
}

/// The definition in the form sent to the model.
pub(crate) fn spec() -> ToolSpec {
    let ToolDefinition { name, description, parameters, .. } = definition();
    ToolSpec { name: name.to_string(), description: description.to_string(), parameters: parameters.clone() }
}

/// Summary of the work so far, for a subtask that continues from here.
fn recap(task: &AgentTask, flow: &FlowState) -> Recap {
    let FlowState { plan, facts, .. } = flow;
    Recap {
        request: task.rules.request.as_ref().unwrap_or(&task.request).clone(),
        plan: if plan.tasks().is_empty() { String::new() } else { plan.render() },
        files_read: facts.files_read().cloned().collect(),
        files_changed: facts.changed().map(|(path, _)| path.to_owned()).collect(),
    }
}

/// Routes a `spawn_subtask` call; `None` for other calls or if this task may not spawn subtasks.
pub(super) fn route(task: &AgentTask, call: &ToolCall) -> Option<CallRoute> {
    if call.name != SPAWN_SUBTASK || task.spawn.is_none() {
        return None;
    }
    Some(arguments::parse(&call.arguments, definition()).map_or_else(CallRoute::malformed, CallRoute::Spawn))
}

/// Runs the subtask to its end; its answer is the result of the call.
pub(super) async fn spawn(
    run: &mut Execution<'_>,
    flow: &mut FlowState,
    conversation: &Conversation<'_>,
    turns: u32,
    call: &ToolCall,
    arguments: Value,
) -> Result<(CallRecord, StepMeta), RunAborted> {
    let Some(spawn) = &run.task.spawn else {
        let output = ToolOutput::error("This task begins no others.");
        return run.answer(call, CallRecord::ended(output, CallFate::Refused)).await;
    };
    let (left, recap) = (run.remaining(turns, conversation), recap(run.task, flow));
    let SubtaskOutcome { output, spent, facts } =
        spawn.spawn(arguments, left, recap, conversation.history.messages()).await?;
    run.meter.spent.add(&spent);
    flow.facts.absorb_files(&facts);
    run.answer(call, CallRecord::plain(output)).await
}
