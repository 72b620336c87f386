//! Workflows from the command line: values, results, errors with positions, resuming.

use fusee_testkit::events::{Part, of_type, read_checked};
use fusee_testkit::project::{Command, Outcome, Project};
use fusee_testkit::script::Line;
use serde_json::{Value, json};

use crate::support::fusee;

fn task<'p>(project: &'p Project, text: &str) -> Command<'p> {
    fusee(project).args(["task", "--sandbox", "off", text])
}

fn result(outcome: &Outcome) -> Value {
    serde_json::from_str(&outcome.stdout).expect(&outcome.stdout)
}

#[test]
fn a_value_is_printed_and_needs_no_model() {
    let project = Project::new();
    let cases = [
        ("(+ 1 2)", "3\n", json!(3)),
        ("(string-append \"a\" \"b\")", "ab\n", json!("ab")),
        ("(list 1 \"two\" 'three nil)", "(1 \"two\" three nil)\n", json!([1, "two", "three", null])),
        ("(dict \"k\" 1.5)", "(dict \"k\" 1.5)\n", json!({"k": 1.5})),
        ("nil", "nil\n", Value::Null),
        ("(define x 2) (* x x)", "4\n", json!(4)),
    ];
    for (text, printed, value) in cases {
        let text = if text == "nil" { "(progn nil)" } else { text };
        assert_eq!(task(&project, text).run().exits(0).stdout, printed, "{text}");
        let whole = result(&task(&project, text).args(["--json"]).run().exits(0));
        assert_eq!(
            (&whole["status"], whole.get("parsedContent"), &whole["content"]),
            (&json!("COMPLETE"), Some(&value), &json!(printed.trim_end())),
            "{text}: {whole:#}"
        );
    }
}

#[test]
fn tasks_and_tools_are_called_and_their_events_are_one_stream() {
    let project = Project::new().with("a.txt", "alpha\n");
    let script = project.script(&[
        Line::call("read_file", json!({"path": "a.txt"})).usage(100, 10),
        Line::text("It says alpha.").usage(120, 5),
    ]);
    let text = "(defatom look (params (file string)) (instructions \"Look at {{file}}.\"))
        (log-message \"looking\")
        (define seen (look (file \"a.txt\")))
        (system:run_script (command \"echo out; echo err >&2; exit 3\"))
        (format \"{} | {}\" (content seen) (get-field (run_script (command \"cat a.txt\")) \"stdout\"))";
    let outcome = task(&project, text).args(["-m", &script, "--run-id", "w"]).run().exits(0);
    assert_eq!(outcome.stdout, "It says alpha. | alpha\n");
    let shown = fusee(&project).args(["show", "w", "--json"]).run().exits(0);
    let events = read_checked(&shown.stdout, Part::Whole);
    let brief: Vec<String> = events
        .iter()
        .map(|event| format!("{} {}", event["task"].as_str().unwrap(), event["type"].as_str().unwrap()))
        .filter(|line| !line.ends_with("_delta") && !line.ends_with("tool_output"))
        .collect();
    assert_eq!(
        brief,
        [
            "main task_started",
            "main log",
            "main/1 task_started",
            "main/1 turn_start",
            "main/1 tool_call",
            "main/1 tool_result",
            "main/1 turn_complete",
            "main/1 turn_start",
            "main/1 message",
            "main/1 turn_complete",
            "main/1 task_report",
            "main/1 task_complete",
            "main tool_call",
            "main tool_result",
            "main tool_call",
            "main tool_result",
            "main task_report",
            "main task_complete",
        ]
    );
    let child = of_type(&events, "task_started")[1];
    assert_eq!((&child["request"], &child["parent"]), (&json!("Look at a.txt."), &json!("main")));
    let last = events.last().unwrap();
    assert_eq!((&last["total_turns"], &last["total_tokens"]), (&json!(2), &json!(235)));
    let replayed = fusee(&project).args(["replay", "w"]).run().exits(0);
    assert_eq!(replayed.stdout, outcome.stdout);
    let again = fusee(&project).args(["resume", "w"]).run().exits(0);
    assert_eq!(again.stdout, outcome.stdout);
}

#[test]
fn an_error_begins_with_its_place_and_has_the_exit_code_of_its_sort() {
    let project = Project::new();
    let limit =
        project.script(&[Line::call("list_dir", json!({})), Line::call("list_dir", json!({"path": "."}))]);
    let refused = project.script(&[Line::error(401, "no such key")]);
    let atom = "(defatom t (params) (instructions \"x\"))";
    let raised = "(progn\n  (raise \"no milk\"))".to_owned();
    let cases = [
        (raised, None, 1, "2:3: no milk", json!("TASK_FAILURE"), json!("unexpected_error")),
        ("(nth (list 1) 5)".to_owned(), None, 1, "1:1: ", json!("TASK_FAILURE"), json!("unexpected_error")),
        (
            "(read_file (path \"no.txt\"))".to_owned(),
            None,
            1,
            "1:1: ",
            json!("TASK_FAILURE"),
            json!("tool_execution_error"),
        ),
        (
            format!("{atom}\n(content (t))"),
            Some(refused),
            1,
            "2:10: ",
            json!("TASK_FAILURE"),
            json!("llm_error"),
        ),
        (
            format!("{atom}\n(t (limits (dict \"max_turns\" 1)))"),
            Some(limit),
            3,
            "2:1: ",
            json!("RESOURCE_EXHAUSTION"),
            json!("turns"),
        ),
        (
            "(defun f (n) (f n)) (f 1)".to_owned(),
            None,
            3,
            "1:14: ",
            json!("RESOURCE_EXHAUSTION"),
            json!("steps"),
        ),
    ];
    for (text, model, code, begins, kind, reason) in cases {
        let mut command = task(&project, &text).args(["--json"]);
        if let Some(model) = &model {
            command = command.args(["-m", model]);
        }
        let whole = result(&command.run().exits(code));
        let error = &whole["notes"]["error"];
        assert_eq!(
            (&whole["status"], &error["type"], &error["reason"]),
            (&json!("FAILED"), &kind, &reason),
            "{text}: {whole:#}"
        );
        assert!(error["message"].as_str().unwrap().starts_with(begins), "{text}: {error:#}");
    }
}

#[test]
fn what_is_wrong_with_the_text_or_the_inputs_is_found_before_anything_runs() {
    let project = Project::new().with(
        "w.fusee",
        "(params (file string :doc \"what to read\") (times number :default 2))\n(list file times)\n",
    );
    let wrong = task(&project, "(undefined-thing)\n(sumarize (text 1))").args(["--json"]).run().exits(2);
    let error = &result(&wrong)["notes"]["error"];
    assert_eq!(error["type"], json!("VALIDATION_ERROR"));
    assert!(error["message"].as_str().unwrap().starts_with("1:2: "), "{error:#}");
    assert!(wrong.stderr.contains("(undefined-thing)") && wrong.stderr.contains('^'), "{}", wrong.stderr);
    let missing = task(&project, "w.fusee").args(["--json"]).run().exits(2);
    let error = &result(&missing)["notes"]["error"];
    assert_eq!(error["reason"], json!("input_validation_failure"));
    assert!(error["message"].as_str().unwrap().contains("`file`"), "{error:#}");
    for words in [["file=a", "tims=3"], ["file=a", "times=many"], ["file=a", "file=b"]] {
        task(&project, "w.fusee").args(words).run().exits(2);
    }
    let fine = task(&project, "w.fusee").args(["file=a.txt", "times=5"]).run().exits(0);
    assert_eq!(fine.stdout, "(\"a.txt\" 5)\n");
    let help = fusee(&project).args(["task", "w.fusee", "--help"]).run().exits(0).stdout;
    assert!(help.contains("what to read") && help.contains("default: 2"), "{help}");
    assert!(fusee(&project).args(["runs"]).run().stdout.lines().count() <= 3, "what did not run is no run");
}

#[test]
fn a_dry_run_shows_the_plan_with_the_size_of_each_prompt() {
    let project = Project::new();
    let text = "(defatom greet (params (name string)) (instructions \"Greet {{name}} warmly.\"))
        (greet (name \"Ada\"))
        (define who (ask-user \"who?\"))
        (greet (name who))";
    let plan = task(&project, text).args(["--dry-run"]).run().exits(0).stdout;
    assert!(plan.contains("workflow:2:9  greet (name \"Ada\")  5 tokens"), "{plan}");
    assert!(plan.contains("workflow:4:9  greet (name …)") && plan.contains("plus computed values"), "{plan}");
    assert!(!project.journal().exists(), "a dry run writes nothing");
}

/// Text is for people, and exact; programs ask for JSON.
#[test]
fn a_value_is_printed_as_json_on_request() {
    let template = "<task name=\"ask\" type=\"atomic\"><description>Ask</description>\
        <instructions>Ask.</instructions><output_format type=\"json\"/></task>";
    let project = Project::new().with(".fusee/templates/ask.xml", template);
    let json = |text: &str| task(&project, text).args(["--format", "json"]).run();
    let list = json("(list 1 \"two\" (dict \"k\" nil))").exits(0).stdout;
    assert_eq!(list, "[\n  1,\n  \"two\",\n  {\n    \"k\": null\n  }\n]\n");
    assert_eq!(json("(string-append \"a\" \"b\")").exits(0).stdout, "\"ab\"\n");
    assert_eq!(json("(progn nil)").exits(0).stdout, "null\n");
    let failed = json("(raise \"no\")").exits(1);
    assert!(failed.stdout.is_empty() && failed.stderr.contains("no"), "{failed:#?}");
    let script = project.script(&[Line::text("{\"a\": 1}")]);
    let answer = json("ask").exits(2);
    assert!(answer.stdout.is_empty(), "{answer:#?}");
    let answer = task(&project, "ask").args(["--format", "json", "-m", &script]).run().exits(0);
    assert_eq!(answer.stdout, "{\n  \"a\": 1\n}\n");
}

/// The number of elements and calls is exact where no result decides it; otherwise the plan says that it is not known.
#[test]
fn a_dry_run_counts_the_calls_of_a_pmap_or_says_that_it_cannot_know() {
    let template = "<task name=\"ask\" type=\"atomic\" params=\"n\"><description>Ask</description>\
        <instructions>Number {{n}}.</instructions></task>";
    let project = Project::new().with(".fusee/templates/ask.xml", template);
    let plan = |text: &str| task(&project, text).args(["--dry-run"]).run().exits(0).stdout;
    let one: usize = {
        let text = fusee(&project).args(["task", "ask", "n=1", "--dry-run", "--json"]).run().exits(0).stdout;
        let tokens = &serde_json::from_str::<Value>(&text).unwrap()["tokens"];
        usize::try_from(tokens["system"].as_u64().unwrap() + tokens["request"].as_u64().unwrap()).unwrap()
    };
    let certain = plan("(pmap (lambda (n) (retry 3 (content (ask (n (format \"{}\" n)))))) (range 0 9))");
    let (least, most) = (9 * one, 27 * one);
    assert_eq!(
        certain,
        format!(
            "workflow:1:37  ask (n …)\n\
             workflow: 1 call in the source, 0 tasks defined here, 0 known prompt tokens; nothing was run\n\
             workflow:1:1  pmap over 9 elements\n\
             certain: 9 to 27 calls of ask, {least} to {most} prompt tokens in the first turn of each without the definitions of tools; the higher number \
             if every task fails and is retried\n\
             not known before the run: what follows from the result of ask at workflow:1:37\n"
        )
    );
    let unknown = plan(
        "(pmap (lambda (n) (ask (n n))) (string-split (get-field (run_script (command \"ls\")) \"stdout\") \"\\n\"))",
    );
    assert!(
        unknown.ends_with(
            "certain: 1 call of run_script\n\
             not known before the run: what follows from the result of run_script at workflow:1:57\n"
        ),
        "{unknown}"
    );
    let json =
        task(&project, "(pmap (lambda (n) (ask (n \"x\"))) '(1 2))").args(["--dry-run", "--json"]).run();
    let forecast = serde_json::from_str::<Value>(&json.exits(0).stdout).unwrap()["forecast"].clone();
    assert_eq!(
        (&forecast["calls"], &forecast["pmaps"]),
        (&json!({ "least": 2, "with_retries": 2 }), &json!([{ "at": "workflow:1:1", "elements": 2 }]))
    );
    assert!(!project.journal().exists(), "a dry run writes nothing");
}

#[test]
fn elements_run_side_by_side_in_order_and_the_first_failure_stops_the_others() {
    let project = Project::new();
    let lines: Vec<Line> =
        (0..40)
            .map(|n| {
                Line::text(&format!("answer {n}"))
                    .matching(&format!("number {n}\\."))
                    .delay_ms(if n % 7 == 0 { 30 } else { 1 })
            })
            .collect();
    let script = project.script(&lines);
    let text = "(defatom ask (params (n number)) (instructions \"number {{n}}.\"))
        (pmap (lambda (n) (content (ask (n n)))) (range 0 40) :limit 9)";
    let whole = result(&task(&project, text).args(["-m", &script, "--json", "--run-id", "p"]).run().exits(0));
    let expected: Vec<String> = (0..40).map(|n| format!("answer {n}")).collect();
    assert_eq!(whole["parsedContent"], json!(expected));
    fusee(&project).args(["replay", "p"]).run().exits(0);

    let failing = "(defatom ask (params (n number)) (instructions \"number {{n}}.\"))
        (try (pmap (lambda (n) (if (= n 3) (raise \"three\") (content (ask (n n))))) (range 0 40) :limit 5)
          (catch (e) (get e \"message\")))";
    let slow: Vec<Line> =
        (0..40).map(|n| Line::text("late").matching(&format!("number {n}\\.")).delay_ms(400)).collect();
    let outcome =
        task(&project, failing).args(["-m", &project.script(&slow), "--run-id", "f"]).run().exits(0);
    assert_eq!(outcome.stdout, "three\n");
    let shown = fusee(&project).args(["show", "f", "--json"]).run().exits(0);
    let events = read_checked(&shown.stdout, Part::Whole);
    let ends: Vec<_> =
        of_type(&events, "task_complete").iter().map(|e| e["status"].as_str().unwrap()).collect();
    assert_eq!(ends, ["cancelled", "cancelled", "cancelled", "completed"], "the siblings were stopped");
    fusee(&project).args(["replay", "f"]).run().exits(0);
}

const ATOM: &str = "(defatom say (params (n number)) (instructions \"Say {{n}}.\"))";

#[test]
fn money_is_a_limit_of_all_tasks_together() {
    let project = Project::new();
    let user = project.home().join(".config/fusee");
    std::fs::create_dir_all(&user).unwrap();
    std::fs::write(user.join("config.toml"), "[price]\ninput = 10.0\noutput = 100.0\n").unwrap();
    // A reply costs 1 000 × $10 / 10⁶ + 100 × $100 / 10⁶ = $0.02, so the budget covers two.
    let script = project.script(&(0..9).map(|_| Line::text("Said.").usage(1000, 100)).collect::<Vec<_>>());
    let each = "(map (lambda (n) (content (say (n n)))) (range 0 9))";
    let inside = format!("{ATOM} (with-limits (:usd 0.05) {each})");
    let run = |text: &str, id: &str, flags: &[&str]| {
        let outcome =
            task(&project, text).args(["-m", &script, "--json", "--run-id", id]).args(flags).run().exits(3);
        let asked = fusee(&project).args(["show", id, "--json"]).run().exits(0);
        let asked = of_type(&read_checked(&asked.stdout, Part::Whole), "turn_complete").len();
        (result(&outcome)["notes"]["error"]["reason"].clone(), asked)
    };
    for (text, id, flags) in
        [(inside, "inside", &[][..]), (format!("{ATOM} {each}"), "whole", &["--budget-usd", "0.05"][..])]
    {
        let (reason, asked) = run(&text, id, flags);
        assert_eq!(reason, json!("cost"), "{id}");
        assert!((2..=3).contains(&asked), "{id}: {asked} replies were paid for");
        fusee(&project).args(["replay", id]).run().exits(0);
    }
}

#[test]
fn what_cannot_be_kept_is_refused_and_not_ignored() {
    let project = Project::new();
    let script = project.script(&[Line::text("Said.")]);
    let cases = [
        (
            format!("{ATOM} (with-limits (:usd 1) (content (say (n 1))))"),
            "the price of this model is unknown",
        ),
        (
            ATOM.replace("(params", "(model \"other\") (params") + "(content (say (n 1)))",
            "requests the model `other`, but this run only has",
        ),
    ];
    for (text, output) in cases {
        let outcome = task(&project, &text).args(["-m", &script]).run().exits(1);
        assert!(outcome.stderr.contains(output), "{}", outcome.stderr);
    }
}

#[test]
fn a_workflow_asks_the_index_of_files_and_hands_on_what_it_finds() {
    let project = Project::new()
        .with("src/parser.rs", "//! Reads expressions.\nfn parse() {}\n")
        .with("src/lexer.rs", "//! Makes tokens.\nfn lex() {}\n")
        .with("notes.txt", "nothing about it\n");
    let text = format!(
        "{ATOM}
        (define found (get-context (query \"parser\") (files (list \"notes.txt\")) (limit 1)))
        (define paths (map (lambda (m) (get m \"path\")) (get found \"matches\")))
        (list (get found \"summary\") paths (content (say (n 1) (files paths))))"
    );
    let script =
        project.script(&[Line::text("Said.").matching("nothing about it[\\s\\S]*Reads expressions")]);
    let done = task(&project, &text).args(["-m", &script, "--run-id", "g"]).run().exits(0);
    let expected = "(\"1 of 3 files fit: src/parser.rs\" (\"notes.txt\" \"src/parser.rs\") \"Said.\")\n";
    assert_eq!(done.stdout, expected);
    // The query result is journaled and does not change.
    project.write("src/parser.rs", "// nothing\n");
    assert_eq!(fusee(&project).args(["replay", "g"]).run().exits(0).stdout, expected);

    let caught =
        "(try (get-context (inputs (dict))) (catch (e) (list (error-reason e) (get e \"message\"))))";
    assert_eq!(
        task(&project, caught).run().exits(0).stdout,
        "(\"input_validation_failure\" \"`get-context` has nothing to search for: set `query` or `inputs`\")\n"
    );
}

#[test]
fn a_resumed_task_prints_as_json_what_the_task_prints() {
    let project = Project::new();
    let script = project.script(&[Line::text("Said.").usage(10, 1)]);
    let text = format!("{ATOM} (say (n 1))");
    let begun = task(&project, &text).args(["-m", &script, "--json", "--run-id", "t"]).run().exits(0);
    let again = fusee(&project).args(["resume", "t", "--json"]).run().exits(0);
    assert_eq!(result(&again), result(&begun));
    // A run started with `fusee run` prints events, even if it is a workflow.
    let script = project.script(&[Line::text("Said.").usage(10, 1)]);
    fusee(&project).args(["run", &text, "-m", &script, "--run-id", "r"]).run().exits(0);
    let again = fusee(&project).args(["resume", "r", "--json"]).run().exits(0);
    assert!(again.stdout.contains("\"type\":\"task_complete\""), "{}", again.stdout);
}
