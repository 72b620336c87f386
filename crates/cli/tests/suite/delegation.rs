//! Prompts that let the model delegate parts of its task: each part is a task with its own prompt, a recap
//! and a fresh context, and its file changes are in the report of the parent task.

use fusee_testkit::events::{Part, of_type, read_checked};
use fusee_testkit::project::Project;
use fusee_testkit::script::Line;
use fusee_testkit::server::{Message, Script, Server};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{fusee, run_on, with_key};

const PROMPT: &str = r#"
[[sections]]
key = "guide"
title = "Guide"
body = "Lead the work."

[[sections]]
kind = "delegation"
prompt = [ { key = "craft", title = "Craft", body = "You write ${language}." } ]

[[sections]]
kind = "task"
"#;

fn project() -> Project {
    Project::new().with("prompt.toml", PROMPT).with("a.txt", "one\n")
}

fn bodies(server: &Server) -> Vec<Value> {
    server.requests().iter().map(|request| request.arrived.json()).collect()
}

fn system(body: &Value) -> &str {
    body["messages"][0]["content"].as_str().unwrap()
}

fn tools(body: &Value) -> Vec<&str> {
    body["tools"].as_array().unwrap().iter().filter_map(|tool| tool["function"]["name"].as_str()).collect()
}

fn hand_over(inputs: Value) -> Value {
    json!({"description": "Write b.txt.", "inputs": inputs})
}

#[test]
fn a_part_has_a_prompt_of_its_own_a_recap_and_a_fresh_context() {
    let project = project();
    let plan = json!({"action": "create", "tasks": [{"description": "look"}, {"description": "have b.txt written"}]});
    let replies = [
        Message::call("read_file", json!({"path": "a.txt"})),
        Message::call("plan_tasks", plan),
        Message::call("spawn_subtask", hand_over(json!({"language": "prose"}))),
        Message::call("write_file", json!({"path": "b.txt", "content": "two\n"})),
        Message::text("b.txt is written."),
        Message::text("All done."),
    ];
    let server = Server::start(replies.into_iter().collect::<Script>());
    let done = run_on(&project, &server).args(["--prompt", "prompt.toml", "--run-id", "d"]).run().exits(0);
    let events = done.events();
    let bodies = bodies(&server);
    let handed: &Value = &bodies[3];
    let output = system(handed);
    let expected = "## 1. Craft\n\nYou write prose.\n\n## 2. Recap\n\nThis task is a part of another one, which waits for your \
         answer and sees nothing else of your work.\n\n**The whole task:** ";
    assert!(output.starts_with(expected), "{output}");
    assert!(
        output.ends_with(
            "**Files read so far:** `a.txt`\n\n**The plan:**\n[ ] 1. look\n[ ] 2. have b.txt written\n\n## 3. Task\n\n\
             Write b.txt.\n\n- **language:** prose"
        ),
        "{output}"
    );
    assert_eq!(handed["messages"].as_array().unwrap().len(), 2, "nothing of the conversation comes along");
    assert!(tools(&bodies[0]).contains(&"spawn_subtask"), "{:?}", tools(&bodies[0]));
    assert!(!tools(handed).contains(&"spawn_subtask"), "what was handed over hands nothing over itself");
    let ends: Vec<(&Value, &Value)> =
        of_type(&events, "task_complete").iter().map(|end| (&end["task"], &end["answer"])).collect();
    assert_eq!(
        ends,
        [(&json!("main/sub-1"), &json!("b.txt is written.")), (&json!("main"), &json!("All done."))]
    );
    let report = of_type(&events, "task_report").pop().unwrap();
    assert_eq!((&report["task"], &report["files_changed"]), (&json!("main"), &json!(["b.txt"])));
    assert_eq!(report["tool_calls_total"], json!(3), "its calls are its own: {report}");
    fusee(&project).args(["replay", "d"]).run().exits(0);
}

#[test]
fn a_run_that_is_killed_inside_a_part_goes_on_there() {
    let project = project();
    let server = Server::start(
        [
            Message::call("spawn_subtask", hand_over(json!({"language": "prose"}))),
            Message::call("shell", json!({"command": "echo begun >> effects.txt; sleep 60"})),
            Message::text("Written."),
            Message::text("All done."),
        ]
        .into_iter()
        .collect::<Script>(),
    );
    let mut running = run_on(&project, &server).args(["--prompt", "prompt.toml", "--run-id", "k"]).start();
    while project.read("effects.txt").is_empty() {
        assert!(running.is_running());
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    running.signal(Signal::KILL);
    assert!(running.wait().was_killed());
    let resumed = with_key(fusee(&project).args(["resume", "k"])).run().exits(0);
    assert_eq!(resumed.stdout, "All done.\n");
    assert_eq!(project.read("effects.txt"), "begun\n", "the command is not run twice");
    let events = read_checked(&fusee(&project).args(["show", "k", "--json"]).run().stdout, Part::Whole);
    let interrupted = |result: &&Value| result["fate"] == json!("interrupted");
    assert_eq!(of_type(&events, "tool_result").into_iter().filter(interrupted).count(), 1);
    fusee(&project).args(["replay", "k"]).run().exits(0);
}

#[test]
fn what_cannot_be_handed_over_is_told_to_the_model_and_a_template_can_be_named() {
    let part = "<task name=\"part\" type=\"atomic\"><description>A part</description>\
                <instructions>Do it.</instructions></task>";
    let project = project().with(".fusee/templates/part.xml", part);
    let script = project.script(&[
        Line::call("spawn_subtask", hand_over(json!({}))),
        Line::call("spawn_subtask", json!({"description": "Lead it all."})),
        Line::call("spawn_subtask", json!({"description": "x", "name": "prat"})),
        Line::call("spawn_subtask", json!({"description": "x", "name": "part"})),
        Line::text("By template.").matching("Do it"),
        Line::text("Done."),
    ]);
    let line =
        ["run", "Lead it all.", "--prompt", "prompt.toml", "--model", &script, "--sandbox", "off", "--json"];
    let events = fusee(&project).args(line).run().exits(0).events();
    let results: Vec<String> = of_type(&events, "tool_result")
        .iter()
        .map(|result| result["content"].as_str().unwrap().to_owned())
        .collect();
    let expected = [
        "`${language}` has no value",
        "begin each other in a circle",
        "did you mean `part`?",
        "By template.",
    ];
    assert_eq!(results.len(), expected.len(), "{results:?}");
    for (result, expected) in results.iter().zip(expected) {
        assert!(result.contains(expected), "{expected}: {result}");
    }
}

#[test]
fn a_closed_section_keeps_its_tool_and_a_wrong_prompt_is_refused_with_all_that_is_wrong() {
    let closed = PROMPT.replace(
        "kind = \"delegation\"",
        "kind = \"delegation\"\nsummary = \"Parts can be handed over.\"\nvisibility = \"summary\"",
    );
    let project = project().with("closed.toml", &closed);
    let render = |file: &str| {
        fusee(&project).args(["prompt", "render", file, "--task", "{\"request\": \"x\"}", "--format", "json"])
    };
    let shown: Value = serde_json::from_str(&render("closed.toml").run().exits(0).stdout).unwrap();
    assert_eq!(shown["tools"], json!(["open_sections"]), "a section with tools is opened, not read");
    let shown: Value =
        serde_json::from_str(&render("closed.toml").args(["--open", "delegation"]).run().exits(0).stdout)
            .unwrap();
    assert_eq!(shown["tools"], json!(["spawn_subtask"]));

    let wrong = r#"
[[sections]]
kind = "delegation"
prompt = [ { kind = "task" }, { key = "recap", title = "Recap" }, { key = "in", title = "In", body = "$ 5" } ]

[[sections]]
key = "text"
title = "Text"
prompt = []
"#;
    let project = Project::new().with("wrong.toml", wrong);
    let refused = fusee(&project).args(["prompt", "render", "wrong.toml"]).run().exits(1);
    for problem in [
        "section `delegation`: a prompt can have only one task section, found 2",
        "section `delegation/recap`: a sibling section already has this key",
        "section `delegation/in`: body: `$ 5` on line 1 is not a valid placeholder",
        "section `text`: `prompt` is only allowed in a section of kind \"delegation\"",
    ] {
        assert!(refused.stderr.contains(problem), "{problem}: {}", refused.stderr);
    }
}
