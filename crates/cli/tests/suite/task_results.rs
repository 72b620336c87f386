//! Output of `fusee task --json` for tasks that continue in others, fail, or never start: always one object,
//! with the notes that every result has.

use fusee_testkit::project::{Command, Project};
use fusee_testkit::script::Line;
use serde_json::{Value, json};

use crate::support::fusee;

const GREET: &str = "<inputs><input name=\"who\"/><input name=\"n\" type=\"number\" default=\"2\"/>\
    <input name=\"obj\" type=\"object\" default='{\"a\":1}'/></inputs>\
    <instructions>Greet {{who}} {{n}} {{obj.a}}.</instructions>";

fn template(name: &str, inner: &str) -> String {
    format!("<task name=\"{name}\" type=\"atomic\"><description>The task {name}</description>{inner}</task>")
}

fn project(templates: &[(&str, &str)]) -> Project {
    let project = Project::new().with("a.txt", "hello\n");
    let greet = template("greet", GREET);
    let project = project.with(".fusee/templates/greet.xml", &greet);
    templates.iter().fold(project, |project, (name, inner)| {
        project.with(&format!(".fusee/templates/{name}.xml"), &template(name, inner))
    })
}

fn task<'p>(project: &'p Project, lines: &[Line], words: &[&str]) -> Command<'p> {
    let model = project.script(lines);
    fusee(project).args(["task"]).args(words).args(["--model", &model, "--sandbox", "off", "--json"])
}

fn result(project: &Project, lines: &[Line], words: &[&str], exit: i32) -> Value {
    let shown = task(project, lines, words).run().exits(exit);
    serde_json::from_str(&shown.stdout).expect(&shown.stdout)
}

/// An answer that requests a further task.
fn continuation(request: Value) -> Line {
    let asks = json!({"status": "CONTINUATION", "content": "so far", "notes": {"subtask_request": request}});
    Line::text(&asks.to_string())
}

#[test]
fn the_answer_of_a_further_task_is_held_to_the_format_of_the_first() {
    let project = project(&[(
        "lead",
        "<instructions>Lead.</instructions><output_format type=\"json\" schema=\"object\"/>",
    )]);
    let ask = || continuation(json!({"type": "atomic", "name": "greet", "inputs": {"who": "Q"}}));
    let wrong = result(&project, &[ask(), Line::text("[1]")], &["lead"], 1);
    assert_eq!(
        (&wrong["status"], &wrong["content"], &wrong["notes"]["error"]["reason"]),
        (&json!("FAILED"), &json!("[1]"), &json!("output_format_failure")),
        "{wrong:#}"
    );
    assert_eq!(wrong["notes"]["error"]["metrics"]["turns"], 2, "{wrong:#}");
    let right = result(&project, &[ask(), Line::text("{\"a\": 1}")], &["lead"], 0);
    assert_eq!(
        (&right["status"], &right["parsedContent"]),
        (&json!("COMPLETE"), &json!({"a": 1})),
        "{right:#}"
    );
    assert_eq!(right["notes"]["subtask"]["template_used"], "greet");
    let bad = result(&project, &[ask(), Line::text("inner")], &["lead"], 1);
    assert_eq!(bad["notes"]["error"]["cause"]["error_type"], "parse_error", "{bad:#}");
}

#[test]
fn what_was_said_before_a_further_task_failed_is_kept() {
    let project = project(&[("lead", "<instructions>Lead.</instructions>")]);
    let ask = continuation(json!({"name": "greet"}));
    let failed = result(&project, &[ask], &["lead"], 1);
    assert_eq!((&failed["status"], &failed["content"]), (&json!("FAILED"), &json!("so far")), "{failed:#}");
    let error = &failed["notes"]["error"];
    assert_eq!((&error["reason"], &error["metrics"]["turns"]), (&json!("subtask_failure"), &json!(1)));
    assert!(error["message"].as_str().unwrap().starts_with("the subtask `greet` failed: "), "{error}");
    assert_eq!(error["cause"]["reason"], "input_validation_failure", "{error:#}");
}

#[test]
fn a_call_may_carry_all_that_a_request_has() {
    let project = project(&[("lead", "<instructions>Lead.</instructions>")]);
    let history = json!({"use_session_history": true});
    let call = json!({"type": "atomic", "name": "greet", "inputs": {"who": "Z"}, "history_config": history});
    let lines = [
        Line::call("spawn_subtask", call),
        Line::text("Hello Z.").matching("Greet Z 2 1[^§]*conversation so far[^§]*Lead"),
        Line::text("Done."),
    ];
    let done = result(&project, &lines, &["lead"], 0);
    assert_eq!(done["content"], "Done.", "{done:#}");
}

#[test]
fn a_template_goes_by_its_flow() {
    let project = project(&[("slow", "<instructions>Change a.txt.</instructions><flow>staged</flow>")]);
    // Its answer is rejected until it has read and changed something.
    let shown = task(&project, &vec![Line::text("ok"); 12], &["slow", "--max-turns", "3"]).run().exits(3);
    let result: Value = serde_json::from_str(&shown.stdout).unwrap();
    assert_eq!(result["notes"]["error"]["reason"], "turns", "{result:#}");
    project.write(
        ".fusee/templates/slow.xml",
        &template("slow", "<instructions>x</instructions><flow>stagd</flow>"),
    );
    let output = fusee(&project).args(["check", ".fusee"]).run().exits(1).stdout;
    assert!(output.contains("did you mean `staged`"), "{output}");
}

#[test]
fn a_flag_wins_over_the_limit_of_a_template() {
    let project = project(&[("short", "<instructions>Look.</instructions><limits max_turns=\"1\"/>")]);
    let lines = [Line::call("read_file", json!({"path": "a.txt"})), Line::text("Done.")];
    assert_eq!(result(&project, &lines, &["short"], 3)["notes"]["error"]["reason"], "turns");
    assert_eq!(result(&project, &lines, &["short", "--max-turns", "5"], 0)["content"], "Done.");
}

#[test]
fn a_template_that_was_left_out_is_not_called_unknown() {
    let project = project(&[]);
    for (text, kind) in [
        (
            "<task name=\"broken\" type=\"atomic\"><description>d</description><instructions>x</instruction></task>",
            "XML_PARSE_ERROR",
        ),
        (
            "<task name=\"broken\" type=\"sequential\"><description>d</description><instructions>x</instructions></task>",
            "VALIDATION_ERROR",
        ),
    ] {
        project.write(".fusee/templates/broken.xml", text);
        let refused = result(&project, &[], &["broken"], 2);
        let error = &refused["notes"]["error"];
        assert_eq!(
            (&error["type"], &error["reason"]),
            (&json!(kind), &json!("xml_validation_failure")),
            "{error}"
        );
        assert!(error["message"].as_str().unwrap().starts_with(".fusee/templates/broken.xml:1:"), "{error}");
    }
    // A broken template does not fall back to the built-in one of the same name.
    project.write(".fusee/templates/summarise.xml", "<task name=\"summarise\" type=\"atomic\"></task>");
    let refused = result(&project, &[], &["summarise"], 2);
    assert_eq!(refused["notes"]["error"]["reason"], "xml_validation_failure", "{refused:#}");
}

#[test]
fn names_that_several_templates_have_are_errors_that_name_the_files() {
    let project = project(&[]);
    let text = |name: &str| {
        format!(
            "<task name=\"{name}\" type=\"atomic\" subtype=\"amb\"><description>d</description><instructions>x</instructions></task>"
        )
    };
    for (file, name) in [("one", "one"), ("two", "two"), ("dup1", "dup"), ("dup2", "dup")] {
        let text = if name == "dup" { text(name).replace("subtype=\"amb\"", "") } else { text(name) };
        project.write(&format!(".fusee/templates/{file}.xml"), &text);
    }
    let several = result(&project, &[], &["atomic:amb"], 2);
    let message = several["notes"]["error"]["message"].as_str().unwrap();
    assert!(message.contains("templates/one.xml") && message.contains("templates/two.xml"), "{message}");
    let twice = result(&project, &[], &["dup"], 2);
    let message = twice["notes"]["error"]["message"].as_str().unwrap();
    assert!(message.contains("templates/dup1.xml") && message.contains("templates/dup2.xml"), "{message}");
}

#[test]
fn every_failure_has_all_notes_and_metrics() {
    let project = project(&[("odd", "<instructions>x</instructions><tools allow=\"red_file\"/>")]);
    let blocked = [Line::call("finish", json!({"status": "blocked", "summary": "no key"}))];
    let results = [
        result(&project, &[], &["greet"], 2),
        result(&project, &[], &["nothing-like-it"], 2),
        result(&project, &[], &["odd"], 2),
        result(&project, &blocked, &["greet", "who=x"], 1),
        result(&project, &[], &["read_file", "pth=a.txt"], 2),
    ];
    for result in results {
        for note in ["template_used", "context_source", "context_files_count", "execution_path", "metrics"] {
            assert!(result["notes"].get(note).is_some(), "{note}: {result:#}");
        }
        assert!(result["notes"]["error"]["metrics"].is_object(), "{result:#}");
    }
    let called = result(&project, &[], &["read_file", "path=a.txt"], 0);
    assert_eq!(called["notes"]["execution_path"], "tool");
    assert_eq!(called["notes"]["context_files_count"], 0);
}

#[test]
fn what_keeps_a_task_from_beginning_is_a_result_too() {
    let project =
        project(&[("far", "<instructions>x</instructions><provider>nowhere</provider><model>abc</model>")]);
    for words in [
        &["task", "greet", "who=x", "--json"][..],
        &["task", "far", "--json"],
        &["task", "greet", "who=x", "--json", "-m", "script:nowhere.jsonl"],
    ] {
        let shown = fusee(&project).args(words).run().exits(2);
        let result: Value = serde_json::from_str(&shown.stdout).expect(&shown.stdout);
        let error = &result["notes"]["error"];
        assert_eq!(
            (&result["status"], &error["reason"]),
            (&json!("FAILED"), &json!("configuration_error")),
            "{result:#}"
        );
    }
}

#[test]
fn all_that_is_wrong_with_inputs_is_told_at_once() {
    let project = project(&[]);
    let wrong = result(&project, &[], &["greet", "Bob", "zz=1", "n=x", "obj={\"b\":1}"], 2);
    let message = wrong["notes"]["error"]["message"].as_str().unwrap();
    for part in ["`Bob`", "`zz`", "`n`", "`who`", "`{{obj.a}}`"] {
        assert!(message.contains(part), "{part}: {message}");
    }
    let tool = result(&project, &[], &["read_file", "pth=a.txt"], 2);
    let error = &tool["notes"]["error"];
    assert_eq!(
        (&error["reason"], &tool["notes"]["execution_path"]),
        (&json!("input_validation_failure"), &json!("tool"))
    );
    let message = error["message"].as_str().unwrap();
    assert!(
        message.contains("unknown parameter `pth`; did you mean `path`?")
            && message.contains("missing `path`"),
        "{message}"
    );
}

#[test]
fn help_of_a_tool_and_of_a_task_in_a_run_are_shown() {
    let project = project(&[]);
    let help = fusee(&project).args(["task", "read_file", "--help"]).run().exits(0).stdout;
    assert!(help.contains("Usage: fusee task read_file path=…"), "{help}");
    let model = project.script(&[]);
    let run = |request: &str| fusee(&project).args(["run", request, "-m", &model]).run().exits(0).stdout;
    assert!(run("/task greet --help").contains("Usage: fusee task greet who=…"));
    assert!(run("/task greet who=x --dry-run").contains("Greet x 2 1."));
}

#[test]
fn steps_of_a_workflow_are_shown_what_earlier_ones_came_to() {
    let inner = "<inputs><input name=\"p\"/></inputs><instructions>Do {{p}}.</instructions><context_management>\
        <accumulate_data>true</accumulate_data><accumulation_format>full_output</accumulation_format></context_management>";
    let project = project(&[("acc", inner)]);
    let lines = [
        Line::text("First things."),
        Line::text("All.").matching("Do two\\.[^§]*the earlier task `acc`[^§]*First things\\."),
    ];
    let done = result(&project, &lines, &["(progn (acc (p \"one\")) (acc (p \"two\")))"], 0);
    assert_eq!(done["content"], "All.", "{done:#}");
}
