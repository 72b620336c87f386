//! Callables of a workflow: every tool of a run by name and alias, and the registered templates and
//! workflows.

use fusee_lang::{Callable, CallableKind, Catalog, Param, ParamType};
use fusee_tools::{CommandSettings, ToolDefinition, Toolbox};
use serde_json::Value;

use crate::task_system::run_script;

/// Builds the catalog of these tools and tasks. A task takes precedence over a tool of the same name.
pub fn catalog<'a>(tools: impl IntoIterator<Item = &'a ToolDefinition>, tasks: &[Callable]) -> Catalog {
    let mut catalog = Catalog::new();
    for definition in tools.into_iter().chain([run_script::definition()]) {
        catalog.add(callable(definition));
        catalog.alias(&format!("system:{}", definition.name), &definition.name);
        for alias in definition.aliases {
            // A tool's own name takes precedence over another tool's alias.
            if catalog.find(alias).is_none() {
                catalog.alias(alias, &definition.name);
            }
        }
    }
    for task in tasks {
        catalog.add(task.clone());
    }
    catalog
}

/// Returns the tools that every run has, for checks without a run.
pub fn standard_tools() -> Toolbox {
    Toolbox::standard(CommandSettings::default())
}

fn callable(definition: &ToolDefinition) -> Callable {
    let schema = &definition.parameters;
    let required = |name: &str| {
        schema["required"].as_array().is_some_and(|names| names.iter().any(|required| required == name))
    };
    let properties = schema["properties"].as_object();
    let params = properties.into_iter().flatten().map(|(name, property)| {
        let kind = kind_of(property);
        let param = if required(name) { Param::required(name, kind) } else { Param::optional(name, kind) };
        let aliases = definition.parameter_aliases.iter().filter(|(_, of)| of == name);
        Param { aliases: aliases.map(|(alias, _)| (*alias).to_owned()).collect(), ..param }
    });
    Callable {
        name: definition.name.to_string(),
        kind: CallableKind::Tool,
        params: params.collect(),
        open: schema["additionalProperties"] != Value::Bool(false),
    }
}

fn kind_of(property: &Value) -> ParamType {
    property["type"].as_str().and_then(ParamType::named).unwrap_or_default()
}
