//! The standard tools, and what is sent to a model.

use serde_json::json;

use super::*;

#[test]
fn the_standard_names_are_those_of_the_standard_tools() {
    let toolbox = Toolbox::standard(CommandSettings::default());
    let names: Vec<_> = toolbox.definitions().map(|definition| definition.name.as_ref()).collect();
    assert_eq!(names, STANDARD);
}

#[test]
fn a_short_schema_has_names_types_and_what_is_required() {
    let toolbox = Toolbox::standard(CommandSettings::default());
    let short = |name: &str| toolbox.find(name).expect("a tool").definition().short_parameters();
    assert_eq!(
        short("read_files"),
        json!({
            "type": "object",
            "properties": { "paths": { "type": "array", "items": { "type": "string" } } },
            "required": ["paths"]
        })
    );
    let names: Vec<_> =
        short("shell")["properties"].as_object().expect("properties").keys().cloned().collect();
    assert_eq!(names, ["command", "workdir", "stdin", "background", "timeout"]);
}
