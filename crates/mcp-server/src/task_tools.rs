//! One tool for each template and registered workflow, with its inputs as parameters.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use fusee::lang::{Param, ParamType};
use fusee::launch::{Launcher, NamedTask, NamedTaskKind};
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Value, json};

use crate::tool_list::{fixed_tools, state_schema};

/// Longest name of a tool.
const MAX_NAME: usize = 128;

/// A named task and the tool that starts it.
pub(crate) struct TaskTool {
    pub(crate) name: String,
    pub(crate) task: NamedTask,
}

/// The tools of a project's templates and workflows, in the order of their names.
pub(crate) fn task_tools(launcher: &dyn Launcher, directory: &Path) -> Result<Vec<TaskTool>, String> {
    let tasks = launcher.tasks(directory).map_err(|error| error.to_string())?;
    let mut taken: HashSet<String> =
        fixed_tools().iter().map(|tool| tool.name.clone().into_owned()).collect();
    let mut tools = Vec::with_capacity(tasks.len());
    for task in tasks {
        let plain = plain_name(&task.name);
        let candidates = std::iter::once(plain.clone())
            .chain(std::iter::once(format!("task_{plain}")))
            .chain((2..).map(|n| format!("task_{plain}_{n}")));
        let Some(name) = candidates.into_iter().find(|name| !taken.contains(name)) else { continue };
        taken.insert(name.clone());
        tools.push(TaskTool { name, task });
    }
    Ok(tools)
}

/// A name that every client accepts.
fn plain_name(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "_-.".contains(c) { c } else { '_' };
    // Room for the prefix and a number.
    name.chars().map(plain).take(MAX_NAME - 16).collect()
}

impl TaskTool {
    /// The definition of the tool.
    pub(crate) fn definition(&self) -> Tool {
        let description = match (self.task.description.trim(), self.task.kind) {
            ("", NamedTaskKind::Template) => format!("Run the template {}.", self.task.name),
            ("", NamedTaskKind::Workflow) => format!("Run the workflow {}.", self.task.name),
            (text, _) => text.to_owned(),
        };
        let mut tool =
            Tool::new(self.name.clone(), description, input_schema(&self.task.inputs, self.task.kind));
        tool.output_schema = Some(self.result_schema());
        tool.annotations = Some(ToolAnnotations::new().read_only(false));
        tool
    }

    /// The state of the run, with the output that the task declares.
    fn result_schema(&self) -> Arc<JsonObject> {
        let Some(output) = &self.task.output_schema else { return state_schema() };
        let mut state = JsonObject::clone(&state_schema());
        if let Some(Value::Object(properties)) = state.get_mut("properties") {
            properties.insert("output".to_owned(), output.clone());
        }
        Arc::new(state)
    }
}

fn input_schema(inputs: &[Param], kind: NamedTaskKind) -> JsonObject {
    let property = |input: &Param| {
        let mut property = match (input.kind, kind) {
            // A text input of a template accepts every value, because every value can be rendered.
            (ParamType::Any, NamedTaskKind::Template) => json!({ "type": "string" }),
            (ParamType::Any, NamedTaskKind::Workflow) => json!({}),
            (kind, _) => json!({ "type": kind.name() }),
        };
        if let Value::Object(fields) = &mut property {
            fields.extend(input.doc.as_ref().map(|text| ("description".to_owned(), json!(text))));
            fields.extend(input.default.as_ref().map(|value| ("default".to_owned(), value.clone())));
        }
        (input.name.clone(), property)
    };
    let properties: JsonObject = inputs.iter().map(property).collect();
    let required: Vec<&str> =
        inputs.iter().filter(|input| input.required).map(|input| input.name.as_str()).collect();
    let mut schema = JsonObject::new();
    schema.insert("type".to_owned(), json!("object"));
    schema.insert("properties".to_owned(), Value::Object(properties));
    schema.insert("required".to_owned(), json!(required));
    schema.insert("additionalProperties".to_owned(), json!(false));
    schema
}
