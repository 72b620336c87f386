//! Chat input other than messages: tasks, reviews, flows, sections, the context window, undo.

use fusee_testkit::project::{Command, Project};
use fusee_testkit::script::Line;
use fusee_testkit::server::{Message, Script, Server};
use serde_json::{Value, json};

use crate::support::{fusee, with_key};

fn talk<'p>(project: &'p Project, script: &str, lines: &str) -> Command<'p> {
    fusee(project).args(["--plain", "--model", script, "--sandbox", "off"]).stdin(lines)
}

fn talk_to<'p>(project: &'p Project, server: &Server, lines: &str) -> Command<'p> {
    let command = talk(project, "openai:scripted", lines);
    with_key(command.args(["--api", "chat", "--base-url", &server.base_url()]))
}

fn replies<const N: usize>(texts: [&str; N]) -> Server {
    Server::start(texts.into_iter().map(Message::text).collect::<Script>())
}

/// Messages of each request, without the system prompt.
fn asked(server: &Server) -> Vec<Vec<(String, String)>> {
    let requests = server.requests().into_iter();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    requests
        .map(|request| {
            let body: Value = request.arrived.json();
            let messages = body["messages"].as_array().unwrap().iter().skip(1);
            messages.map(|message| (text(&message["role"]), text(&message["content"]))).collect()
        })
        .collect()
}

fn newest(project: &Project) -> String {
    let listed = fusee(project).args(["runs", "--json"]).run().exits(0).stdout;
    let runs: Vec<Value> = serde_json::from_str(&listed).unwrap();
    runs[0]["run"].as_str().unwrap().to_owned()
}

#[test]
fn a_task_is_part_of_the_conversation_around_it() {
    let template = "<task name=\"greet\" type=\"atomic\"><description>Greets</description>\
        <inputs><input name=\"who\"/></inputs><instructions>Greet {{who}}.</instructions></task>";
    let project = Project::new().with(".fusee/templates/greet.xml", template);
    let server = replies(["Noted.", "Hello, Ann!", "Ann, and three."]);
    let lines = "remember quince\n/task greet who=Ann\n(+ 1 2)\nwhom, and what came of it?\n";
    let outcome = talk_to(&project, &server, lines).run().exits(0);
    assert_eq!(outcome.stdout, "Noted.\nHello, Ann!\n3\nAnn, and three.\n", "{}", outcome.stderr);
    let asked = asked(&server);
    // The template's conversation does not see the surrounding one.
    assert!(asked[1].last().unwrap().1.contains("Greet Ann."), "{asked:#?}");
    assert!(!format!("{:?}", asked[1]).contains("quince"));
    let said = |role: &str, text: &str| (role.to_owned(), text.to_owned());
    let expected = [
        said("user", "remember quince"),
        said("assistant", "Noted."),
        said("user", "/task greet who=Ann"),
        said("assistant", "Hello, Ann!"),
        said("user", "(+ 1 2)"),
        said("assistant", "3"),
        said("user", "whom, and what came of it?"),
    ];
    assert_eq!(asked[2], expected);
    fusee(&project).args(["replay", &newest(&project)]).run().exits(0);
}

#[test]
fn an_edited_template_is_used_at_once_and_a_broken_edit_leaves_it_as_it_was() {
    let text = |words: &str| {
        format!(
            "<task name=\"greet\" type=\"atomic\"><description>Greets</description>\
             <instructions>{words}</instructions></task>"
        )
    };
    let file = ".fusee/templates/greet.xml";
    let project = Project::new().with(file, &text("Say hello.")).with("new.xml", &text("Say goodbye."));
    let project = project.with("broken.xml", &text("Say {{nothing}}.")).with("mended.xml", &text("Say it."));
    let copied = |name: &str| {
        let command = format!("cp {name}.xml {file}");
        Message::call("shell", json!({ "command": command }))
    };
    let script = [
        Message::text("Hello!"),
        copied("new"),
        Message::text("Edited."),
        Message::text("Goodbye!"),
        copied("broken"),
        Message::text("Edited again."),
        Message::text("Goodbye again!"),
        copied("mended"),
        Message::text("Mended."),
        Message::text("It."),
    ];
    let server = Server::start(script.into_iter().collect::<Script>());
    let lines = "/task greet\nedit it\n/task greet\nbreak it\n/task greet\nmend it\n/task greet\n";
    let outcome = talk_to(&project, &server, lines).run().exits(0);
    let said = "Hello!\nEdited.\nGoodbye!\nEdited again.\nGoodbye again!\nMended.\nIt.\n";
    assert_eq!(outcome.stdout, said, "{}", outcome.stderr);
    let asked = asked(&server);
    let words: Vec<&str> = [0, 3, 6, 9].iter().map(|n| asked[*n].last().unwrap().1.as_str()).collect();
    assert_eq!(words, ["Say hello.", "Say goodbye.", "Say goodbye.", "Say it."]);
    for part in ["greet.xml:1:", "still using the version before the last edit: `greet`"] {
        assert_eq!(outcome.stderr.matches(part).count(), 1, "{part:?} in {}", outcome.stderr);
    }
}

#[test]
fn what_cannot_run_is_told_and_the_conversation_goes_on() {
    let project = Project::new();
    let script = project.script(&[Line::text("Still here.")]);
    let outcome =
        talk(&project, &script, "/task\n/task fix-tets\n(+ 1\n/review --bse x\n/flow stagd\nhello\n");
    let outcome = outcome.run().exits(0);
    assert_eq!(outcome.stdout, "Still here.\n");
    for part in ["missing task", "`fix-tests`", "workflow:1:", "'--base'", "staged"] {
        assert!(outcome.stderr.contains(part), "no {part:?} in {}", outcome.stderr);
    }
}

#[test]
fn a_review_is_asked_for_and_talked_about() {
    let project = Project::new().with("a.py", "y = 1 / 0\n");
    let finding = json!({"file": "a.py", "line": 1, "severity": "major", "claim": "It divides by zero.", "suggestion": "Check."});
    let findings = json!({ "summary": "Read a.", "findings": [finding] }).to_string();
    let server = replies([&findings, "Because zero has no inverse."]);
    let outcome = talk_to(&project, &server, "/review --focus numbers a.py\nwhy?\n").run().exits(0);
    assert!(outcome.stdout.starts_with("major: a.py:1\n  It divides by zero."), "{}", outcome.stdout);
    assert!(outcome.stdout.ends_with("Because zero has no inverse.\n"));
    let asked = asked(&server);
    assert!(asked[1].iter().any(|(_, text)| text.contains("It divides by zero.")), "{asked:#?}");
    let tools = |n: usize| server.requests()[n].arrived.json()["tools"].to_string();
    assert!(!tools(0).contains("write_file") && tools(1).contains("write_file"));
}

#[test]
fn a_flow_holds_from_the_next_message_on() {
    let project = Project::new();
    let script = project.script(&[Line::text("One."), Line::text("a.txt\n```\ntwo\n```\n")]);
    let outcome = talk(&project, &script, "/flow\none\n/flow direct\n/flow\ntwo\n").run().exits(0);
    let expected = "auto is the current flow mode\nOne.\ndirect is used starting with the next message\n\
        direct is the current flow mode\n";
    assert!(outcome.stdout.starts_with(expected), "{}", outcome.stdout);
    assert_eq!(project.read("a.txt"), "two\n");
}

const PROMPT: &str = r#"
[[sections]]
key = "guide"
title = "Guide"
body = "Work with care."

[[sections]]
key = "reference"
title = "Reference"
body = "The secret word is marmalade."
summary = "A word is kept here."
visibility = "summary"
sections = [ { key = "more", title = "More", body = "And jam.", summary = "Jam.", visibility = "summary" } ]

[[sections]]
kind = "task"
"#;

#[test]
fn a_person_opens_a_section_and_it_is_open_after_coming_back() {
    let project = Project::new().with("prompt.toml", PROMPT);
    let server = replies(["I see no word.", "Marmalade.", "Marmalade still."]);
    let lines = "what is the word?\n/sections\n/sections refrence\n/sections reference\n/sections\nnow?\n";
    let outcome = talk_to(&project, &server, lines).args(["--prompt", "prompt.toml"]).run().exits(0);
    let closed = "closed  reference  ";
    let shown: Vec<&str> = outcome.stdout.lines().collect();
    assert!(shown.iter().any(|line| line.starts_with(closed)), "{}", outcome.stdout);
    assert!(shown.contains(&"reference: open starting with the next message"), "{}", outcome.stdout);
    assert!(shown.iter().any(|line| line.starts_with("open    reference  ")), "{}", outcome.stdout);
    assert!(outcome.stderr.contains("Did you mean `reference`?"), "{}", outcome.stderr);
    let system = |n: usize| server.requests()[n].arrived.json()["messages"][0]["content"].to_string();
    assert!(!system(0).contains("marmalade") && system(1).contains("marmalade"));
    fusee(&project).args(["replay", &newest(&project)]).run().exits(0);
    talk_to(&project, &server, "and now?\n").args(["--continue"]).run().exits(0);
    assert!(system(2).contains("marmalade"));
}

#[test]
fn the_window_is_told_by_kind_and_made_shorter() {
    let long = "word ".repeat(4_000);
    let project = Project::new().with("long.txt", &long);
    let read = Message::call("read_file", json!({"path": "long.txt"}));
    let texts = ["Read.", "Two.", "Three.", "Four."].map(Message::text);
    let server = Server::start([read].into_iter().chain(texts).collect::<Script>());
    let lines = "/context\n/compact\nread it\ntwo\nthree\n/context\n/compact\nfour\n/context\n";
    let outcome = talk_to(&project, &server, lines).run().exits(0);
    let all = &outcome.stdout;
    for part in
        ["the context window is empty", "nothing to compact", "instructions (1)", "results of read_file (1)"]
    {
        assert!(all.contains(part), "no {part:?} in {all}");
    }
    assert!(all.contains("messages shrink from"), "{all}");
    let sizes: Vec<usize> =
        server.requests().iter().map(|request| request.arrived.messages().concat().len()).collect();
    assert!(sizes[4] * 2 < sizes[3], "{sizes:?}");
    let run = newest(&project);
    let shown = fusee(&project).args(["show", "--json", &run]).run().exits(0).stdout;
    let events: Vec<Value> = shown.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let kinds: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).take(2).collect();
    assert_eq!(kinds, ["task_started", "compaction"]);
    fusee(&project).args(["replay", &run]).run().exits(0);
}

#[test]
fn undo_takes_back_one_task_after_the_other() {
    let project = Project::new().with("a.txt", "one\n");
    let edit =
        |old: &str, new: &str| Line::call("edit_file", json!({"path": "a.txt", "old": old, "new": new}));
    let read = Line::call("read_file", json!({"path": "a.txt"}));
    let first = [read, edit("one", "two"), Line::text("Two.")];
    let then = [edit("two", "three"), Line::text("Three.")];
    let script = project.script(&first.into_iter().chain(then).collect::<Vec<_>>());
    let outcome = talk(&project, &script, "two\nthree\n/undo\n/undo\n/undo\n").run().exits(0);
    let expected = "Two.\nThree.\nundo  three\nwill be restored  a.txt\nundone: 1 file\nundo  two\nwill be restored  a.txt\n\
        undone: 1 file\nnothing to undo in this conversation\n";
    assert_eq!(outcome.stdout, expected, "{}", outcome.stderr);
    assert_eq!(project.read("a.txt"), "one\n");
}

#[test]
fn the_usual_prompt_has_sections_too_and_a_skill_is_opened_by_the_person() {
    let skill =
        "---\nname: Release notes\ndescription: How notes are written.\n---\nThe word is marmalade.\n";
    let project = Project::new().with(".fusee/skills/notes/SKILL.md", skill);
    let server = replies(["One.", "Two.", "Three."]);
    let lines = "/sections\n/sections skills.nots\none\n/sections skills.notes\n/sections\ntwo\nthree\n";
    let outcome = talk_to(&project, &server, lines).run().exits(0);
    let rows: Vec<&str> = outcome.stdout.lines().collect();
    assert!(
        rows[0].starts_with("open    work  ") && rows[0].ends_with(" · How to Work"),
        "{}",
        outcome.stdout
    );
    assert!(rows[3].starts_with("closed    notes  "), "{}", outcome.stdout);
    assert!(outcome.stderr.contains("Did you mean `skills.notes`?"), "{}", outcome.stderr);
    assert!(rows.contains(&"skills.notes: open starting with the next message"), "{}", outcome.stdout);
    assert!(rows.iter().any(|row| row.starts_with("open      notes  ")), "{}", outcome.stdout);
    let system = |n: usize| server.requests()[n].arrived.json()["messages"][0]["content"].to_string();
    let open: Vec<bool> = (0..3).map(|n| system(n).contains("marmalade")).collect();
    assert_eq!(open, [false, true, true]);
    fusee(&project).args(["replay", &newest(&project)]).run().exits(0);
}

#[test]
fn a_plan_is_changed_by_the_person_and_the_model_is_told() {
    let project = Project::new()
        .with("plan.md", "[x] 1. look\n    goal: know\n[ ] write a test\n")
        .with("wrong.md", "[ ] 1.\n");
    let plan = json!({"action": "create", "tasks": [{"description": "look"}, {"description": "mend"}]});
    let list = || Message::call("plan_tasks", json!({"action": "list"}));
    let script = [
        Message::call("plan_tasks", plan),
        Message::text("Planned."),
        list(),
        Message::text("Seen."),
        list(),
        Message::text("Seen again."),
    ];
    let server = Server::start(script.into_iter().collect::<Script>());
    let lines = "plan it\n/plan\n/plan edit\n/plan edit wrong.md\n/plan edit plan.md\n/plan edit plan.md\nwhat now?\nand now?\n/plan\n";
    let outcome = talk_to(&project, &server, lines).run().exits(0);
    let changed = "[x] 1. look Goal: know.\n[ ] 3. write a test\n";
    let expected = format!(
        "Planned.\n[ ] 1. look\n[ ] 2. mend\n{changed}edited by you; sent to the model with the next message\n\
         plan unchanged\nSeen.\nSeen again.\n{changed}"
    );
    assert_eq!(outcome.stdout, expected, "{}", outcome.stderr);
    assert!(outcome.stderr.contains("/plan edit FILE reads the plan from a file"), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("line 1: task 1 has no description"), "{}", outcome.stderr);
    let asked = asked(&server);
    let output = format!("what now?\n\n**I have changed the plan. It is now:**\n{}", changed.trim_end());
    assert!(asked[2].contains(&("user".to_owned(), output)), "{asked:#?}");
    assert!(asked[4].contains(&("user".to_owned(), "and now?".to_owned())), "{asked:#?}");
    let listed: Vec<&str> =
        asked[5].iter().filter(|(role, _)| role == "tool").map(|(_, text)| text.as_str()).collect();
    assert_eq!(listed[1..], [changed.trim_end(), changed.trim_end()]);
    fusee(&project).args(["replay", &newest(&project)]).run().exits(0);
}
