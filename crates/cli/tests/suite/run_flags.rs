//! Flags of `fusee run` when the request turns out to be a template or a workflow: each applies, or is
//! rejected with a reason.

use fusee_testkit::events::of_type;
use fusee_testkit::project::{Command, Project};
use fusee_testkit::script::Line;
use serde_json::json;

use crate::support::fusee;

const WRITE: &str = "(write_file (path \"a.txt\") (content \"x\"))";

fn project() -> Project {
    let text = "<task name=\"t\" type=\"atomic\"><description>Do it</description><instructions>Do it.</instructions></task>";
    Project::new().with(".fusee/templates/t.xml", text)
}

fn run<'p>(project: &'p Project, model: &str, words: &[&str]) -> Command<'p> {
    fusee(project).args(["run", "--model", model, "--sandbox", "off", "--json"]).args(words)
}

#[test]
fn review_restricts_the_task_of_a_template() {
    let project = project();
    let model = project.script(&[
        Line::call("write_file", json!({"path": "a.txt", "content": "x"})),
        Line::text("I could not."),
    ]);
    let events = run(&project, &model, &["/task t", "--review"]).run().exits(0).events();
    assert_eq!(of_type(&events, "task_started")[0]["turn_type"], "review");
    assert_eq!(of_type(&events, "tool_result")[0]["ok"], false, "{events:#?}");
    assert!(!project.dir().join("a.txt").exists());
}

#[test]
fn review_restricts_the_tool_calls_of_a_workflow() {
    let project = project();
    let model = project.script(&[]);
    run(&project, &model, &[WRITE, "--review"]).run().exits(1);
    assert!(!project.dir().join("a.txt").exists());
    run(&project, &model, &[WRITE]).run().exits(0);
    assert!(project.dir().join("a.txt").exists());
}

#[test]
fn continue_gives_a_task_the_earlier_conversation() {
    let project = project();
    let first = project.script(&[Line::text("It is blue.")]);
    run(&project, &first, &["--run-id", "first", "Which colour?"]).run().exits(0);
    let second = project.script(&[Line::text("I saw it.").matching("It is blue")]);
    let asks = "(t (history_config (dict \"use_session_history\" true)))";
    let events = run(&project, &second, &["--continue=first", asks]).run().exits(0).events();
    assert_eq!(events.last().unwrap()["answer"], "I saw it.", "{events:#?}");
    let third = project.script(&[Line::text("Done.")]);
    run(&project, &third, &["--run-id", "third", "--continue=first", "/task t"]).run().exits(0);
    let fourth = project.script(&[Line::text("Done.")]);
    run(&project, &fourth, &["--run-id", "fourth", "--continue=first", "--template", "t"]).run().exits(0);
    for name in ["third", "fourth"] {
        let stored = fusee(&project).args(["runs", "export", name]).run().exits(0);
        assert!(stored.stdout.replace(' ', "").contains("\"continues\":\"first\""), "{}", stored.stdout);
    }
}

#[test]
fn a_run_to_continue_that_does_not_exist_is_an_error_whatever_the_request_is() {
    let project = project();
    let model = project.script(&[Line::text("Done."), Line::text("never")]);
    run(&project, &model, &["--run-id", "first", "Which colour?"]).run().exits(0);
    for request in [&["do it"][..], &["/task t"], &["(t)"], &["--template", "t"]] {
        let shown = run(&project, &model, request).args(["--continue", "nobody"]).run().exits(2);
        assert!(shown.stderr.contains("run `nobody` not found"), "{request:?}: {}", shown.stderr);
    }
}

#[test]
fn an_agent_file_applies_to_a_task() {
    let project = project();
    let model = project.script(&[Line::text("From the agent file.")]);
    let project = project.with("agent.toml", &format!("model = {model:?}\n"));
    let words = ["run", "--sandbox", "off", "--agent", "agent.toml", "/task t"];
    let shown = fusee(&project).args(words).run().exits(0);
    assert_eq!(shown.stdout, "From the agent file.\n");
}

#[test]
fn flags_that_mean_nothing_for_a_task_are_rejected_with_a_reason() {
    let project = project().with("p.md", "# Task\n").with("s.json", "{}");
    let model = project.script(&[Line::text("never")]);
    for flags in [
        &["--prompt", "p.md"][..],
        &["--background", "x"],
        &["--output-schema", "s.json"],
        &["--flow", "staged"],
        &["--verify", "true"],
        &["--benchmark"],
        &["--serve"],
    ] {
        for request in [&["/task t"][..], &["(+ 1 2)"], &["--template", "t"]] {
            let shown = run(&project, &model, flags).args(request).run().exits(2);
            let said = format!("error: {} cannot be used with a task: ", flags[0]);
            assert!(shown.stderr.contains(&said), "{flags:?} {request:?}: {}", shown.stderr);
            assert!(shown.stderr.contains("help: "), "{}", shown.stderr);
        }
    }
}

#[test]
fn a_variable_for_benchmarks_is_rejected_with_a_task_and_leaves_a_review_alone() {
    let project = project();
    let model = project.script(&[Line::text("never")]);
    for variable in ["FUSEE_BENCHMARK", "LOCALCODE_BENCHMARK"] {
        for request in
            [&["run", "/task t"][..], &["run", "(+ 1 2)"], &["run", "--template", "t"], &["task", "t"]]
        {
            let command = fusee(&project).args(request).args(["--model", &model, "--sandbox", "off"]);
            let shown = command.env(variable, "1").run().exits(2);
            let said = format!("error: {variable} cannot be used with a task: ");
            assert!(shown.stderr.contains(&said), "{request:?}: {}", shown.stderr);
        }
    }
    let findings = project.script(&[Line::text(r#"{"summary":"Fine.","findings":[]}"#)]);
    let review = fusee(&project).args(["review", "--model", &findings, "--sandbox", "off"]);
    let shown = review.env("LOCALCODE_BENCHMARK", "1").run().exits(0);
    assert_eq!(shown.stdout, "Fine.\n\nno findings\n");
}
