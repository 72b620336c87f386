//! The shipped agent files, and settings that only agent files have.

use std::path::PathBuf;

use fusee_testkit::events::of_type;
use fusee_testkit::project::Project;
use fusee_testkit::script::Line;
use fusee_testkit::server::{Message, Server};
use serde_json::{Value, json};

use crate::flows::{plan, project, read, write};
use crate::support::{fusee, run_json, run_on};

fn shipped() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../agents")
}

/// Replies of a model that follows the flow of an agent.
fn obedient(flow: &str) -> Vec<Line> {
    let done = || Line::text("Done.");
    match flow {
        "flat" => vec![read("a.txt"), write("a.txt"), done()],
        "staged" => {
            vec![read("a.txt"), read("tests/test_a.txt"), plan(&["Change a.txt"]), write("a.txt"), done()]
        }
        "staged3" => vec![
            read("a.txt"),
            Line::text("a.txt matters."),
            plan(&["Change a.txt"]),
            Line::text("Planned."),
            write("a.txt"),
            done(),
        ],
        direct => {
            assert_eq!(direct, "direct");
            vec![Line::text("a.txt\n```\nnew\n```")]
        }
    }
}

#[test]
fn every_shipped_agent_is_valid_and_works_through_a_task() {
    let mut seen = Vec::new();
    for entry in std::fs::read_dir(shipped()).unwrap() {
        let file = entry.unwrap().path();
        let file = file.to_str().unwrap();
        let project = project();
        let shown = fusee(&project).args(["config", "--json", "--agent", file]).run().exits(0);
        assert!(!shown.stderr.contains("warning"), "{file}: {}", shown.stderr);
        let text = std::fs::read_to_string(file).unwrap();
        let table: toml::Table = text.parse().unwrap();
        let said = |key: &str| table.get(key).unwrap_or_else(|| panic!("{file} has no `{key}`")).clone();
        let flow = said("task_flow_mode").as_str().unwrap().to_owned();
        assert!(said("context_tokens").as_integer().unwrap() >= 8192);
        assert!(said("description").as_str().unwrap().len() > 20);
        let script = project.script(&obedient(&flow));
        let events = fusee(&project)
            .args(["run", "Fix a.txt.", "--model", &script, "--sandbox", "off", "--json", "--agent", file])
            .run()
            .exits(0)
            .events();
        assert_eq!(events.last().unwrap()["status"], "completed", "{file}");
        assert_eq!(project.read("a.txt"), "new\n", "{file}");
        seen.push(said("name").as_str().unwrap().to_owned());
    }
    seen.sort();
    assert_eq!(seen, ["devstral", "gpt-oss", "llama", "qwen-coder"]);
}

#[test]
fn an_agent_file_names_its_prompt_from_where_it_stands() {
    let project = Project::new().with("agents/a.toml", "name = \"a\"\nprompt = \"words.toml\"\n").with(
        "agents/words.toml",
        "[[sections]]\nkey = \"who\"\ntitle = \"Who\"\nbody = \"You are terse.\"\n",
    );
    let server = Server::start(Message::text("Done."));
    run_on(&project, &server).args(["--agent", "agents/a.toml"]).run().exits(0);
    let body: Value = server.requests()[0].arrived.json();
    let system = body["messages"][0]["content"].as_str().unwrap();
    assert!(system.contains("You are terse."), "{system}");
    project.write("agents/a.toml", "prompt = \"none.toml\"\n");
    let script = project.script(&[Line::text("Done.")]);
    let output = run_json(&project, &script).args(["--agent", "agents/a.toml"]).run().exits(2).stderr;
    assert!(output.contains("agents/none.toml: No such file"), "{output}");
}

#[test]
fn an_agent_file_says_how_large_the_context_is() {
    let long = "a line of words that says little\n".repeat(800);
    let project = Project::new().with("a.txt", &long).with("small.json", "{\"context_tokens\": 3000}");
    let script = project.script(&[read("a.txt"), Line::text("Done.")]);
    let events = run_json(&project, &script).args(["--agent", "small.json"]).run().events();
    let warned = of_type(&events, "warning").iter().any(|warning| warning["code"] == "limit_tokens");
    let compacted = !of_type(&events, "compaction").is_empty();
    let full = events.last().unwrap()["error"]["code"] == json!("TOKEN_LIMIT");
    assert!(warned || compacted || full, "{events:#?}");
}
