//! Templates and workflows that can be started by name, with their typed inputs.

use axum::Json;
use axum::extract::State;
use fusee::launch::{NamedTask, NamedTaskKind};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::problem::Problem;
use crate::site::Site;

/// A template or workflow.
#[derive(Serialize, JsonSchema)]
pub(super) struct TaskView {
    /// Identifier to send as `template` or `workflow`.
    name: String,
    /// Which of the two it is.
    kind: TaskKind,
    /// What it does.
    description: String,
    /// Inputs in their order.
    inputs: Vec<InputView>,
    /// Source text.
    text: String,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum TaskKind {
    Template,
    Workflow,
}

/// An input of a template or workflow.
#[derive(Serialize, JsonSchema)]
pub(super) struct InputView {
    /// Identifier to send in `inputs`.
    name: String,
    /// Type: `any`, `string`, `number`, `boolean`, `array` or `object`.
    #[serde(rename = "type")]
    kind: &'static str,
    /// Whether it must be given.
    required: bool,
    /// Value if it is not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    default: Option<Value>,
    /// Text to show beside the form field.
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
}

pub(super) async fn list(State(site): State<Site>) -> Result<Json<Vec<TaskView>>, Problem> {
    site.read(|site| {
        let tasks = site.launcher.tasks(site.launcher.directory())?;
        Ok(Json(tasks.into_iter().map(view).collect()))
    })
    .await
}

fn view(task: NamedTask) -> TaskView {
    let inputs = task.inputs.into_iter().map(|param| InputView {
        name: param.name,
        kind: param.kind.name(),
        required: param.required,
        default: param.default,
        description: param.doc,
    });
    TaskView {
        name: task.name,
        kind: match task.kind {
            NamedTaskKind::Template => TaskKind::Template,
            NamedTaskKind::Workflow => TaskKind::Workflow,
        },
        description: task.description,
        inputs: inputs.collect(),
        text: task.text,
    }
}
