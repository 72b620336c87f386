//! The `direct` flow: the runtime reads files and verifies, the model answers once with the new files.

use fusee_testkit::project::Project;
use fusee_testkit::script::Line;
use serde_json::{Value, json};

use crate::flows::{outline, report};
use crate::support::fusee;

#[test]
fn direct_work_needs_one_answer_with_the_new_file() {
    let project = Project::new().with("leap.py", "x = 1\n").with("leap_test.py", "import leap\n");
    let lines =
        [Line::text("leap.py\n```python\nx = 3\n```\n"), Line::text("leap.py\n```python\nx = 2\n```\n")];
    let command = |lines: &[Line]| {
        let script = project.script(lines);
        let request = ["run", "Make x two in leap.py.", "--model", &script, "--sandbox", "off", "--json"];
        fusee(&project)
            .args(request)
            .args(["--flow", "direct", "--verify", "grep 'x = 2' leap.py"])
            .env("FUSEE_TASK_REPLAN_MAX", "1")
            .run()
    };
    let events = command(&lines).exits(0).events();
    assert_eq!(project.read("leap.py"), "x = 2\n");
    insta::assert_snapshot!(outline(&events), @r"
    main: started
    main: stage direct 1
    main/direct: started
    main/direct: ok true
    main/direct: ok true
    main/direct: ok true
    main/direct: ok false
    main/direct: failed tool_execution_error
    main: stage direct 2
    main/direct.2: started
    main/direct.2: ok true
    main/direct.2: ok true
    main/direct.2: ok true
    main/direct.2: ok true
    main/direct.2: completed
    main: direct completed
    main: completed
    ");
    assert_eq!(report(&events)["files_changed"], json!(["leap.py"]));
    assert_eq!(report(&events)["files_read"], json!(["leap.py", "leap_test.py"]));
    let events = command(&[Line::text("No."), Line::text("No.")]).exits(1).events();
    assert_eq!(events.last().unwrap()["error"]["reason"], "output_format_failure");
}

#[test]
fn direct_work_shows_the_files_first_and_says_last_what_to_do() {
    let project = Project::new().with("leap.py", "x = 1\n").with("leap_test.py", "import leap\n");
    let script = project.script(&[
        Line::text("leap.py\n```python\nx = 3\n```\n"),
        Line::text("It is three.\n\nleap.py\n```python\nx = 2\n```\n"),
    ]);
    fusee(&project)
        .args(["run", "Make x two in leap.py.", "--model", &script, "--sandbox", "off", "--json"])
        .args(["--flow", "direct", "--verify", "grep 'x = 2' leap.py", "--record", "tape"])
        .env("FUSEE_TASK_REPLAN_MAX", "1")
        .run()
        .exits(0);
    let tape = project.read("tape");
    let asked: Vec<String> = tape
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter_map(|line| line["request"]["added"][0]["text"].as_str().map(str::to_owned))
        .collect();
    let files = |x: u32| {
        format!("The files:\n\nleap.py\n```\nx = {x}\n```\n\nleap_test.py\n```\nimport leap\n```\n\n")
    };
    let what = "the complete new content of each file that has to change: first the file's path on a line of its own, \
                then the whole file in a fenced block. Leave out files that stay as they are.";
    assert_eq!(
        asked,
        [
            format!("{}Make x two in leap.py.\n\nAnswer with {what}", files(1)),
            format!(
                "{}Make x two in leap.py.\n\nThe last attempt did not succeed: The work is not done: `grep 'x = 2' \
                 leap.py` does not pass.\n\n(no output)\n[exit code 1]\n\nFirst say in one sentence what is wrong. Then answer with \
                 {what}",
                files(3)
            ),
        ]
    );
}

#[test]
fn an_answer_whose_files_pass_is_done_although_it_repeats_a_protected_test() {
    let project = Project::new().with("leap.py", "x = 1\n").with("leap_test.py", "import leap\n");
    let answer = |x: u32| {
        format!("leap.py\n```python\nx = {x}\n```\n\nleap_test.py\n```python\nimport leap  # fixed\n```\n")
    };
    let run = |x: u32| {
        let script = project.script(&[Line::text(&answer(x))]);
        fusee(&project)
            .args(["run", "Make x two in leap.py.", "--model", &script, "--sandbox", "off", "--json"])
            .args(["--flow", "direct", "--verify", "grep 'x = 2' leap.py", "--benchmark"])
            .run()
    };
    let failed = run(3).exits(1);
    assert!(failed.stderr.contains("Test files cannot be changed"), "{}", failed.stderr);
    assert!(failed.stderr.contains("does not pass"), "{}", failed.stderr);
    run(2).exits(0);
    assert_eq!(project.read("leap.py"), "x = 2\n");
    assert_eq!(project.read("leap_test.py"), "import leap\n");
}
