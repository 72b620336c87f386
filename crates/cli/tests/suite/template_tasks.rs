//! `fusee task NAME`: a template from its inputs to its result, with a scripted model and the real tools.

use fusee_testkit::events::{of_type, outline};
use fusee_testkit::project::{Command, Project};
use fusee_testkit::script::Line;
use serde_json::{Value, json};

use crate::support::fusee;

fn task<'p>(project: &'p Project, model: &str, words: &[&str]) -> Command<'p> {
    fusee(project).args(["task"]).args(words).args(["--model", model, "--sandbox", "off"])
}

fn result(project: &Project, lines: &[Line], words: &[&str], exit: i32) -> Value {
    let shown = task(project, &project.script(lines), words).args(["--json"]).run().exits(exit);
    serde_json::from_str(&shown.stdout).unwrap()
}

fn with_template(inner: &str) -> Project {
    let text = format!("<task name=\"t\" type=\"atomic\"><description>Do it</description>{inner}</task>");
    Project::new().with(".fusee/templates/t.xml", &text)
}

const GREET: &str = "<inputs><input name=\"who\"/><input name=\"times\" type=\"number\" default=\"1\"/></inputs>\
    <instructions>Greet {{who}}, {{times}} times.</instructions>";

#[test]
fn a_template_runs_with_its_inputs_and_prints_its_answer() {
    let project = with_template(GREET);
    let model = project.script(&[Line::text("Hello!").matching("Greet Ann B, 3 times")]);
    let shown = task(&project, &model, &["t", "who=Ann B", "times=3"]).run().exits(0);
    assert_eq!(shown.stdout, "Hello!\n");
}

#[test]
fn the_result_is_one_object_with_all_notes() {
    let project = with_template(GREET);
    let result = result(&project, &[Line::text("Hello!").usage(10, 2)], &["t", "who=Ann"], 0);
    assert_eq!(
        result,
        json!({
            "status": "COMPLETE",
            "content": "Hello!",
            "notes": {
                "template_used": "t", "context_source": "none", "context_files_count": 0,
                "execution_path": "template",
                "metrics": {"turns": 1, "input_tokens": 10, "output_tokens": 2},
            }
        })
    );
}

#[test]
fn wrong_inputs_are_all_told_before_a_token_is_spent() {
    let project = with_template(GREET);
    let result = result(&project, &[], &["t", "whom=Ann", "times=many"], 2);
    let error = &result["notes"]["error"];
    assert_eq!((&result["status"], &error["reason"]), (&json!("FAILED"), &json!("input_validation_failure")));
    let message = error["message"].as_str().unwrap();
    for part in ["`who` (string) is missing", "did you mean `who`?", "`times` takes a value of type number"] {
        assert!(message.contains(part), "{message}");
    }
    assert!(!project.journal().exists());
}

#[test]
fn an_unknown_template_is_wrong_usage_with_near_names() {
    let project = with_template(GREET);
    let result = result(&project, &[], &["summarize"], 2);
    assert_eq!(result["notes"]["error"]["reason"], "template_not_found");
    assert!(result["notes"]["error"]["message"].as_str().unwrap().contains("`summarise`"), "{result}");
}

#[test]
fn json_is_parsed_and_its_faults_are_told_apart() {
    let format = |schema: &str| {
        with_template(&format!(
            "<instructions>x</instructions><output_format type=\"json\" schema=\"{schema}\"/>"
        ))
    };
    let good = result(&format("object"), &[Line::text("```json\n{\"a\": [1]}\n```")], &["t"], 0);
    assert_eq!((&good["status"], &good["parsedContent"]), (&json!("COMPLETE"), &json!({"a": [1]})));
    assert_eq!(good["content"], "```json\n{\"a\": [1]}\n```");
    let any = with_template("<instructions>x</instructions><output_format type=\"json\"/>");
    let bad = result(&any, &[Line::text("no json")], &["t"], 0);
    assert_eq!((&bad["status"], &bad["content"]), (&json!("COMPLETE"), &json!("no json")));
    assert!(bad["notes"]["parseError"].is_string(), "{bad}");
    assert!(bad.get("parsedContent").is_none(), "{bad}");
    let twice = [Line::text("[\"a\", 1]"), Line::text("[\"a\", 1]")];
    let other = result(&format("string[]"), &twice, &["t"], 1);
    let error = &other["notes"]["error"];
    assert_eq!((&other["status"], &error["reason"]), (&json!("FAILED"), &json!("output_format_failure")));
    assert_eq!(error["cause"]["location"], "/1");
    assert_eq!(other["content"], "[\"a\", 1]");
}

#[test]
fn a_json_schema_file_is_held() {
    let project = with_template(
        "<instructions>x</instructions><output_format type=\"json\" schema=\"s.json\"/>",
    )
    .with("s.json", r#"{"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}"#);
    assert_eq!(result(&project, &[Line::text("{\"n\": 1}")], &["t"], 0)["parsedContent"], json!({"n": 1}));
    let failed = result(&project, &[Line::text("{}"), Line::text("{}")], &["t"], 1);
    assert_eq!(failed["notes"]["error"]["cause"]["error_type"], "schema_violation");
}

#[test]
fn files_of_every_source_are_in_the_prompt() {
    let files = |project: Project| {
        project
            .with("src/parser.rs", "//! Reads expressions.\nfn parse() {}\n")
            .with("b.txt", "the letter b\n")
    };
    let literal =
        files(with_template("<instructions>x</instructions><file_paths><path>b.txt</path></file_paths>"));
    let done =
        result(&literal, &[Line::text("ok").matching("## File b.txt[\\s\\S]*the letter b")], &["t"], 0);
    assert_eq!(
        (&done["notes"]["context_source"], &done["notes"]["context_files_count"]),
        (&json!("files"), &json!(1))
    );
    let command = files(with_template(
        "<instructions>x</instructions><file_paths source=\"command\"><command>echo b.txt; echo src/parser.rs</command></file_paths>",
    ));
    let done =
        result(&command, &[Line::text("ok").matching("the letter b[\\s\\S]*Reads expressions")], &["t"], 0);
    assert_eq!(done["notes"]["context_files_count"], 2);
    let described = files(with_template(
        "<instructions>x</instructions><file_paths source=\"description\"><description>parse expressions</description></file_paths>",
    ));
    let done = result(&described, &[Line::text("ok").matching("## File src/parser.rs")], &["t"], 0);
    assert_eq!(done["notes"]["context_files_count"], 1);
    let fresh = files(with_template(
        "<inputs><input name=\"about\"/></inputs><instructions>{{about}}</instructions><context_management>\
         <inherit_context>none</inherit_context><fresh_context>enabled</fresh_context></context_management>",
    ));
    let done =
        result(&fresh, &[Line::text("ok").matching("## File src/parser.rs")], &["t", "about=expressions"], 0);
    assert_eq!(done["notes"]["context_source"], "fresh");
    let missing =
        with_template("<instructions>x</instructions><file_paths><path>gone.txt</path></file_paths>");
    let failed = result(&missing, &[], &["t"], 1);
    assert_eq!(failed["notes"]["error"]["reason"], "context_retrieval_failure");
}

#[test]
fn contradicting_settings_of_the_context_name_their_layers() {
    let project = with_template(
        "<instructions>x</instructions><context_management><fresh_context>enabled</fresh_context></context_management>",
    );
    let failed = result(&project, &[], &["t"], 2);
    let message = failed["notes"]["error"]["message"].as_str().unwrap();
    assert!(message.contains("set by the template") && message.contains("subtype `standard`"), "{message}");
}

#[test]
fn tools_and_limits_are_those_of_the_template() {
    let project =
        with_template("<instructions>x</instructions><tools allow=\"read_file\"/><limits max_turns=\"2\"/>")
            .with("a.txt", "a\n");
    let lines = [
        Line::call("write_file", json!({"path": "b.txt", "content": "b"})),
        Line::call("read_file", json!({"path": "a.txt"})),
    ];
    let failed = result(&project, &lines, &["t"], 3);
    let error = &failed["notes"]["error"];
    assert_eq!((&error["type"], &error["reason"]), (&json!("RESOURCE_EXHAUSTION"), &json!("turns")));
    assert_eq!(error["metrics"]["turns"], 2);
    assert_eq!(project.read("b.txt"), "");
}

#[test]
fn a_refused_and_an_unreachable_model_are_told_apart() {
    let project = with_template(GREET);
    let refused = result(&project, &[Line::error(401, "no such key")], &["t", "who=Ann"], 1);
    assert_eq!(refused["notes"]["error"]["reason"], "llm_error");
    let blocked = result(
        &project,
        &[Line::call("finish", json!({"status": "blocked", "summary": "no"}))],
        &["t", "who=Ann"],
        1,
    );
    assert_eq!(blocked["status"], "FAILED");
}

#[test]
fn a_task_may_ask_for_a_further_one() {
    let project = with_template(GREET)
        .with(".fusee/templates/u.xml", "<task name=\"u\" type=\"atomic\"><description>Other</description><instructions>Begin.</instructions></task>");
    let ask = r#"{"status": "CONTINUATION", "notes": {"subtask_request": {"type": "atomic", "name": "t", "inputs": {"who": "Bo"}}}}"#;
    let done = result(
        &project,
        &[Line::text(ask).matching("Begin"), Line::text("Hi Bo").matching("Greet Bo")],
        &["u"],
        0,
    );
    assert_eq!((&done["status"], &done["content"]), (&json!("COMPLETE"), &json!("Hi Bo")));
    assert_eq!(done["notes"]["metrics"]["turns"], 2);
    let failed = result(&project, &[Line::text(ask), Line::error(400, "bad")], &["u"], 1);
    let error = &failed["notes"]["error"];
    assert_eq!(
        (&error["reason"], &error["cause"]["reason"]),
        (&json!("subtask_failure"), &json!("llm_error"))
    );
    let circle = r#"{"status": "CONTINUATION", "notes": {"subtask_request": {"name": "u"}}}"#;
    let failed = result(&project, &[Line::text(circle)], &["u"], 1);
    assert_eq!(failed["notes"]["error"]["cause"]["reason"], "execution_halted");
}

#[test]
fn subtasks_are_events_inside_those_of_the_main_task_and_replay() {
    let project = with_template(GREET)
        .with(".fusee/templates/u.xml", "<task name=\"u\" type=\"atomic\"><description>Other</description><instructions>Begin.</instructions></task>");
    let ask =
        r#"{"status": "CONTINUATION", "notes": {"subtask_request": {"name": "t", "inputs": {"who": "Bo"}}}}"#;
    let model = project.script(&[Line::text(ask), Line::text("Hi Bo")]);
    let run = fusee(&project).args([
        "run",
        "--template",
        "u",
        "--json",
        "--run-id",
        "r",
        "--model",
        &model,
        "--sandbox",
        "off",
    ]);
    let events = run.run().exits(0).events();
    let names = outline(&events);
    assert_eq!(
        (names.first().copied(), names.last().copied()),
        (Some("task_started"), Some("task_complete"))
    );
    let tasks: Vec<_> = of_type(&events, "task_complete").iter().map(|event| event["task"].clone()).collect();
    assert_eq!(tasks, [json!("main/sub-1"), json!("main")]);
    fusee(&project).args(["replay", "r"]).run().exits(0);
}

#[test]
fn a_run_that_was_cut_off_goes_on_with_the_template_it_began_with() {
    let project = with_template(GREET).with("a.txt", "a\n");
    let lines = [Line::call("read_file", json!({"path": "a.txt"})), Line::text("Hello!")];
    let model = project.script(&lines[..1]);
    task(&project, &model, &["t", "who=Ann", "--run-id", "cut", "--max-turns", "1"]).run().exits(3);
    let model = project.script(&lines);
    task(&project, &model, &["t", "who=Ann", "--run-id", "whole"]).run().exits(0);
    project.write(".fusee/templates/t.xml", "<task/>");
    let replayed = fusee(&project).args(["replay", "whole"]).run().exits(0);
    assert_eq!(replayed.stdout, "Hello!\n");
}

#[test]
fn words_run_a_clear_match_and_list_the_near_ones_otherwise() {
    let project = Project::new();
    let model = project.script(&[Line::text("Bonjour")]);
    let words = ["translate a text into another language", "text=Hello", "language=French"];
    assert_eq!(task(&project, &model, &words).run().exits(0).stdout, "Bonjour\n");
    let missing = result(&project, &[], &["translate a text into another language", "text=Hello"], 2);
    assert!(
        missing["notes"]["error"]["message"].as_str().unwrap().contains("`language` (string) is missing")
    );
    let unclear = result(&project, &[], &["tests or text"], 2);
    assert!(
        unclear["notes"]["error"]["message"].as_str().unwrap().contains("similar templates:"),
        "{unclear}"
    );
}

#[test]
fn tools_can_be_called_without_a_model() {
    let project = Project::new().with("a.txt", "the letter a\n");
    let shown = fusee(&project).args(["task", "read_file", "path=a.txt", "--json"]).run().exits(0);
    let result: Value = serde_json::from_str(&shown.stdout).unwrap();
    assert!(result["content"].as_str().unwrap().contains("the letter a"), "{result}");
    assert_eq!(result["notes"]["execution_path"], "tool");
}

#[test]
fn a_request_with_a_slash_is_dispatched_and_a_plain_one_never_is() {
    let project = with_template(GREET);
    let model = project.script(&[Line::text("Hello!").matching("Greet Ann B")]);
    let flags = ["--model", model.as_str(), "--sandbox", "off"];
    let shown = fusee(&project).args(["run", "/task t who='Ann B'"]).args(flags).run().exits(0);
    assert_eq!(shown.stdout, "Hello!\n");
    let model = project.script(&[Line::text("Fine.").matching("^Do it$")]);
    let shown = fusee(&project).args(["run", "Do it", "--model", &model, "--sandbox", "off"]).run().exits(0);
    assert_eq!(shown.stdout, "Fine.\n");
}

#[test]
fn help_and_a_dry_run_spend_nothing() {
    let project = with_template(GREET);
    let help = fusee(&project).args(["task", "--help", "t"]).run().exits(0).stdout;
    assert!(help.contains("Usage: fusee task t who=… [times=…]"), "{help}");
    let plan = fusee(&project).args(["task", "t", "who=Ann", "--dry-run"]).run().exits(0).stdout;
    assert!(plan.contains("Greet Ann, 1 times."), "{plan}");
    assert!(!project.journal().exists());
}

#[test]
fn every_shipped_template_runs() {
    let project = Project::new().with("a.py", "def f():\n    return 1\n");
    let cases: [(&[&str], &str); 8] = [
        (&["summarise", "path=a.py"], "A function."),
        (&["explain", "what=a.py"], "It returns 1."),
        (&["fix-test", "test=true"], "Nothing to fix."),
        (&["write-test", "target=a.py"], "Wrote test_a.py."),
        (&["review", "paths=[\"a.py\"]"], "[]"),
        (&["commit-message"], "Add f"),
        (&["extract-json", "text=Ann is 3", "fields=name, age"], "{\"name\": \"Ann\", \"age\": 3}"),
        (&["translate", "text=Hello", "language=French"], "Bonjour"),
    ];
    for (words, answer) in cases {
        let done = result(&project, &[Line::text(answer)], words, 0);
        assert_eq!((&done["status"], &done["content"]), (&json!("COMPLETE"), &json!(answer)), "{words:?}");
        assert!(done["notes"].get("parseError").is_none(), "{done}");
    }
}

#[test]
fn check_knows_templates_and_their_duplicates() {
    let good = "<task name=\"same\" type=\"atomic\"><description>x</description><instructions>y</instructions></task>\n";
    let project = Project::new()
        .with("t/a.xml", good)
        .with("t/b.xml", good)
        .with("t/c.xml", "<task name=\"c\" type=\"loop\">\n  <description>x</description>\n  <instructions>é {{no}}</instructions>\n</task>\n")
        .with("t/pom.xml", "<project/>");
    let shown = fusee(&project).args(["check", "t", "--format", "json"]).run().exits(1);
    let problems: Vec<Value> = serde_json::from_str(&shown.stdout).unwrap();
    let output: Vec<_> = problems
        .iter()
        .map(|p| {
            (
                p["code"].as_str().unwrap(),
                p["file"].as_str().unwrap(),
                p["line"].as_u64().unwrap(),
                p["column"].as_u64().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        output,
        [
            ("duplicate-template", "t/b.xml", 1, 13),
            ("invalid-value", "t/c.xml", 1, 22),
            ("undeclared-input", "t/c.xml", 3, 19)
        ]
    );
    assert_eq!(fusee(&project).args(["check", "t/a.xml", "--format", "json"]).run().exits(0).stdout, "[]\n");
}

#[test]
fn memory_finds_files() {
    let project =
        Project::new().with("src/net.rs", "//! Serves pages.\npub fn serve() {}\n").with("b.md", "# Bread\n");
    assert_eq!(
        fusee(&project).args(["memory", "index"]).run().exits(0).stdout,
        "2 files, 2 read, 0 removed\n"
    );
    let shown = fusee(&project).args(["memory", "query", "serving pages", "--json"]).run().exits(0);
    let answer: Value = serde_json::from_str(&shown.stdout).unwrap();
    assert_eq!(answer["matches"][0]["path"], "src/net.rs");
    let shown = fusee(&project).args(["memory", "show", "src/net.rs", "--json"]).run().exits(0);
    assert_eq!(serde_json::from_str::<Value>(&shown.stdout).unwrap()["symbols"], json!(["serve"]));
    fusee(&project).args(["memory", "show", "net.rs"]).run().exits(2);
    // In any directory of the project it is the project's index; paths in arguments are relative to the
    // directory.
    std::fs::create_dir(project.dir().join(".fusee")).ok();
    let below = ["-C", "src"];
    let shown = fusee(&project).args(["memory", "query", "bread", "--json"]).args(below).run().exits(0);
    let answer: Value = serde_json::from_str(&shown.stdout).unwrap();
    assert_eq!(answer["matches"][0]["path"], "b.md", "{answer}");
    let shown = fusee(&project).args(["memory", "show", "net.rs", "--json"]).args(below).run().exits(0);
    assert_eq!(serde_json::from_str::<Value>(&shown.stdout).unwrap()["path"], "src/net.rs");
}

#[test]
fn a_workflow_calls_templates_by_name() {
    let project = with_template(GREET);
    let model = project.script(&[
        Line::text("Hi Ann").matching("Greet Ann, 2"),
        Line::text("Hi Bo").matching("Greet Bo, 1"),
    ]);
    let text = "(let ((a (t (who \"Ann\") (times 2)))) (string-append (content a) \" \" (content (t (who \"Bo\")))))";
    let shown = task(&project, &model, &[text, "--run-id", "w"]).run().exits(0);
    assert_eq!(shown.stdout, "Hi Ann Hi Bo\n");
    fusee(&project).args(["replay", "w"]).run().exits(0);
    let unknown = task(&project, &model, &["(t (whom \"Ann\"))"]).run().exits(2);
    assert!(unknown.stderr.contains("whom"), "{}", unknown.stderr);
}

#[test]
fn a_question_about_a_command_of_the_context_comes_after_the_beginning_of_its_task() {
    let project = with_template(
        "<instructions>x</instructions><file_paths source=\"command\"><command>ls</command></file_paths>",
    );
    let model = project.script(&[]);
    let flags = ["--json", "--approve", "ask", "--model", &model, "--run-id", "q"];
    let events = fusee(&project).args(["run", "--template", "t"]).args(flags).run().exits(1).events();
    assert_eq!(
        outline(&events),
        ["task_started", "approval_requested", "approval_resolved", "error", "task_report", "task_complete"]
    );
    assert_eq!(events.last().unwrap()["error"]["reason"], json!("context_retrieval_failure"));
    fusee(&project).args(["replay", "q"]).run().exits(0);
}
