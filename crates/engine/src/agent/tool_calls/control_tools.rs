//! The control tools, which steer the task itself. They touch nothing outside the task, so they are
//! implemented here and not in the tools crate.

use std::sync::LazyLock;

use fusee_tools::{Access, ToolDefinition, ToolOutput};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::agent::machine::FinishCall;
use crate::agent::plan::Plan;
use crate::approval::ASK_USER;

/// The result of a control call.
pub(crate) struct ControlResult {
    pub(crate) output: ToolOutput,
    pub(crate) finish: Option<FinishCall>,
}

/// Definitions of the control tools, in the order the model sees them.
pub(crate) fn definitions() -> &'static [ToolDefinition] {
    static DEFINITIONS: LazyLock<Vec<ToolDefinition>> = LazyLock::new(define);
    &DEFINITIONS
}

/// Whether `name` is a control tool.
pub(crate) fn is_one(name: &str) -> bool {
    definitions().iter().any(|definition| definition.name == name)
}

fn define() -> Vec<ToolDefinition> {
    let define = |name: &'static str, description: &'static str, category, parameters| ToolDefinition {
        name: name.into(),
        description: description.into(),
        parameters,
        category,
        aliases: &[],
        parameter_aliases: &[],
    };
    vec![
        define(
            "think",
            "Think in words; nothing else happens.",
            Access::Reason,
            json!({
                "type": "object",
                "properties": { "thought": { "type": "string" } },
                "required": ["thought"],
                "additionalProperties": false
            }),
        ),
        define(
            "plan_tasks",
            "Keeps a short plan.",
            Access::Reason,
            json!({
                "type": "object",
                "properties": {
                    "action": { "type": "string", "enum": ["create", "update", "list"] },
                    "tasks": { "type": "array", "items": { "type": "object", "properties": {
                        "id": { "type": "string" },
                        "description": { "type": "string" },
                        "goal": { "type": "string" },
                        "status": { "type": "string", "enum": ["pending", "in_progress", "completed", "failed"] },
                        "priority": { "type": "integer" }
                    }, "additionalProperties": false } },
                    "task_id": { "type": "string" },
                    "status": { "type": "string", "enum": ["pending", "in_progress", "completed", "failed"] },
                    "summary": { "type": "string" }
                },
                "required": ["action"],
                "additionalProperties": false
            }),
        ),
        define(
            "flow_stage_done",
            "End the current stage: its name, and in a summary what the next stages need to know.",
            Access::Control,
            json!({
                "type": "object",
                "properties": {
                    "stage": { "type": "string" },
                    "summary": { "type": "string" },
                    "goals": { "type": "array", "items": { "type": "string" } },
                    "decisions": { "type": "array", "items": { "type": "string" } },
                    "risks": { "type": "array", "items": { "type": "string" } },
                    "next_actions": { "type": "array", "items": { "type": "string" } },
                    "files_read": { "type": "array", "items": { "type": "string" } },
                    "files_changed": { "type": "array", "items": { "type": "string" } },
                    "metadata": { "type": "object" }
                },
                "required": ["stage"],
                "additionalProperties": false
            }),
        ),
        define(
            "finish",
            "Ends the task.",
            Access::Control,
            json!({
                "type": "object",
                "properties": {
                    "status": { "type": "string", "enum": ["done", "blocked"] },
                    "summary": { "type": "string" }
                },
                "required": ["status"],
                "additionalProperties": false
            }),
        ),
        define(
            ASK_USER,
            "Asks the person what only they know.",
            Access::Control,
            json!({
                "type": "object",
                "properties": { "question": { "type": "string" } },
                "required": ["question"],
                "additionalProperties": false
            }),
        ),
    ]
}

/// Answers a control call whose arguments match its definition.
pub(crate) fn answer(name: &str, arguments: Value, plan: &mut Plan) -> ControlResult {
    match name {
        "plan_tasks" => {
            let output = match plan.call(arguments) {
                Ok(content) => ToolOutput::done(content),
                Err(problem) => ToolOutput::error(problem),
            };
            ControlResult { output, finish: None }
        }
        "think" => ControlResult { output: ToolOutput::done("Noted."), finish: None },
        _ => finish(arguments),
    }
}

fn finish(arguments: Value) -> ControlResult {
    #[derive(Deserialize)]
    struct Arguments {
        status: String,
        #[serde(default)]
        summary: String,
    }
    match serde_json::from_value::<Arguments>(arguments) {
        Ok(Arguments { status, summary }) => {
            let finish = FinishCall { blocked: status == "blocked", summary };
            ControlResult { output: ToolOutput::done("The task ends here."), finish: Some(finish) }
        }
        Err(error) => ControlResult { output: ToolOutput::error(error.to_string()), finish: None },
    }
}
