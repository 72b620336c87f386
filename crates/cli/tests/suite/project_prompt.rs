//! Prompt additions from a project's files in a plain run: skills, overrides, instructions, a planning
//! strategy.

use std::os::unix::fs::symlink;

use fusee_testkit::events::of_type;
use fusee_testkit::project::Project;
use fusee_testkit::server::{Message, Script, Server};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{fusee, run_on, with_key};

const SKILL: &str = "---\nname: Release notes\ndescription: >\n  How notes for a release\n  are written here.\nlicense: MIT\n---\n# Notes\n\nOne line a change. The word is $marmalade.\n";

fn served(replies: impl IntoIterator<Item = Message>) -> Server {
    Server::start(replies.into_iter().collect::<Script>())
}

fn bodies(server: &Server) -> Vec<Value> {
    server.requests().iter().map(|request| request.arrived.json()).collect()
}

fn system(body: &Value) -> String {
    body["messages"][0]["content"].as_str().unwrap().to_owned()
}

fn warnings(events: &[Value]) -> Vec<String> {
    of_type(events, "warning")
        .iter()
        .filter(|event| event["code"] == json!("prompt_file"))
        .map(|event| event["message"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn a_skill_is_a_summary_until_it_is_opened_also_after_a_kill_and_in_the_next_run() {
    let project = Project::new().with(".fusee/skills/notes/SKILL.md", SKILL);
    let open = json!({"section_keys": ["skills.notes"], "reason": "to write notes"});
    let server = served([
        Message::call("open_sections", open),
        Message::call("shell", json!({"command": "echo begun >> effects.txt; sleep 60"})),
        Message::text("Written."),
        Message::text("Still there."),
    ]);
    let mut running = run_on(&project, &server).args(["--run-id", "skilled"]).start();
    while project.read("effects.txt").is_empty() {
        assert!(running.is_running());
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    running.signal(Signal::KILL);
    assert!(running.wait().was_killed());
    // The session keeps what it found, even if the file is gone.
    std::fs::remove_file(project.dir().join(".fusee/skills/notes/SKILL.md")).unwrap();
    with_key(fusee(&project).args(["resume", "skilled", "--json"])).run().exits(0);
    fusee(&project).args(["replay", "skilled"]).run().exits(0);
    let next = fusee(&project).args(["run", "Sure?", "--continue", "--sandbox", "off", "--json"]);
    with_key(next.args(["--api", "chat", "--base-url", &server.base_url()])).run().exits(0);
    let bodies = bodies(&server);
    assert!(
        system(&bodies[0]).ends_with(
            "### 3.1. Release notes\n\nHow notes for a release are written here.\n\n---\n[Summary only. To see all of \
             it, call `open_sections` with key `skills.notes`.]"
        ),
        "{}",
        system(&bodies[0])
    );
    for body in &bodies[1..] {
        assert!(
            system(body).ends_with(
                "### 3.1. Release notes\n\n(The files of this skill are in .fusee/skills/notes.)\n\n# Notes\n\nOne \
                 line a change. The word is $marmalade."
            ),
            "{}",
            system(body)
        );
    }
    assert_eq!(bodies.len(), 4);
}

#[test]
fn skills_that_are_broken_have_stated_outcomes() {
    let project = Project::new()
        .with(".fusee/skills/a-open/SKILL.md", "---\nname: Open\n\nNever closed.\n")
        .with(".fusee/skills/b-bare/SKILL.md", "# Bare\n\nNo front matter at all.\n")
        .with(".fusee/skills/c-empty/SKILL.md", "  \n")
        .with(
            ".fusee/skills/d-large/SKILL.md",
            &format!("---\ndescription: Large.\n---\n{}", "0123456789 ".repeat(1_000_000)),
        );
    let skills = project.dir().join(".fusee/skills");
    symlink(&skills, skills.join("b-bare/round")).unwrap();
    symlink(".", skills.join("self")).unwrap();
    let outside = project.scratch("outside.md");
    std::fs::write(&outside, "a secret of the user").unwrap();
    std::fs::create_dir(skills.join("e-out")).unwrap();
    symlink(outside, skills.join("e-out/SKILL.md")).unwrap();
    let read = Message::call("read_section", json!({"section_key": "skills.d-large"}));
    let server = served([read, Message::text("Done.")]);
    let events = run_on(&project, &server).run().exits(0).events();
    assert_eq!(
        warnings(&events),
        [
            ".fusee/skills/a-open/SKILL.md: unterminated front matter: missing the closing `---` line",
            ".fusee/skills/a-open/SKILL.md: no `description` in the front matter; using its first paragraph",
            ".fusee/skills/b-bare/SKILL.md: no `description` in the front matter; using its first paragraph",
            "ignoring skill .fusee/skills/c-empty/SKILL.md: the file is empty",
            "ignoring skill .fusee/skills/e-out/SKILL.md: not a readable regular file inside the project",
        ]
    );
    let bodies = bodies(&server);
    let text = system(&bodies[0]);
    let headings: Vec<&str> = text.lines().filter(|line| line.starts_with("### ")).collect();
    assert_eq!(headings, ["### 3.1. a-open", "### 3.2. Bare", "### 3.3. d-large"]);
    assert!(text.contains("No front matter at all."), "{text}");
    let answer = of_type(&events, "tool_result")[0];
    assert_eq!((&answer["ok"], &answer["truncated"]), (&json!(true), &json!(true)));
    assert!(!serde_json::to_string(&bodies).unwrap().contains("a secret of the user"));
}

#[test]
fn the_stages_of_a_flow_have_the_skills_too() {
    let project = Project::new().with(".fusee/skills/notes/SKILL.md", SKILL);
    let plan = json!({"action": "create", "tasks": [{"description": "write the notes"}]});
    let server = served([
        Message::call("open_sections", json!({"section_keys": ["skills.notes"], "reason": "to write notes"})),
        Message::text("I know enough."),
        Message::call("plan_tasks", plan),
        Message::text("Planned."),
        Message::call("write_file", json!({"path": "notes.md", "content": "x"})),
        Message::text("Written."),
        Message::call("plan_tasks", json!({"action": "list"})),
        Message::text("It is all there."),
    ]);
    run_on(&project, &server).args(["--flow", "staged3", "--run-id", "staged"]).run().exits(0);
    let next = fusee(&project).args(["run", "Go on.", "--continue", "--sandbox", "off", "--json"]);
    let next = next.args(["--api", "chat", "--base-url", &server.base_url()]);
    let events = with_key(next).run().exits(0).events();
    let listed = of_type(&events, "tool_result")[0];
    assert_eq!(listed["content"], json!("[ ] 1. write the notes"), "the plan is the session's");
    fusee(&project).args(["replay", "staged"]).run().exits(0);
    let bodies = bodies(&server);
    for (n, body) in bodies.iter().enumerate().skip(1) {
        assert!(
            system(body).contains("The word is $marmalade."),
            "closed again in request {n}: {}",
            system(body)
        );
    }
    assert!(
        system(&bodies[0]).contains("How notes for a release are written here."),
        "{}",
        system(&bodies[0])
    );
    assert!(system(&bodies[1]).contains("The word is $marmalade."), "{}", system(&bodies[1]));
}

#[test]
fn an_override_counts_for_the_text_it_was_made_for_and_no_other() {
    let project = Project::new();
    let original = fusee(&project).args(["prompt", "render", "--original", "work"]).run().exits(0).stdout;
    let (first, _) = original.split_once('\n').unwrap();
    assert!(first.starts_with("<!-- original: "), "{original}");
    project.write(".fusee/prompts/work.md", &format!("{first}\nWork as a pirate would.\n"));
    let server = served([Message::text("Arr."), Message::text("Fine.")]);
    let events = run_on(&project, &server).run().exits(0).events();
    assert_eq!(warnings(&events).len(), 0);
    let sent = system(&bodies(&server)[0]);
    assert!(
        sent.starts_with("## 1. How to Work\n\nWork as a pirate would.\n\n## 2. Environment\n"),
        "{sent}"
    );
    let shown = fusee(&project).args(["prompt", "render"]).run().exits(0);
    assert_eq!(shown.stdout, format!("{sent}\n"));

    project.write(".fusee/prompts/work.md", "<!-- original: 000000000000 -->\nWork as a pirate would.\n");
    project.write(".fusee/prompts/wrok.md", "Anything.\n");
    let events = run_on(&project, &server).run().exits(0).events();
    let output = warnings(&events);
    assert!(
        output[0].contains("ignoring override .fusee/prompts/wrok.md")
            && output[0].contains("did you mean `work`?"),
        "{output:#?}"
    );
    assert!(
        output[1].contains("work.md: it was written for another version of the original (000000000000,"),
        "{output:#?}"
    );
    assert!(output[1].contains(first), "{output:#?}");
    assert!(!system(&bodies(&server)[1]).contains("pirate"));
    let shown = fusee(&project).args(["prompt", "render"]).run().exits(0);
    assert!(shown.stderr.contains("warning: ignoring override .fusee/prompts/work.md"), "{}", shown.stderr);
    let unknown = fusee(&project).args(["prompt", "render", "--original", "wrok"]).run().exits(2);
    assert!(unknown.stderr.contains("work"), "{}", unknown.stderr);
}

#[test]
fn instructions_come_from_the_root_down_and_are_cut_at_their_bound() {
    let project = Project::new().with("AGENTS.md", "Root rules.\n").with("part/AGENTS.md", "Part rules.\n");

    let shown = fusee(&project).args(["prompt", "render", "-C", "part"]).run().exits(0).stdout;
    assert!(
        shown.ends_with("## 3. The Project's Instructions (AGENTS.md)\n\nRoot rules.\n\nPart rules.\n"),
        "{shown}"
    );
    project.write("AGENTS.md", &"word ".repeat(2_000_000));
    let shown = fusee(&project).args(["prompt", "render"]).run().exits(0).stdout;
    assert!(
        shown.len() < 30_000 && shown.ends_with("[cut here: read AGENTS.md for the rest]\n"),
        "{}",
        shown.len()
    );
}

#[test]
fn a_way_to_plan_is_a_setting_and_a_kind_of_section() {
    let project = Project::new().with("fusee.toml", "planning = \"goal-decomposition\"\n");
    let server = served([Message::text("Done.")]);
    run_on(&project, &server).run().exits(0);
    let text = system(&bodies(&server)[0]);
    assert!(text.contains("## 2. Planning\n\nTake the goal apart:"), "{text}");
    project.write("p.toml", "[[sections]]\nkind = \"planning\"\nstrategy = \"react\"\n");
    let shown =
        fusee(&project).args(["prompt", "render", "p.toml", "--format", "json"]).run().exits(0).stdout;
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["tools"], json!(["plan_tasks"]));
    assert!(
        shown["text"].as_str().unwrap().starts_with("## 1. Planning\n\nWork in small steps:"),
        "{shown:#}"
    );
    project.write("p.toml", "[[sections]]\nkey = \"a\"\ntitle = \"A\"\nbody = \"x\"\nstrategy = \"react\"\n");
    let wrong = fusee(&project).args(["prompt", "render", "p.toml"]).run().exits(1);
    assert!(
        wrong.stderr.contains("`strategy` is only allowed in a section of kind \"planning\""),
        "{}",
        wrong.stderr
    );
}

#[test]
fn the_tree_shows_what_is_open_and_what_each_part_costs() {
    let file = r#"
[[sections]]
key = "reference"
title = "Reference"
body = "Long text."
summary = "Short."
visibility = "summary"
sections = [ { key = "api", title = "API", body = "API text." } ]

[[sections]]
kind = "task"
"#;
    let project = Project::new().with("p.toml", file);
    let line = ["prompt", "render", "p.toml", "--task", r#"{"request":"Do it."}"#, "--format", "tree"];
    let tree = |open: &[&str]| fusee(&project).args(line).args(open).run().exits(0).stdout;
    let closed = tree(&[]);
    let lines: Vec<&str> = closed.lines().collect();
    assert!(
        lines[0].starts_with("▸ 1. Reference [reference]: ") && lines[0].ends_with(" when opened"),
        "{closed}"
    );
    assert!(lines[1].starts_with("  · 1.1. API [reference.api]: 0 tokens, "), "{closed}");
    assert!(lines[2].starts_with("▾ 2. Task [task]: "), "{closed}");
    assert!(lines[4].ends_with(" tokens; 1 closed, 1 inside closed ones"), "{closed}");
    assert_eq!(lines[5], "tools of the prompt: read_section, open_sections");
    let open = tree(&["--open", "reference"]);
    assert!(open.starts_with("▾ 1. Reference [reference]: ") && open.contains("  ▾ 1.1. API"), "{open}");
}
