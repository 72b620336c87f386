//! Tasks with a prompt file: sections that the model reads and expands while it works.

use fusee_testkit::events::of_type;
use fusee_testkit::project::{Command, Project};
use fusee_testkit::script::Line;
use fusee_testkit::server::{Message, Script, Server};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{REQUEST, fusee, run, run_json, run_on, with_key};

const PROMPT: &str = r#"
[[sections]]
key = "guide"
title = "Guide"
body = "Work with care."

[[sections]]
key = "reference"
title = "Reference"
body = "The secret word is ${word}."
summary = "A word is kept here."
visibility = "summary"
params = { word = "marmalade" }
sections = [ { key = "more", title = "More", body = "And jam.", summary = "Jam.", visibility = "summary" } ]

[[sections]]
kind = "task"
"#;

fn project() -> Project {
    Project::new().with("prompt.toml", PROMPT)
}

fn prompted<'p>(project: &'p Project, server: &Server) -> Command<'p> {
    run_on(project, server).args(["--prompt", "prompt.toml"])
}

fn open(keys: &[&str]) -> Message {
    Message::call("open_sections", json!({"section_keys": keys, "reason": "I need the word"}))
}

fn tools(body: &Value) -> Vec<&str> {
    body["tools"].as_array().unwrap().iter().filter_map(|tool| tool["function"]["name"].as_str()).collect()
}

fn bodies(server: &Server) -> Vec<Value> {
    server.requests().iter().map(|request| request.arrived.json()).collect()
}

#[test]
fn reading_a_section_keeps_every_byte_that_was_sent() {
    let project = project();
    let read = Message::call("read_section", json!({"section_key": "reference"}));
    let server = Server::start([read, Message::text("Marmalade.")].into_iter().collect::<Script>());
    let events = prompted(&project, &server).run().exits(0).events();
    assert_eq!(
        of_type(&events, "tool_result")[0]["content"],
        json!("## 2. Reference\n\nThe secret word is marmalade.\n\n### 2.1. More\n\nAnd jam.")
    );
    let requests = server.requests();
    let messages: Vec<Vec<String>> = requests.iter().map(|request| request.arrived.messages()).collect();
    assert_eq!(messages[1][..messages[0].len()], messages[0]);
    let rest = |n: usize| {
        let mut body = requests[n].arrived.json();
        body["messages"] = Value::Null;
        body.to_string()
    };
    assert_eq!(rest(0), rest(1));
    let body = requests[0].arrived.json();
    let names = tools(&body);
    assert_eq!(names[names.len() - 2..], ["read_section", "open_sections"]);
    let shown = fusee(&project)
        .args(["prompt", "render", "prompt.toml", "--task", &json!({ "request": REQUEST }).to_string()])
        .run()
        .exits(0);
    assert_eq!(format!("{}\n", body["messages"][0]["content"].as_str().unwrap()), shown.stdout);
}

#[test]
fn opening_shows_the_prompt_anew_and_leaves_the_conversation_as_it_was() {
    let project = project();
    let replies = [open(&["reference.more", "guide"]), Message::text("Marmalade.")];
    let server = Server::start(replies.into_iter().collect::<Script>());
    let events = prompted(&project, &server).args(["--run-id", "opened"]).run().exits(0).events();
    let expansion = of_type(&events, "expansion")[0];
    assert_eq!(
        (&expansion["section_keys"], &expansion["reason"], &expansion["opened"]),
        (&json!(["reference.more"]), &json!("I need the word"), &json!(["reference", "reference.more"]))
    );
    let bodies = bodies(&server);
    assert_eq!(
        bodies[1]["messages"][0]["content"],
        json!(format!(
            "## 1. Guide\n\nWork with care.\n\n## 2. Reference\n\nThe secret word is marmalade.\n\n### 2.1. More\n\n\
             And jam.\n\n## 3. Task\n\n**Expansion Context:** Sections expanded: `reference.more`. Reason: I need \
             the word. Continue with your task using the newly visible content.\n\n---\n\n{REQUEST}"
        ))
    );
    assert_eq!(bodies[1]["messages"][1], bodies[0]["messages"][1]);
    let names = tools(&bodies[1]);
    assert!(!names.contains(&"open_sections") && !names.contains(&"read_section"), "{names:?}");
    fusee(&project).args(["replay", "opened"]).run().exits(0);
}

#[test]
fn what_cannot_be_opened_is_answered_and_the_task_goes_on() {
    let project = project();
    let open = |keys: Value| Line::call("open_sections", json!({"section_keys": keys, "reason": "why"}));
    let script = project.script(&[
        open(json!(["refrence"])),
        open(json!([])),
        open(json!(["guide"])),
        Line::call("read_section", json!({"section_key": "guide"})),
        Line::call("open_sections", json!({"section_keys": ["reference"]})),
        Line::text("Done."),
    ]);
    let events = run_json(&project, &script).args(["--prompt", "prompt.toml"]).run().exits(0).events();
    let answers: Vec<&str> =
        of_type(&events, "tool_result").iter().map(|result| result["content"].as_str().unwrap()).collect();
    assert_eq!(answers[0], "There is no section `refrence`. Did you mean `reference`?");
    assert_eq!(answers[1], "`section_keys` is empty: name the sections to open");
    assert_eq!(answers[2], "Nothing to open: `guide` is shown in full already.");
    assert_eq!(answers[3], "section `guide`: it is shown in full in the prompt already");
    assert!(answers[4].contains("reason"), "{}", answers[4]);
    assert_eq!(of_type(&events, "expansion").len(), 0);
}

#[test]
fn ten_expansions_are_the_most() {
    let section = |n: usize| {
        format!(
            "[[sections]]\nkey = \"s{n}\"\ntitle = \"S\"\nbody = \"text {n}\"\nsummary = \"s\"\nvisibility = \"summary\"\n"
        )
    };
    let text: String = (0..12).map(section).collect();
    let project = Project::new().with("prompt.toml", &text);
    let open =
        |n: usize| Line::call("open_sections", json!({"section_keys": [format!("s{n}")], "reason": "next"}));
    let lines: Vec<Line> = (0..11).map(open).chain([Line::text("Enough.")]).collect();
    let script = project.script(&lines);
    let events = run_json(&project, &script).args(["--prompt", "prompt.toml"]).run().exits(0).events();
    assert_eq!(of_type(&events, "expansion").len(), 10);
    let last = of_type(&events, "tool_result")[10];
    assert_eq!(last["ok"], json!(false));
    assert_eq!(
        last["content"],
        json!("This task has opened sections 10 times, which is the most. Go on with what you see.")
    );
}

#[test]
fn a_section_larger_than_the_context_is_read_in_part_and_not_opened() {
    let body = "0123456789 ".repeat(1_000_000);
    let text =
        format!("[[sections]]\nkey='big'\ntitle='Big'\nbody='{body}'\nsummary='s'\nvisibility='summary'\n");
    let project = Project::new().with("prompt.toml", &text);
    let script = project.script(&[
        Line::call("open_sections", json!({"section_keys": ["big"], "reason": "all of it"})),
        Line::call("read_section", json!({"section_key": "big"})),
        Line::text("Enough."),
    ]);
    let events = run_json(&project, &script).args(["--prompt", "prompt.toml"]).run().exits(0).events();
    let results = of_type(&events, "tool_result");
    assert!(
        results[0]["content"].as_str().unwrap().starts_with("Not opened: it would add 10999"),
        "{results:#?}"
    );
    assert_eq!((&results[1]["ok"], &results[1]["truncated"]), (&json!(true), &json!(true)));
}

#[test]
fn opened_sections_outlive_a_kill_a_compaction_and_the_run() {
    let project = project();
    let wait = Message::call("shell", json!({"command": "echo begun >> effects.txt; sleep 60"}));
    let noise = |n: usize| Message::call("shell", json!({"command": format!("seq {n} 3000")}));
    let noises = (1..6).map(noise);
    let replies = [open(&["reference"]), wait].into_iter().chain(noises);
    let replies = replies.chain([Message::text("Marmalade."), Message::text("Still marmalade.")]);
    let server = Server::start(replies.collect::<Script>());
    let limits = ["--run-id", "killed", "--max-tokens", "12000"];
    let mut running = prompted(&project, &server).args(limits).start();
    while project.read("effects.txt").is_empty() {
        assert!(running.is_running());
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    running.signal(Signal::KILL);
    assert!(running.wait().was_killed());
    let resumed = with_key(fusee(&project).args(["resume", "killed", "--json"])).run().exits(0);
    assert!(!of_type(&resumed.events_after_resume(), "compaction").is_empty());
    let system = |body: &Value| body["messages"][0]["content"].as_str().unwrap().to_owned();
    let sent = bodies(&server);
    assert!(sent[2..].iter().all(|body| system(body).contains("marmalade")));
    fusee(&project).args(["replay", "killed"]).run().exits(0);
    let next = fusee(&project).args(["run", "Sure?", "--continue", "--sandbox", "off", "--json"]);
    let next = next.args(["--api", "chat", "--base-url", &server.base_url()]);
    with_key(next).run().exits(0);
    let system = system(bodies(&server).last().unwrap());
    assert!(system.contains("marmalade") && system.ends_with("## 3. Task\n\nSure?"), "{system}");
    assert!(!system.contains("Expansion Context"), "{system}");
}

#[test]
fn a_prompt_that_is_wrong_is_told_before_anything_runs() {
    let project = Project::new().with("prompt.toml", "[[sections]]\nkey='a b'\ntitle=''\nbody='$ 5'\n");
    let script = project.script(&[Line::text("never")]);
    let wrong = run(&project, &script).args(["--prompt", "prompt.toml"]).run().exits(2);
    assert!(wrong.stderr.contains("a b") && wrong.stderr.contains("prompt.toml"), "{}", wrong.stderr);
    project.write("prompt.toml", "[[sections]]\nkey='a'\ntitle='A'\nbody='x'\nsummary='${who}'\n");
    project.write(
        "late.toml",
        "[[sections]]\nkey='a'\ntitle='A'\nbody='${who}'\nsummary='s'\nvisibility='summary'\n",
    );
    // Also checks sections that are only shown after an expansion.
    let late = run(&project, &script).args(["--prompt", "late.toml"]).run().exits(2);
    assert!(late.stderr.contains("`${who}` has no value"), "{}", late.stderr);
    let missing = run(&project, &script).args(["--prompt", "nowhere.toml"]).run().exits(2);
    assert!(missing.stderr.contains("nowhere.toml"), "{}", missing.stderr);
    assert!(!project.journal().exists() || fusee(&project).args(["runs"]).run().stdout.is_empty());
}
