//! The work of a run: a request, a workflow, or a template's task. It is part of the settings, so a run ends
//! on the text it started with.

use fusee_lang::{Callable, Param, ParamType};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::template::{InputType, LimitOverrides, Template};
pub use crate::workflow::WorkflowRun;

/// Work that a run executes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunKind {
    /// The request, as one task.
    #[default]
    Request,
    /// An S-expression program.
    Workflow(Box<WorkflowRun>),
    /// The task of a template.
    Template(Box<TemplateRun>),
}

impl RunKind {
    /// Whether this is the default, which is not serialised; older journals do not have the field.
    pub(crate) fn is_request(&self) -> bool {
        *self == Self::Request
    }
}

/// Form of the JSON output. It is stored, so that a resumed run prints the same form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JsonOutput {
    /// Events, one per line.
    #[default]
    Events,
    /// The task's result, as one object.
    Result,
}

impl JsonOutput {
    /// Whether this is the default, which is not serialised; older journals do not have the field.
    pub(crate) fn is_events(&self) -> bool {
        *self == Self::Events
    }
}

/// A template's task with everything that determines its execution.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TemplateRun {
    /// Name of the template.
    pub name: String,
    /// File it was read from, or a placeholder if there is none.
    pub file: String,
    /// Source text of the template.
    pub text: String,
    /// Input values.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub inputs: Map<String, Value>,
    /// Limits that the user set for this run; they override the template's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<LimitOverrides>,
}

/// A template as workflows call it.
pub fn callable(template: &Template) -> Callable {
    let params = template.inputs.iter().map(|input| Param {
        name: input.name.clone(),
        kind: match input.kind {
            // Any value that can be displayed is accepted as text.
            InputType::String => ParamType::Any,
            InputType::Number => ParamType::Number,
            InputType::Boolean => ParamType::Boolean,
            InputType::Array => ParamType::Array,
            InputType::Object => ParamType::Object,
        },
        required: input.default.is_none(),
        default: input.default.clone(),
        doc: input.description.clone(),
        aliases: Vec::new(),
    });
    Callable::task(&template.name, params.collect::<Vec<_>>())
}
