//! Commands of a project that are Markdown files.

use fusee_testkit::events::of_type;
use fusee_testkit::project::Project;
use fusee_testkit::script::Line;
use serde_json::{Value, json};

use crate::support::{at_terminal, fusee};

fn project() -> Project {
    Project::new()
        .with(
            ".fusee/commands/fix.md",
            "---\ndescription: Fix an issue\n---\nFix issue $1 with priority $2.\n",
        )
        .with(".claude/commands/tidy.md", "Tidy up: $ARGUMENTS\n\n!`touch ran`\n! touch ran\n")
}

fn request(project: &Project, line: &str) -> (String, Vec<Value>) {
    let script = project.script(&[Line::text("Done.")]);
    let events = fusee(project).args(["run", line, "--json", "--model", &script]).run().exits(0).events();
    (events[0]["request"].as_str().unwrap().to_owned(), events)
}

#[test]
fn a_command_stands_for_its_text_and_runs_nothing() {
    let project = project();
    assert_eq!(request(&project, "/fix 12 'very high'").0, "Fix issue 12 with priority very high.");
    let (text, events) = request(&project, "/tidy the tests");
    assert_eq!(text, "Tidy up: the tests\n\n!`touch ran`\n! touch ran");
    assert!(of_type(&events, "tool_call").is_empty());
    assert!(!project.dir().join("ran").exists());
    // Everything else is a request as before.
    for line in ["/nothing here", "/usr/bin/env is missing", "fix 12"] {
        assert_eq!(request(&project, line).0, line);
    }
}

#[test]
fn the_chat_lists_and_runs_them() {
    let project = project();
    let script = project.script(&[Line::text("Fixed.").matching("Fix issue 7 with priority low")]);
    let chat =
        fusee(&project).args(["--plain", "--model", &script]).stdin("/help\n/fix 7 low\n/quit\n").run();
    let said = format!("{}{}", chat.stdout, chat.stderr);
    assert!(said.contains("/fix") && said.contains("Fix an issue") && said.contains("Fixed."), "{said}");
}

#[test]
fn typing_a_slash_completes_them() {
    let project = project();
    let script = project.script(&[Line::text("Done.")]);
    let mut chat = at_terminal(&project, &format!("--model {script}"));
    chat.wait_for_stdout("the prompt", |said| said.contains('>'));
    chat.type_in("/tid");
    chat.wait_for_stdout("the candidate", |said| said.contains("/tidy"));
    chat.type_in("\u{15}/quit\r");
    chat.wait();
}

#[test]
fn a_command_of_the_product_is_not_replaced() {
    let project = Project::new().with(".fusee/commands/task.md", "Not this.\n");
    let ended = fusee(&project).args(["run", "/task (+ 1 2)", "--json"]).run().exits(0);
    assert!(ended.stdout.contains('3') && !ended.stdout.contains("Not this"), "{}", ended.stdout);
    assert_ne!(json!(ended.stdout), json!(""));
}
