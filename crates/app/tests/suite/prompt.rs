//! `fusee prompt render`: exactly the bytes a model would get, closed and opened.

use fusee_testkit::project::Project;
use serde_json::{Value, json};

use crate::fusee::fusee;

const FILE: &str = r#"
[[sections]]
key = "reference-docs"
title = "Reference Documentation"
body = "Full docs for ${project}."
summary = "Docs for ${project} exist."
visibility = "summary"
params = { project = "demo" }

[[sections]]
kind = "task"
"#;

fn project() -> Project {
    Project::new().with("p.toml", FILE)
}

#[test]
fn text_is_what_a_model_gets_and_one_newline() {
    let project = project();
    let task = r#"{"request":"Do it.","background":"Why."}"#;
    let shown = fusee(&project).args(["prompt", "render", "p.toml", "--task", task]).run().exits(0);
    assert_eq!(
        shown.stdout,
        "## 1. Reference Documentation\n\nDocs for demo exist.\n\n---\n[Summary only. To see all of it, call \
         `open_sections` with key `reference-docs`.]\n\n## 2. Task\n\nDo it.\n\n**Background:** Why.\n"
    );
}

#[test]
fn an_opened_section_shows_the_next_cycle() {
    let project = project();
    let line = [
        "prompt",
        "render",
        "p.toml",
        "--task",
        r#"{"request":"Do it."}"#,
        "--open",
        "reference-docs",
        "--reason",
        "to see",
    ];
    assert_eq!(
        fusee(&project).args(line).run().exits(0).stdout,
        "## 1. Reference Documentation\n\nFull docs for demo.\n\n## 2. Task\n\n**Expansion Context:** Sections expanded: \
         `reference-docs`. Reason: to see. Continue with your task using the newly visible content.\n\n---\n\nDo it.\n"
    );
}

#[test]
fn json_names_tools_sections_and_what_is_closed() {
    let project = project();
    let line = ["prompt", "render", "p.toml", "--task", r#"{"request":"Do it."}"#, "--format", "json"];
    let shown: Value = serde_json::from_str(&fusee(&project).args(line).run().exits(0).stdout).unwrap();
    assert_eq!(shown["tools"], json!(["read_section", "open_sections"]));
    assert_eq!(shown["closed"], json!(["reference-docs"]));
    assert_eq!(shown["sections"][0]["visibility"], json!("summary"));
    assert_eq!(shown["sections"][1]["path"], json!("task"));
    assert!(shown["sections"][0]["tokens"].as_u64().is_some_and(|tokens| tokens > 5), "{shown:#}");
}

#[test]
fn a_wrong_key_or_a_missing_task_is_said_and_is_1() {
    let project = project();
    let line = [
        "prompt",
        "render",
        "p.toml",
        "--task",
        r#"{"request":"x"}"#,
        "--open",
        "refrence-docs",
        "--format",
        "json",
    ];
    let shown: Value = serde_json::from_str(&fusee(&project).args(line).run().exits(1).stdout).unwrap();
    assert_eq!(shown["error"]["code"], json!("unknown_section"));
    assert_eq!(shown["error"]["section_path"], json!("refrence-docs"));
    assert!(shown["error"]["message"].as_str().unwrap().contains("`reference-docs`"), "{shown:#}");
    let missing = fusee(&project).args(["prompt", "render", "p.toml"]).run().exits(1);
    assert!(missing.stderr.contains("--task"), "{}", missing.stderr);
}
