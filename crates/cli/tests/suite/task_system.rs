//! One task system for templates and programs: how a task is found, what applies to it, and when its answer is one.

use fusee_testkit::project::{Command, Project};
use fusee_testkit::script::Line;
use fusee_testkit::server::{Message, Script, Server};
use serde_json::{Value, json};

use crate::support::{fusee, with_key};

fn template(attributes: &str, description: &str, inner: &str) -> String {
    format!("<task type=\"atomic\" {attributes}><description>{description}</description>{inner}</task>")
}

fn task<'p>(project: &'p Project, text: &str, lines: &[Line]) -> Command<'p> {
    let model = project.script(lines);
    fusee(project).args(["task", text, "--model", &model, "--sandbox", "off", "--json"])
}

fn result(project: &Project, text: &str, lines: &[Line], exit: i32) -> Value {
    let shown = task(project, text, lines).run().exits(exit);
    serde_json::from_str(&shown.stdout).expect(&shown.stdout)
}

fn asking<'p>(command: Command<'p>, server: &Server) -> Command<'p> {
    let args = ["--model", "openai:scripted", "--api", "chat", "--sandbox", "off", "--base-url"];
    with_key(command.args(args).args([&server.base_url()]))
}

fn replies(texts: &[&str]) -> Server {
    Server::start(texts.iter().map(|text| Message::text(text)).collect::<Script>())
}

/// The last message of each request.
fn asked(server: &Server) -> Vec<String> {
    let last = |body: Value| body["messages"].as_array().unwrap().last().unwrap()["content"].clone();
    let requests = server.requests().into_iter();
    requests.map(|request| last(request.arrived.json()).as_str().unwrap_or_default().to_owned()).collect()
}

fn with_summary() -> Project {
    let text = template(
        "name=\"summarise\" subtype=\"digest\"",
        "Summarise a long text in one sentence",
        "<inputs><input name=\"text\"/></inputs><instructions>In one sentence: {{text}}</instructions>",
    );
    Project::new().with(".fusee/templates/summarise.xml", &text)
}

#[test]
fn a_program_finds_templates_by_description_and_by_subtype() {
    for call in [
        "(call-atomic-task \"Summarise a long text in one sentence\" (text \"A B\"))",
        "(call-atomic-task \"atomic:digest\" (text \"A B\"))",
        "(call-atomic-task (subtype \"digest\") (text \"A B\"))",
        "(call-atomic-task (subtype (string-append \"di\" \"gest\")) (text \"A B\"))",
        "(call-atomic-task (description (string-append \"Summarise a long text\" \" in one sentence\")) (text \"A B\"))",
        "(spawn \"Summarise a long text in one sentence\" (text \"A B\"))",
    ] {
        let project = with_summary();
        let server = replies(&["Short."]);
        let command = fusee(&project).args(["task", call, "--json", "--run-id", "found"]);
        let shown = asking(command, &server).run().exits(0);
        let done: Value = serde_json::from_str(&shown.stdout).unwrap();
        assert_eq!(
            (&done["content"], &done["notes"]["template_used"]),
            (&json!("Short."), &json!("summarise")),
            "{call}"
        );
        assert_eq!(asked(&server), ["In one sentence: A B"], "{call}");
        fusee(&project).args(["replay", "found"]).run().exits(0);
    }
}

#[test]
fn a_description_that_fits_no_template_is_the_task_itself() {
    let project = with_summary();
    let server = replies(&["Done."]);
    let call = "(call-atomic-task \"Paint the {{fence}}\" (colour \"green\"))";
    let shown = asking(fusee(&project).args(["task", call, "--json"]), &server).run().exits(0);
    let done: Value = serde_json::from_str(&shown.stdout).unwrap();
    assert_eq!((&done["content"], &done["notes"]["template_used"]), (&json!("Done."), &json!("plain")));
    assert_eq!(asked(&server), ["Paint the {{fence}}\n\ncolour:\ngreen"]);
    let missing = result(&project, "(call-atomic-task \"atomic:nothing\")", &[], 1);
    assert_eq!(missing["notes"]["error"]["reason"], "template_not_found", "{missing:#}");
}

#[test]
fn every_clause_of_a_defatom_reaches_the_task() {
    let project = Project::new().with("person.json", "{\"type\": \"object\", \"required\": [\"age\"]}");
    let program = "(defatom earlier (instructions \"First.\"))
        (defatom describe (params (who string))
          (description \"Describe a person\") (system \"You are terse.\") (subtype \"director\")
          (instructions \"Describe {{who}}.\")
          (context_management ((accumulate_data true) (accumulation_format full_output)))
          (output_format ((type \"json\") (schema \"person.json\"))))
        (earlier)
        (parsed (describe (who \"Ann\")))";
    let server = replies(&["Earlier answer.", "{'age': 7,}"]);
    let shown = asking(fusee(&project).args(["task", program, "--json"]), &server).run().exits(0);
    let done: Value = serde_json::from_str(&shown.stdout).unwrap();
    assert_eq!(done["parsedContent"], json!({"age": 7}), "almost valid JSON is repaired: {done:#}");
    let output = "Describe Ann.\n\nAnswer with JSON that fits the schema person.json and nothing else: no words around \
                it, no code fence.\n\n## Context from the earlier task `earlier`\n\nEarlier answer.";
    assert_eq!(asked(&server)[1], output);
    let system = &server.requests()[1].arrived.json()["messages"][0];
    assert_eq!((&system["role"], &system["content"]), (&json!("system"), &json!("You are terse.")));
}

#[test]
fn settings_of_a_defatom_that_exclude_each_other_are_refused_before_a_request() {
    let program = "(defatom t (instructions \"T.\") (context_management (inherit_context full) (fresh_context enabled)))
        (t)";
    let failed = result(&Project::new(), program, &[], 1);
    let error = &failed["notes"]["error"];
    assert_eq!(
        (&error["type"], &error["reason"]),
        (&json!("VALIDATION_ERROR"), &json!("configuration_error"))
    );
    assert!(failed["notes"]["recovery"].is_string(), "{failed:#}");
    let project = Project::new()
        .with("w.fusee", "(defatom t (instructions \"T.\") (context_management (fresh maybe)))");
    let output = fusee(&project).args(["check", "w.fusee"]).run().exits(1).stdout;
    assert!(output.contains("not a context setting") && output.contains("fresh_context"), "{output}");
}

#[test]
fn a_task_of_a_program_can_continue_in_another_and_says_where_its_answer_is_wrong() {
    let project = with_summary();
    let ask = json!({"status": "CONTINUATION", "notes": {"subtask_request":
        {"name": "summarise", "inputs": {"text": "A"}}}});
    let lines = [Line::text(&ask.to_string()), Line::text("Short.")];
    let done = result(&project, "(atomic-task (instructions \"Go.\"))", &lines, 0);
    assert_eq!(done["content"], "Short.", "{done:#}");
    let program =
        "(defatom t (instructions \"T.\") (output_format ((type \"json\") (schema \"string[]\")))) (t)";
    let failed = result(&project, program, &[Line::text("[1]"), Line::text("[2]")], 1);
    let error = &failed["notes"]["error"];
    assert_eq!(
        (&error["reason"], &error["cause"]["cause"]["location"]),
        (&json!("output_format_failure"), &json!("/0"))
    );
    assert_eq!(failed["content"], "[2]");
}

#[test]
fn an_answer_that_does_not_fit_its_schema_is_asked_for_once_more() {
    let with = |inner: &str| {
        Project::new().with(
            ".fusee/templates/names.xml",
            &template("name=\"names\"", "Names", &format!("<instructions>Names.</instructions>{inner}")),
        )
    };
    let lines = |texts: &[&str]| texts.iter().map(|text| Line::text(text)).collect::<Vec<_>>();
    let project = with("<output_format type=\"json\" schema=\"object\"/>");
    let right = result(&project, "names", &lines(&["Ann and Bob", "{\"names\": []}"]), 0);
    assert_eq!(right["parsedContent"], json!({"names": []}));
    let wrong = result(&project, "names", &lines(&["Ann and Bob", "Ann, Bob"]), 1);
    let error = &wrong["notes"]["error"];
    assert_eq!((&wrong["status"], &wrong["content"]), (&json!("FAILED"), &json!("Ann, Bob")));
    assert_eq!(
        (&error["reason"], &error["cause"]["error_type"]),
        (&json!("output_format_failure"), &json!("parse_error"))
    );
    assert_eq!(error["metrics"]["turns"], 2, "{wrong:#}");

    // Only without a schema is text an answer, with a note.
    let project = with("<output_format type=\"json\"/>");
    let text = result(&project, "names", &lines(&["Ann and Bob"]), 0);
    assert_eq!((&text["status"], &text["content"]), (&json!("COMPLETE"), &json!("Ann and Bob")));
    assert!(text["notes"]["parseError"].is_string(), "{text:#}");
    let project =
        with("<output_format type=\"json\" schema=\"object\"/><disable_reparsing>true</disable_reparsing>");
    let once = result(&project, "names", &lines(&["Ann"]), 1);
    assert_eq!(once["notes"]["error"]["metrics"]["turns"], 1, "{once:#}");
}

#[test]
fn a_program_can_retry_a_task_whose_answer_is_not_json() {
    let program = "(defatom t (instructions \"T.\") (output_format ((type \"json\") (schema \"object\"))))
        (parsed (retry 2 (t)))";
    let lines = ["no", "still no", "{\"a\": 1}"].map(Line::text);
    assert_eq!(result(&Project::new(), program, &lines, 0)["parsedContent"], json!({"a": 1}));
}

#[test]
fn configured_tools_and_history_apply_to_templates_and_programs() {
    let text = template("name=\"look\"", "Look", "<instructions>Look.</instructions>");
    let settings = "tools = [\"read_file\"]\nhistory_tool_truncate_chars = 10\n";
    let project = Project::new()
        .with("fusee.toml", settings)
        .with(".fusee/templates/look.xml", &text)
        .with("a.txt", &"x".repeat(500));
    for words in ["look", "(look)", "(atomic-task (instructions \"Look.\"))"] {
        let server = Server::start(Script::from_iter([
            Message::call("read_file", json!({"path": "a.txt"})),
            Message::text("Seen."),
        ]));
        asking(fusee(&project).args(["task", words]), &server).run().exits(0);
        let bodies: Vec<Value> =
            server.requests().into_iter().map(|request| request.arrived.json()).collect();
        let names: Vec<&str> = bodies[0]["tools"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|tool| tool["function"]["name"].as_str())
            .collect();
        assert!(names.contains(&"read_file") && !names.contains(&"shell"), "{words}: {names:?}");
        let seen = bodies[1]["messages"].as_array().unwrap().last().unwrap()["content"].to_string();
        assert!(seen.len() < 200, "{words}: the result is cut: {seen}");
    }
    project.write("fusee.toml", "tools = [\"read_fil\"]\n");
    let output = task(&project, "look", &[]).run().exits(2).stderr;
    assert!(output.contains("unknown tool `read_fil`"), "{output}");
}

#[test]
fn phase_control_and_the_settings_of_a_flow_apply_to_templates() {
    let settings = "phase_log = \"stdout\"\n[phase_control]\nmode = \"rules\"\n";
    let project = Project::new().with("fusee.toml", settings).with("a.txt", "hello\n").with(
        ".fusee/templates/look.xml",
        &template("name=\"look\"", "Look", "<instructions>Look.</instructions>"),
    );
    let lines = [Line::call("read_file", json!({"path": "a.txt"})), Line::text("Seen.")];
    let shown = task(&project, "look", &lines).run().exits(0);
    assert!(shown.stderr.contains("context") && shown.stderr.contains("plan"), "{}", shown.stderr);
    // With --json the events stay alone on stdout, and have the phases too.
    let run = fusee(&project).args(["run", "/task look", "--sandbox", "off", "--json", "--model"]);
    let shown = run.args([&project.script(&lines)]).run().exits(0);
    assert!(shown.events().iter().any(|event| event["type"] == "phase_transition"), "{}", shown.stdout);
    assert!(shown.stderr.contains("plan"), "{}", shown.stderr);
}

#[test]
fn the_log_of_a_run_is_kept_in_a_file() {
    let project = Project::new();
    let log = project.home().join("runs.log");
    let lines = [Line::text("Hello.")];
    for id in ["one", "two"] {
        let run = fusee(&project).args([
            "run",
            "Go.",
            "--run-id",
            id,
            "--sandbox",
            "off",
            "--model",
            &project.script(&lines),
        ]);
        run.env("FUSEE_LOG_FILE", &log).run().exits(0);
    }
    let text = std::fs::read_to_string(&log).unwrap();
    assert_eq!(text.matches("main task_started").count(), 2, "{text}");
    assert_eq!(text.matches("main task_complete").count(), 2, "{text}");
    let shown = fusee(&project).args(["show", "two", "--log"]).run().exits(0).stdout;
    assert!(text.ends_with(&shown), "{text}");
    let project = Project::new().with("fusee.toml", &format!("log_file = {:?}\n", log.display().to_string()));
    let run = fusee(&project).args(["run", "Three.", "--sandbox", "off", "--model", &project.script(&lines)]);
    assert!(run.run().exits(0).stderr.contains("log_file"), "a project needs trust for it");
    assert_eq!(std::fs::read_to_string(&log).unwrap(), text);
}

#[test]
fn the_depth_of_subtasks_is_configured() {
    let text = template(
        "name=\"deep\"",
        "Deep",
        "<inputs><input name=\"n\"/></inputs><instructions>{{n}}</instructions>",
    );
    let ask = |n: u32| {
        let request = json!({"name": "deep", "inputs": {"n": n.to_string()}});
        Line::text(&json!({"status": "CONTINUATION", "notes": {"subtask_request": request}}).to_string())
    };
    for (depth, allowed) in [("1", false), ("2", true)] {
        let project = Project::new().with(".fusee/templates/deep.xml", &text);
        let lines = [ask(1), ask(2), Line::text("Deep enough.")];
        let run = fusee(&project).args(["task", "deep", "n=0", "--model", &project.script(&lines), "--json"]);
        let shown = run.args(["--sandbox", "off"]).env("FUSEE_SUBTASK_DEPTH", depth).run();
        let done: Value = serde_json::from_str(&shown.stdout).unwrap();
        assert_eq!(done["content"] == "Deep enough.", allowed, "{done:#}");
        if !allowed {
            assert!(done["notes"]["error"].to_string().contains("at most 1 deep"), "{done:#}");
        }
    }
}

#[test]
fn the_answer_of_the_last_stage_is_held_to_the_format_of_the_template() {
    let text = template(
        "name=\"staged\"",
        "Staged",
        "<instructions>Change a.txt.</instructions><flow>staged3</flow><output_format type=\"json\" schema=\"object\"/>",
    );
    let stages = |answers: &[&str]| {
        let work = [
            Line::call("read_file", json!({"path": "a.txt"})),
            Line::text("It says hello."),
            Line::call("plan_tasks", json!({"action": "create", "tasks": [{"description": "Change a.txt"}]})),
            Line::text("Planned."),
            Line::call("write_file", json!({"path": "a.txt", "content": "bye\n"})),
        ];
        work.into_iter().chain(answers.iter().map(|text| Line::text(text))).collect::<Vec<_>>()
    };
    let project = || Project::new().with("a.txt", "hello\n").with(".fusee/templates/staged.xml", &text);
    let right = result(&project(), "staged", &stages(&["Changed.", "{\"changed\": true}"]), 0);
    assert_eq!(right["parsedContent"], json!({"changed": true}), "{right:#}");
    let wrong = result(&project(), "staged", &stages(&["Changed.", "[1]"]), 1);
    let error = &wrong["notes"]["error"];
    assert_eq!((&wrong["status"], &wrong["content"]), (&json!("FAILED"), &json!("[1]")), "{wrong:#}");
    assert_eq!(
        (&error["reason"], &error["cause"]["error_type"]),
        (&json!("output_format_failure"), &json!("type_mismatch"))
    );
}

#[test]
fn the_last_planned_task_is_held_to_the_format_of_the_template() {
    let text = template(
        "name=\"planned\"",
        "Planned",
        "<instructions>Look.</instructions><flow>branched</flow><output_format type=\"json\" schema=\"object\"/>",
    );
    let plan = |tasks: Value| Line::call("plan_tasks", json!({"action": "create", "tasks": tasks}));
    let project = || Project::new().with(".fusee/templates/planned.xml", &text);
    let two = json!([{"description": "Write a"}, {"description": "Write b"}]);
    let lines = |last: &[&str]| {
        let work = [plan(two.clone()), Line::text("a is written.")];
        work.into_iter().chain(last.iter().map(|text| Line::text(text))).collect::<Vec<_>>()
    };
    let right = result(&project(), "planned", &lines(&["b is written.", "{\"written\": 2}"]), 0);
    assert_eq!(right["parsedContent"], json!({"written": 2}), "{right:#}");
    let wrong = result(&project(), "planned", &lines(&["b is written.", "both are."]), 1);
    let error = &wrong["notes"]["error"];
    assert_eq!((&wrong["status"], &wrong["content"]), (&json!("FAILED"), &json!("both are.")), "{wrong:#}");
    assert_eq!(error["reason"], "output_format_failure");
    // Read-only tasks are skipped, unless there is no other to answer.
    let project = project().with("fusee.toml", "task_skip_readonly = true\n");
    let read = json!([{"description": "Write a"}, {"description": "Read b"}]);
    let skipped = result(&project, "planned", &[plan(read), Line::text("{\"n\": 1}")], 0);
    assert_eq!(skipped["parsedContent"], json!({"n": 1}), "{skipped:#}");
    let only = json!([{"description": "Read a"}, {"description": "Read b"}]);
    let kept = result(&project, "planned", &[plan(only), Line::text("{\"n\": 0}")], 0);
    assert_eq!(kept["parsedContent"], json!({"n": 0}), "{kept:#}");
}
