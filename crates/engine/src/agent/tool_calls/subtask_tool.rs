//! `spawn_subtask`: hands a subtask to another handler and waits for it. The task system runs it; this module
//! charges its cost to the task and turns its outcome into the result of the call.

use std::sync::LazyLock;

use fusee_journal::event::CallFate;
use fusee_journal::{BoxFuture, RunAborted, StepMeta};
use fusee_model::{Message, ToolCall, ToolSpec};
use fusee_tools::{Access, ToolDefinition, ToolOutput, arguments};
use serde_json::{Value, json};

use crate::agent::facts::Facts;
use crate::agent::limits::cost::Charges;
use crate::agent::runner::TaskRunner;
use crate::agent::tool_calls::CallRoute;
use crate::agent::tool_calls::tool_executor::CallRecord;
use crate::prompt::Recap;

/// Name of the tool.
pub(crate) const SPAWN_SUBTASK: &str = "spawn_subtask";

/// Runs subtasks on their own branches.
pub(crate) trait SubtaskRunner: Send + Sync {
    /// Runs the subtask described by `arguments`; `said` is the conversation so far.
    fn spawn<'a>(
        &'a self,
        arguments: Value,
        left: Remaining,
        recap: Recap,
        said: &'a [Message],
    ) -> BoxFuture<'a, Result<SubtaskOutcome, RunAborted>>;
}

/// The remaining limits of a task, shared by all its subtasks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Remaining {
    /// Remaining model replies.
    pub turns: u32,
    /// Remaining working time in milliseconds, if limited.
    pub ms: Option<u64>,
    /// Remaining budget in US dollars, if limited and the price is known.
    pub usd: Option<f64>,
}

/// Resources used by the subtasks of a task.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Spent {
    pub(crate) turns: u32,
    pub(crate) charges: Charges,
    pub(crate) active_ms: u64,
}

impl Spent {
    /// Adds the resources used elsewhere.
    pub(crate) fn add(&mut self, other: &Self) {
        self.turns = self.turns.saturating_add(other.turns);
        self.active_ms += other.active_ms;
        self.charges.extend(&other.charges);
    }
}

/// Outcome of a subtask.
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

impl TaskRunner<'_> {
    /// The limits that remain for subtasks.
    pub(crate) fn left(&self) -> Remaining {
        let limits = self.task.rules.bound(self.terms.limits);
        let cost = self.turns.charges.cost_usd(limits.price);
        Remaining {
            turns: limits.max_turns.saturating_sub(self.turns.all_turns()),
            ms: self.left_ms(),
            usd: limits.budget_usd.zip(cost).map(|(budget, cost)| (budget - cost).max(0.0)),
        }
    }

    /// Summary of the work so far, for a subtask that continues from here.
    fn recap(&self) -> Recap {
        let plan = if self.plan.tasks().is_empty() { String::new() } else { self.plan.render() };
        Recap {
            request: self.task.rules.request.as_ref().unwrap_or(&self.task.request).clone(),
            plan,
            files_read: self.facts.files_read().cloned().collect(),
            files_changed: self.facts.changed().map(|(path, _)| path.to_owned()).collect(),
        }
    }

    /// Charges the resources used by subtasks to this task.
    pub(crate) fn spend(&mut self, spent: &Spent) {
        self.active_ms += spent.active_ms;
        self.turns.spend(spent.turns, &spent.charges);
    }

    /// Resolves a `spawn_subtask` call; `None` for other calls or if this task may not spawn subtasks.
    pub(crate) fn subtask_call(&self, call: &ToolCall) -> Option<CallRoute> {
        if call.name != SPAWN_SUBTASK || self.task.spawn.is_none() {
            return None;
        }
        Some(match arguments::parse(&call.arguments, definition()) {
            Ok(arguments) => CallRoute::Spawn(arguments),
            Err(complaint) => {
                CallRoute::Answer { output: ToolOutput::error(complaint), sort: "malformed_arguments" }
            }
        })
    }

    /// Runs the subtask to its end; its answer is the result of the call.
    pub(crate) async fn spawn_subtask(
        &mut self,
        call: &ToolCall,
        arguments: Value,
    ) -> Result<(CallRecord, StepMeta), RunAborted> {
        let task = self.task;
        let Some(spawn) = &task.spawn else {
            let output = ToolOutput::error("This task begins no others.");
            return self.answer_step(call, CallRecord::ended(output, CallFate::Refused)).await;
        };
        let said = self.conversation.messages();
        let SubtaskOutcome { output, spent, facts } =
            spawn.spawn(arguments, self.left(), self.recap(), said).await?;
        self.spend(&spent);
        self.facts.absorb_files(&facts);
        self.answer_step(call, CallRecord::plain(output)).await
    }
}
