//! The event stream as a format: the schema rejects invalid events, and every reader sees the same.

use fusee_testkit::events::{kept, schema_path};
use fusee_testkit::project::Project;
use fusee_testkit::script::Line;
use serde_json::{Value, json};

use crate::support::{fusee, run_json};

fn schema() -> jsonschema::Validator {
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(schema_path()).unwrap()).unwrap();
    jsonschema::meta::validate(&schema).expect("a valid schema");
    jsonschema::validator_for(&schema).unwrap()
}

fn some_events() -> Vec<Value> {
    let project = Project::new();
    let script = project.script(&[
        Line::call("shell", json!({"command": "echo x"})).reasoning("Let me see.").with_text("Looking."),
        Line::text("Done."),
    ]);
    run_json(&project, &script).run().exits(0).events()
}

#[test]
fn the_schema_refuses_what_is_no_event() {
    let schema = schema();
    for event in some_events() {
        assert!(schema.is_valid(&event), "{event}");
        for key in event.as_object().unwrap().keys() {
            let mut without = event.clone();
            without.as_object_mut().unwrap().remove(key);
            let optional =
                ["exit_code", "fate", "parent", "error", "max_turns", "max_input_tokens", "wait_ms"];
            let optional = optional.contains(&key.as_str());
            assert!(optional || !schema.is_valid(&without), "{key} can be left out of {event}");
        }
        let with = |key: &str, value: Value| {
            let mut changed = event.clone();
            changed[key] = value;
            changed
        };
        assert!(!schema.is_valid(&with("type", json!("no_such_event"))), "any type passes");
        assert!(!schema.is_valid(&with("seq", json!("1"))), "any seq passes");
        assert!(!schema.is_valid(&with("surprise", json!(1))), "any field passes: {event}");
    }
}

#[test]
fn a_run_shown_later_is_the_stream_that_was_printed() {
    let project = Project::new();
    let script = project.script(&[
        Line::call("shell", json!({"command": "echo x; echo y"})).with_text("Looking."),
        Line::text("Done."),
    ]);
    let printed = run_json(&project, &script).args(["--run-id", "shown"]).run().exits(0).events();
    let shown = fusee(&project).args(["show", "shown", "--json"]).run().exits(0).events();
    assert_eq!(kept(&shown), kept(&printed));
}

#[test]
fn a_reader_that_leaves_does_not_stop_the_run() {
    let project = Project::new();
    let script = project.script(&[
        Line::call("shell", json!({"command": "sleep 0.3; echo x >> effects.txt"})),
        Line::text("Done."),
    ]);
    let line = format!(
        "{} run x --model {script} --sandbox off --json --run-id left | head -n 1",
        crate::support::binary()
    );
    let head = project.command("sh").args(["-c", &line]).run().exits(0);
    assert!(head.stdout.contains("task_started"), "{}", head.stdout);
    let shown = fusee(&project).args(["show", "left", "--json"]).run().exits(0).events();
    assert_eq!(shown.last().unwrap()["status"], json!("completed"));
    assert_eq!(project.read("effects.txt"), "x\n");
}
