//! The tools page, generated from the tool definitions: the text sent to the model, and accepted aliases.

use fusee::engine::tools::tool::{fetch_url, web_search};
use fusee::engine::tools::{Access, CommandSettings, ToolDefinition, Toolbox};

use super::{cell, heading};

/// Renders the page.
pub(crate) fn page() -> String {
    let mut text = heading("Tools", "crates/tools");
    text.push_str(
        "Tools available to every task. Other names that models use for a tool or a parameter are accepted.\n",
    );
    for definition in Toolbox::standard(CommandSettings::default()).definitions() {
        text.push_str(&section(definition));
    }
    text.push_str(
        "\n# Web tools\n\n`fetch_url` is offered where commands can reach hosts, `web_search` where a service is configured.\n",
    );
    for definition in [fetch_url::definition(), web_search::definition()] {
        text.push_str(&section(&definition));
    }
    text
}

fn section(definition: &ToolDefinition) -> String {
    let category = match definition.category {
        Access::Read => "reads",
        Access::Write => "writes",
        Access::Reason => "reasoning",
        Access::Control => "task control",
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
