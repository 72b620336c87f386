//! Benchmark mode of the binary: the result line, the second attempt, tests that no tool can change.

use fusee_testkit::events::of_type;
use fusee_testkit::script::Line;
use serde_json::json;

use crate::flows::{plan, project, read, report, write};
use crate::support::{fusee, run_json};

#[test]
fn a_benchmark_prints_one_line_and_the_second_try_goes_on_with_the_first() {
    let project = project();
    let script = |lines: &[Line]| project.script(lines);
    let bench = |request: &str, model: &str| {
        fusee(&project).args(["run", request, "--model", model, "--sandbox", "off", "--benchmark"])
    };
    let first = bench("Do it.", &script(&[write("b.txt"), Line::text("Done.")])).run().exits(0);
    assert_eq!(first.stdout, "Finished Try1\n");
    let second = script(&[Line::text("Mended.")]);
    let second = bench("The tests say: no.", &second).args(["--continue"]).run().exits(0);
    assert_eq!(second.stdout, "Finished Try2\n");
    let model = script(&[Line::text("My words.")]);
    let output = bench("Do it.", &model).env("FUSEE_BENCHMARK_OUTPUT_MODE", "model").run().exits(0);
    assert_eq!(output.stdout, "My words.\n");
    let failed = bench("Do it.", &script(&[])).run();
    assert_eq!(failed.code, Some(1));
    assert!(
        failed.stdout.starts_with("Failed Try1: the script ") && failed.stdout.lines().count() == 1,
        "{}",
        failed.stdout
    );
    // A run that cannot start has a line, too.
    for (args, line) in [
        (vec!["--model", "script:/nowhere.jsonl"], "Failed Try1: "),
        (vec!["--no-such-flag"], "Failed Try1: unexpected argument '--no-such-flag' found"),
        (vec!["--continue", "nothing"], "Failed Try2: "),
    ] {
        let unstarted = fusee(&project).args(["run", "x", "--benchmark"]).args(&args).run().exits(2);
        assert!(
            unstarted.stdout.starts_with(line) && unstarted.stdout.lines().count() == 1,
            "{args:?}: {}",
            unstarted.stdout
        );
    }
    for name in ["FUSEE_BENCHMARK", "LOCALCODE_BENCHMARK"] {
        let model = script(&[Line::text("x")]);
        let run = fusee(&project).args(["run", "x", "--model", &model, "--sandbox", "off"]).env(name, "1");
        assert_eq!(run.run().exits(0).stdout, "Finished Try1\n");
    }
    for mode in ["staged", "staged3", "branched", "direct"] {
        let all = [
            read("a.txt"),
            Line::text("x"),
            plan(&["x"]),
            Line::text("x"),
            write("a.txt"),
            Line::text("a.txt\n```\nx\n```\n"),
        ];
        let lines = match mode {
            "staged" => &[&all[0..1], &[read("tests/test_a.txt")], &all[2..3], &all[4..6]].concat(),
            "staged3" => &all.to_vec(),
            "branched" => &[&all[2..3], &all[4..6]].concat(),
            _ => &all[5..6].to_vec(),
        };
        project.write("a.txt", "one\n");
        let run = bench("Change a.txt.", &script(lines)).args(["--flow", mode]).run().exits(0);
        assert_eq!(run.stdout, "Finished Try1\n", "{mode}");
    }
}

#[test]
fn tests_cannot_be_changed_in_a_benchmark_by_any_tool() {
    let project = project();
    let shell = |command: &str| Line::call("shell", json!({ "command": command }));
    let patch = "*** Begin Patch\n*** Delete File: tests/test_a.txt\n*** End Patch\n";
    let lines = [
        read("tests/test_a.txt"),
        write("tests/test_a.txt"),
        Line::call("apply_patch", json!({ "patch": patch })),
        shell("echo x > tests/test_a.txt; echo x >> a.txt"),
        shell("rm -r tests; true"),
        Line::text("I tried."),
    ];
    let script = project.script(&lines);
    run_json(&project, &script).args(["--benchmark", "--run-id", "b"]).run().exits(0);
    assert_eq!(project.read("tests/test_a.txt"), "two\n");
    let shown = fusee(&project).args(["show", "b", "--json"]).run().exits(0);
    let events = fusee_testkit::events::read_checked(&shown.stdout, fusee_testkit::events::Part::Whole);
    let report = report(&events);
    assert_eq!(report["feedback_counts"], json!({"test_edit_blocked": 4}));
    assert_eq!(report["files_changed"], json!(["a.txt"]));
    let results = of_type(&events, "tool_result");
    let answer =
        "Test files cannot be changed in this task: tests/test_a.txt. Change the code that they test.";
    assert_eq!(results[1]["content"], format!("Not run. {answer}"));
    assert!(results[3]["content"].as_str().unwrap().ends_with(&format!("[{answer} They were restored.]")));
    let free = run_json(&project, &project.script(&[lines[0].clone(), lines[1].clone(), lines[5].clone()]))
        .args(["--benchmark"])
        .env("LOCALCODE_BLOCK_TEST_EDITS", "0");
    free.run().exits(0);
    assert_eq!(project.read("tests/test_a.txt"), "new\n");
}

#[test]
fn the_tests_are_the_originals_when_the_runtime_runs_them_and_at_the_end() {
    let project = project();
    let shell = |command: &str| Line::call("shell", json!({ "command": command }));
    let job = "while :; do echo no > tests/test_a.txt; echo x > conftest.py; sleep 0.02; done";
    let lines = [
        shell("echo x > tests/test_new.py; mkdir -p src; echo x > src/conftest.py; echo x > src/a.py"),
        Line::call("shell", json!({ "command": job, "background": true })),
        shell("sleep 0.3"),
        Line::text("Done."),
    ];
    run_json(&project, &project.script(&lines)).args(["--benchmark"]).run().exits(0);
    assert_eq!(project.read("tests/test_a.txt"), "two\n");
    let added = ["tests/test_new.py", "src/conftest.py", "conftest.py"];
    assert!(added.iter().all(|path| !project.dir().join(path).exists()));
    assert_eq!(project.read("src/a.py"), "x\n");
    project.assert_no_process_left();

    // A verification during which a job changes the tests does not count as passed.
    let verify = "sleep 0.3; grep -q no tests/test_a.txt";
    let lines = [
        Line::call("shell", json!({ "command": job, "background": true })),
        write("b.txt"),
        Line::text("Done."),
        Line::text("Done."),
    ];
    let run = run_json(&project, &project.script(&lines)).args(["--benchmark", "--verify", verify]);
    assert_eq!(run.args(["--max-turns", "3"]).run().code, Some(3));
    assert_eq!(project.read("tests/test_a.txt"), "two\n");
    project.assert_no_process_left();
}
