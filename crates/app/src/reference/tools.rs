//! The page of tools, from their definitions: what a model is told, and the names that are mapped.

use fusee_engine::tools::{Category, CommandSettings, Definition, Toolbox};

use super::{cell, heading};

/// The page.
pub(crate) fn page() -> String {
    let mut text = heading("Tools", "crates/tools");
    text.push_str(
        "What every task can call. Other names that models use for a tool or a parameter are mapped.\n",
    );
    for definition in Toolbox::standard(CommandSettings::default()).definitions() {
        text.push_str(&section(definition));
    }
    text
}

fn section(definition: &Definition) -> String {
    let category = match definition.category {
        Category::Read => "reads",
        Category::Write => "may change something",
        Category::Reason => "thinks",
        Category::Control => "steers the task",
    };
    let mut text =
        format!("\n## `{}`\n\n*{category}* · {}\n", definition.name, definition.description.trim());
    let required = &definition.parameters["required"];
    if let Some(properties) =
        definition.parameters["properties"].as_object().filter(|fields| !fields.is_empty())
    {
        text.push_str("\n| parameter | type | |\n|---|---|---|\n");
        for (name, schema) in properties {
            let needed = required.as_array().is_some_and(|names| names.iter().any(|other| other == name));
            let kind = schema["type"].as_str().unwrap_or("any");
            let about = cell(schema["description"].as_str().unwrap_or_default());
            let aliases: Vec<String> = definition
                .parameter_aliases
                .iter()
                .filter(|(_, target)| target == name)
                .map(|(alias, _)| format!("`{alias}`"))
                .collect();
            let aliases =
                if aliases.is_empty() { String::new() } else { format!(" (also {})", aliases.join(", ")) };
            let mark = if needed { "" } else { "?" };
            text.push_str(&format!("| `{name}{mark}` | {kind} | {about}{aliases} |\n"));
        }
    }
    if !definition.aliases.is_empty() {
        let names: Vec<String> = definition.aliases.iter().map(|alias| format!("`{alias}`")).collect();
        text.push_str(&format!("\nAlso called {}.\n", names.join(", ")));
    }
    text
}
