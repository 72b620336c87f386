//! What a run does: works on a request, runs a workflow, or runs the task of a template. Part of its settings, so a
//! run finishes on the text it started with.

use std::collections::BTreeMap;

use fusee_lang::Callable;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::task_system::LimitOverrides;

/// The work of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    /// The request, as one task.
    #[default]
    Request,
    /// A program of tasks.
    Workflow(Box<Workflow>),
    /// The task of a template.
    Template(Box<TemplateTask>),
}

impl Work {
    /// Whether it is the request itself, which older journals say nothing of.
    pub(crate) fn is_request(&self) -> bool {
        *self == Self::Request
    }
}

/// What a face prints of a run where JSON is wanted: the same when it is resumed as when it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JsonForm {
    /// Its events, one a line.
    #[default]
    Events,
    /// The result of its task, as one object.
    Result,
}

impl JsonForm {
    /// Whether it is what older journals say nothing of.
    pub(crate) fn is_events(&self) -> bool {
        *self == Self::Events
    }
}

/// A workflow with everything that decides how it goes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Workflow {
    /// What diagnostics and errors call its text: the file, or a word where it has none.
    pub name: String,
    /// Its text.
    pub text: String,
    /// The files it loads, by the name they are found under.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, String>,
    /// Its parameters.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub inputs: Map<String, Value>,
    /// The templates and workflows that were registered when it began: what its text was checked against.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<Callable>,
    /// The registered workflows among them, by name, and those that they call.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub library: BTreeMap<String, Workflow>,
}

/// A template's task with everything that decides how it goes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TemplateTask {
    /// The template's name.
    pub name: String,
    /// The file it was read from, or a word where it has none.
    pub file: String,
    /// Its text.
    pub text: String,
    /// The inputs.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub inputs: Map<String, Value>,
    /// Limits that the user gave for this run: they win over the template's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<LimitOverrides>,
}
