//! `fusee prompt render`: exactly the bytes a model would get, collapsed and expanded.

use fusee_testkit::project::Project;
use fusee_testkit::script::Line;
use serde_json::{Value, json};

use crate::support::fusee;

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

#[test]
fn a_file_shows_the_project_where_it_asks_for_it() {
    let kinds = ["workspace-digest", "agents", "skills", "workspace", "task"];
    let file: String = kinds.map(|kind| format!("[[sections]]\nkind = \"{kind}\"\n\n")).concat();
    let skill = "---\nname: Notes\ndescription: How notes are written.\n---\nThe word.\n";
    let project = Project::new()
        .with("p.toml", &file)
        .with("AGENTS.md", "Be kind.\n")
        .with(".fusee/skills/notes/SKILL.md", skill)
        .with("src/a.rs", "fn main() {}\n");
    let task = r#"{"request":"Do it."}"#;
    let line = ["prompt", "render", "p.toml", "--task", task, "--format", "json"];
    let shown: Value = serde_json::from_str(&fusee(&project).args(line).run().exits(0).stdout).unwrap();
    let text = shown["text"].as_str().unwrap();
    assert!(text.starts_with("## 1. Workspace Digest\n\n"), "{text}");
    for part in [
        "Languages: Markdown (1), Rust (1), TOML (1).",
        "## 2. The Project's Instructions (AGENTS.md)\n\nBe kind.\n\n## 3. Skills\n",
        "### 3.1. Notes\n\nHow notes are written.\n\n---\n[Summary only.",
        "## 4. Workspace\n\nYou can look at every file",
    ] {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
    assert!(text.ends_with("## 5. Task\n\nDo it."), "{text}");
    assert_eq!(
        shown["tools"],
        json!([
            "list_dir",
            "find_files",
            "search_text",
            "read_file",
            "read_files",
            "read_section",
            "open_sections"
        ])
    );
    // The same bytes are sent to a model, and a replay needs none of the files.
    let script = project.script(&[Line::text("Done.")]);
    let run =
        ["run", "Do it.", "--prompt", "p.toml", "--model", &script, "--run-id", "r", "--sandbox", "off"];
    fusee(&project).args(run).run().exits(0);
    std::fs::remove_file(project.dir().join("AGENTS.md")).unwrap();
    std::fs::remove_file(project.dir().join("src/a.rs")).unwrap();
    fusee(&project).args(["replay", "r"]).run().exits(0);
    // If a section has nothing to show, the others keep their numbers.
    let bare = Project::new().with("p.toml", &file);
    let shown = fusee(&bare).args(["prompt", "render", "p.toml", "--task", task]).run().exits(0).stdout;
    assert!(shown.contains("## 1. Workspace Digest") && shown.contains("## 4. Workspace\n"), "{shown}");
    assert!(!shown.contains("AGENTS.md") && !shown.contains("Skills"), "{shown}");
    let wrong = Project::new().with("p.toml", "[[sections]]\nkind = \"agents\"\nbody = \"mine\"\n");
    let refused = fusee(&wrong).args(["prompt", "render", "p.toml"]).run().exits(1);
    assert!(refused.stderr.contains("a section of this kind has built-in text"), "{}", refused.stderr);
}
