//! The shipped workflows, each run with a scripted model; and registered workflows, called by name.

use fusee_testkit::project::{Command, Project};
use fusee_testkit::script::Line;
use serde_json::{Value, json};

use crate::support::fusee;

fn task<'p>(project: &'p Project, name: &str, script: &str) -> Command<'p> {
    fusee(project).args(["task", name, "-m", script, "--sandbox", "off", "--json", "--run-id", "shipped"])
}

fn value(project: &Project, command: Command<'_>) -> Value {
    let outcome = command.run().exits(0);
    let result: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!(result["status"], json!("COMPLETE"), "{result:#}");
    fusee(project).args(["replay", "shipped"]).run().exits(0);
    result["parsedContent"].clone()
}

fn git(project: &Project, words: &[&str]) {
    let named = ["-c", "user.name=t", "-c", "user.email=t@example.org"];
    project.command("git").args(named).args(words).run().exits(0);
}

#[test]
fn changed_files_are_reviewed_side_by_side_and_findings_merged() {
    let project = Project::new().with("a.py", "a = 1\n").with("b.py", "b = 1\n").with("c.py", "c = 1\n");
    git(&project, &["add", "."]);
    git(&project, &["commit", "-q", "-m", "first"]);
    project.write("a.py", "a = 2\n");
    project.write("b.py", "b = 2\n");
    let script = project.script(&[
        Line::text("```json\n[{\"line\": 1, \"severity\": \"high\", \"claim\": \"a is wrong\"}]\n```")
            .matching("in a\\.py"),
        Line::error(400, "too tired").matching("in b\\.py"),
    ]);
    let found = value(&project, task(&project, "review-changes", &script).args(["focus=values"]));
    assert_eq!(found["files"], json!(["a.py", "b.py"]));
    assert_eq!(
        found["findings"][0],
        json!({"line": 1, "severity": "high", "claim": "a is wrong", "file": "a.py"})
    );
    assert_eq!(
        (&found["findings"][1]["file"], &found["findings"][1]["severity"]),
        (&json!("b.py"), &json!("unknown"))
    );
    assert!(found["findings"][1]["claim"].as_str().unwrap().contains("too tired"), "{found:#}");
}

#[test]
fn failing_tests_are_mended_in_rounds_that_the_tests_judge() {
    let project = Project::new().with("state.txt", "broken\n");
    let script = project.script(&[
        Line::text("Write half.").matching("These tests fail"),
        Line::call("shell", json!({"command": "echo half > state.txt"})).matching("Write half"),
        Line::text("Half is there."),
        Line::text("Write fixed.").matching("half"),
        Line::call("shell", json!({"command": "echo fixed > state.txt"})).matching("Write fixed"),
        Line::text("It is fixed."),
    ]);
    let command = task(&project, "fix-tests", &script).args(["tests=cat state.txt; grep -q fixed state.txt"]);
    assert_eq!(value(&project, command), json!({"rounds": 2, "done": "It is fixed."}));
    assert_eq!(project.read("state.txt"), "fixed\n");
}

#[test]
fn a_folder_is_summarised_from_its_files() {
    let project = Project::new().with("docs/a.md", "about a\n").with("docs/it's b.md", "about b\n");
    let script = project.script(&[
        Line::text("a is A.").matching("Read docs/a\\.md"),
        Line::text("b is B.").matching("Read docs/it's b\\.md"),
        Line::text("Letters.").matching("docs/a\\.md: a is A\\.\ndocs/it's b\\.md: b is B\\."),
    ]);
    assert_eq!(
        value(&project, task(&project, "summarise-folder", &script).args(["folder=docs"])),
        json!("Letters.")
    );
}

#[test]
fn the_best_of_several_answers_is_chosen_by_a_judge() {
    let project = Project::new();
    let script = project.script(&[
        Line::text("one").matching("Attempt 1\\."),
        Line::error(400, "no").matching("Attempt 2\\."),
        Line::text("three").matching("Attempt 3\\."),
        Line::text("2").matching("1\\. one\n\n2\\. three"),
    ]);
    assert_eq!(
        value(&project, task(&project, "best-of", &script).args(["task=Say a number."])),
        json!("three")
    );
}

#[test]
fn files_are_migrated_one_by_one_and_what_does_not_verify_is_taken_back() {
    let project = Project::new().with("src/a.txt", "old\n").with("src/b.txt", "old\n");
    let script = project.script(&[
        Line::call("read_file", json!({"path": "src/a.txt"})).matching("Change src/a"),
        Line::call("edit_file", json!({"path": "src/a.txt", "old": "old", "new": "new"})),
        Line::text("Done."),
        Line::call("read_file", json!({"path": "src/b.txt"})).matching("Change src/b"),
        Line::call("edit_file", json!({"path": "src/b.txt", "old": "old", "new": "bad"})),
        Line::text("Done."),
    ]);
    let words = ["files=src/*.txt", "change=Make it new.", "verify=! grep -l bad src/*.txt >&2"];
    let migrated = value(&project, task(&project, "migrate-files", &script).args(words));
    assert_eq!(migrated[0], json!({"file": "src/a.txt", "status": "migrated"}));
    assert_eq!(
        (&migrated[1]["status"], &migrated[1]["why"]),
        (&json!("taken back"), &json!("src/b.txt\n")),
        "{migrated:#}"
    );
    assert_eq!((project.read("src/a.txt"), project.read("src/b.txt")), ("new\n".into(), "old\n".into()));
}

#[test]
fn a_registered_workflow_is_called_by_name_from_the_command_line_and_from_others() {
    let project = Project::new()
        .with(
            ".fusee/workflows/double.fusee",
            "(params (n number))\n(run_script (command \"echo ran >> ran.txt\"))\n(* 2 n)\n",
        )
        .with(".fusee/workflows/circle.fusee", "(params)\n(content (circle))\n");
    assert_eq!(
        fusee(&project).args(["task", "double", "n=4", "--sandbox", "off"]).run().exits(0).stdout,
        "8\n"
    );
    let text = "(map (lambda (n) (parsed (double (n n)))) (list 1 2 3))";
    let outcome =
        fusee(&project).args(["task", text, "--sandbox", "off", "--run-id", "by-name"]).run().exits(0);
    assert_eq!((outcome.stdout.as_str(), project.read("ran.txt").lines().count()), ("(2 4 6)\n", 4));
    // The run keeps the source it started with.
    project.write(".fusee/workflows/double.fusee", "(params)\n1\n");
    assert_eq!(fusee(&project).args(["replay", "by-name"]).run().exits(0).stdout, "(2 4 6)\n");
    let unknown = fusee(&project).args(["task", "duble"]).run().exits(2);
    assert!(unknown.stderr.contains("double"), "{}", unknown.stderr);
    let circle = fusee(&project).args(["task", "(content (circle))", "--sandbox", "off"]).run().exits(1);
    assert!(circle.stderr.contains("workflows can be nested at most 5 deep"), "{}", circle.stderr);
}

#[test]
fn a_thousand_elements_hold_fifty_in_flight_and_keep_their_order() {
    let project = Project::new();
    let lines: Vec<Line> = (0..1000)
        .map(|n| {
            Line::text(&format!("{n}")).matching(&format!("number {n}\\.")).delay_ms(if n % 100 == 0 {
                50
            } else {
                2
            })
        })
        .collect();
    let script = project.script(&lines);
    let text = "(defatom ask (params (n number)) (instructions \"number {{n}}.\"))
        (pmap (lambda (n) (json-parse (content (ask (n n))))) (range 0 1000) :limit 50)";
    let whole = value(&project, task(&project, text, &script));
    assert_eq!(whole, json!((0..1000).collect::<Vec<_>>()));
    let shown = fusee(&project).args(["show", "shipped", "--json"]).run().exits(0).stdout;
    let (mut now, mut most) = (0_i32, 0_i32);
    for line in shown.lines().filter(|line| !line.contains("\"task\":\"main\",")) {
        now += i32::from(line.contains("\"task_started\"")) - i32::from(line.contains("\"task_complete\""));
        most = most.max(now);
    }
    assert_eq!(most, 50);
}
