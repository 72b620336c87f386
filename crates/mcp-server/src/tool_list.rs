//! The tools that every server has, with their schemas. `task_tools.rs` adds one for each template and workflow.

use std::sync::{Arc, LazyLock};

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;

use crate::arguments::{
    AnswerArguments, NamedRunArguments, ReplyArguments, ReviewArguments, RunArguments, RunsArguments,
    WaitArguments,
};
use crate::run_state::RunState;
use crate::runs::RunList;

/// A tool of every server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FixedTool {
    Run,
    Wait,
    Status,
    Reply,
    Cancel,
    Answer,
    Runs,
    Review,
}

impl FixedTool {
    /// All of them, in the order of the list.
    const ALL: [Self; 8] = [
        Self::Run,
        Self::Wait,
        Self::Status,
        Self::Reply,
        Self::Cancel,
        Self::Answer,
        Self::Runs,
        Self::Review,
    ];

    /// The tool of this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Run => "fusee_run",
            Self::Wait => "fusee_wait",
            Self::Status => "fusee_status",
            Self::Reply => "fusee_reply",
            Self::Cancel => "fusee_cancel",
            Self::Answer => "fusee_answer",
            Self::Runs => "fusee_runs",
            Self::Review => "fusee_review",
        }
    }

    fn description(self) -> &'static str {
        match self {
            Self::Run => {
                "Run a task with a coding agent in a directory. Returns the result; if the run takes longer than wait_s, \
                 returns its id and what it is doing. The run continues, also if this server is killed."
            }
            Self::Wait => {
                "Wait for a run and return its result, or what it is doing. Continues an interrupted run."
            }
            Self::Status => "Return what a run is doing, or its result. Continues an interrupted run.",
            Self::Reply => "Continue the conversation of an ended run with another message, as a new run.",
            Self::Cancel => "Cancel a run.",
            Self::Answer => {
                "Answer a question of a run: approve or refuse a call, or give the text it asks for."
            }
            Self::Runs => "List the runs of a project, newest first.",
            Self::Review => "Review the code of a project, or its changes since a commit. Changes nothing.",
        }
    }

    fn definition(self) -> Tool {
        let input = match self {
            Self::Run => input_schema::<RunArguments>(),
            Self::Wait => input_schema::<WaitArguments>(),
            Self::Status | Self::Cancel => input_schema::<NamedRunArguments>(),
            Self::Reply => input_schema::<ReplyArguments>(),
            Self::Answer => input_schema::<AnswerArguments>(),
            Self::Runs => input_schema::<RunsArguments>(),
            Self::Review => input_schema::<ReviewArguments>(),
        };
        let output = match self {
            Self::Runs => Arc::new(output_schema::<RunList>()),
            _ => state_schema(),
        };
        let annotations = match self {
            Self::Wait | Self::Status | Self::Runs | Self::Review => {
                ToolAnnotations::new().read_only(true).open_world(false)
            }
            Self::Run | Self::Reply | Self::Answer => {
                ToolAnnotations::new().read_only(false).destructive(true)
            }
            Self::Cancel => ToolAnnotations::new().read_only(false).destructive(false).idempotent(true),
        };
        let mut tool = Tool::new(self.name(), self.description(), input);
        tool.output_schema = Some(output);
        tool.annotations = Some(annotations);
        tool
    }
}

/// The tools of every server, in a fixed order. Their schemas are shared: a list costs little however often it is sent.
pub(crate) fn fixed_tools() -> &'static [Tool] {
    static TOOLS: LazyLock<Vec<Tool>> =
        LazyLock::new(|| FixedTool::ALL.into_iter().map(FixedTool::definition).collect());
    &TOOLS
}

/// The schema of a run's state, which is the result of most tools.
pub(crate) fn state_schema() -> Arc<JsonObject> {
    static SCHEMA: LazyLock<Arc<JsonObject>> = LazyLock::new(|| Arc::new(output_schema::<RunState>()));
    Arc::clone(&SCHEMA)
}

/// The JSON Schema of what a type reads.
fn input_schema<T: JsonSchema>() -> JsonObject {
    schema::<T>(SchemaSettings::draft2020_12().for_deserialize())
}

/// The JSON Schema of what a type writes: fields that may be left out are not required.
fn output_schema<T: JsonSchema>() -> JsonObject {
    schema::<T>(SchemaSettings::draft2020_12().for_serialize())
}

fn schema<T: JsonSchema>(settings: SchemaSettings) -> JsonObject {
    let generator = settings.with(|settings| settings.inline_subschemas = true).into_generator();
    let mut fields = match generator.into_root_schema_for::<T>().to_value() {
        Value::Object(fields) => fields,
        _ => JsonObject::new(),
    };
    for key in ["$schema", "title", "description"] {
        fields.remove(key);
    }
    fields.values_mut().for_each(remove_formats);
    fields
}

/// Removes formats such as `uint32`, which clients report as unknown.
fn remove_formats(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            if fields.get("format").is_some_and(Value::is_string) {
                fields.remove("format");
            }
            fields.values_mut().for_each(remove_formats);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_formats),
        _ => {}
    }
}
