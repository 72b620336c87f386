//! Secrets from the user's environment are never shown, and long output is stored in full for the model to
//! page through.

use fusee_testkit::events::of_type;
use fusee_testkit::project::Project;
use fusee_testkit::script::Line;
use serde_json::json;

use crate::support::{KEY, fusee, run_json, with_key};

#[test]
fn a_secret_in_files_and_outputs_reaches_neither_model_nor_journal() {
    let project = Project::new().with(".env", &format!("KEY={KEY}\nOTHER=plain-value\n"));
    let command = "cat .env; sleep 0.3; cat .env";
    let script = project.script(&[
        Line::call("read_file", json!({"path": ".env"})),
        Line::call("shell", json!({"command": command})),
        Line::call("write_file", json!({"path": ".env", "content": "KEY=none\n"})),
        Line::text("Done."),
    ]);
    let ran = with_key(run_json(&project, &script).args(["--run-id", "r"])).run().exits(0);
    assert!(!ran.stdout.contains(KEY) && !ran.stderr.contains(KEY), "{}", ran.stdout);
    let events = ran.events();
    let results = of_type(&events, "tool_result");
    for result in &results[..2] {
        assert!(result["content"].as_str().unwrap().contains("[redacted]"), "{result:#}");
    }
    assert!(results[1]["content"].as_str().unwrap().contains("OTHER=plain-value"));
    assert_eq!(project.read(".env"), "KEY=none\n");
    for file in ["journal.db", "journal.db-wal"] {
        let bytes = std::fs::read(project.dir().join(".fusee").join(file)).unwrap_or_default();
        let found = bytes.windows(KEY.len()).any(|window| window == KEY.as_bytes());
        assert!(!found, "{file} holds the key");
    }
    // Content with a secret was not backed up, so it cannot be restored, which the output says.
    let undone = with_key(fusee(&project).args(["runs", "undo", "r", "--dry-run"])).run().exits(1).stdout;
    assert!(undone.starts_with("left as it is  .env: its original content held a secret"), "{undone}");
}

#[test]
fn long_output_is_kept_in_a_file_that_the_model_can_page() {
    let project = Project::new();
    let script = project.script(&[
        Line::call("shell", json!({"command": "seq 1 60000"})),
        Line::call("shell", json!({"command": "seq 1 10"})),
        Line::text("Done."),
    ]);
    let events = run_json(&project, &script).run().exits(0).events();
    let results = of_type(&events, "tool_result");
    let content = results[0]["content"].as_str().unwrap();
    let at = content.find("[the whole output is in .fusee/output/").expect(content);
    let path: &str = content[at..].split_whitespace().nth(5).unwrap();
    let whole: String = (1..=60000).map(|number| format!("{number}\n")).collect();
    assert_eq!(project.read(path), whole);
    assert!(content.contains(&format!("({} bytes)", whole.len())), "{content}");
    assert!(!results[1]["content"].as_str().unwrap().contains(".fusee/output"));
    let script = project.script(&[
        Line::call("read_file", json!({"path": path, "offset": 59_990})),
        Line::call("shell", json!({"command": format!("echo x > {path}; tail -1 {path}")})),
        Line::text("Done."),
    ]);
    let events = fusee(&project).args(["run", "x", "--json", "--model", &script]).run().exits(0).events();
    assert!(of_type(&events, "tool_result")[0]["content"].as_str().unwrap().contains("60000"));
    if events[0]["sandbox"] != "none" {
        assert_eq!(project.read(path), whole, "a confined command changed it");
    }
}

#[test]
fn a_key_is_a_secret_whatever_its_variable_is_called() {
    let project = Project::new().with("notes.txt", "value: box-value-12345\n");
    let folder = project.home().join(".config/fusee");
    std::fs::create_dir_all(&folder).unwrap();
    let settings =
        "[models.box]\nmodel = \"x\"\nbase_url = \"http://127.0.0.1:9/v1\"\napi_key_env = \"BOXED\"\n";
    std::fs::write(folder.join("config.toml"), settings).unwrap();
    let script =
        project.script(&[Line::call("read_file", json!({"path": "notes.txt"})), Line::text("Done.")]);
    let ran = run_json(&project, &script).env("BOXED", "box-value-12345").run().exits(0);
    assert!(ran.stdout.contains("value: [redacted]") && !ran.stdout.contains("box-value"), "{}", ran.stdout);
}
