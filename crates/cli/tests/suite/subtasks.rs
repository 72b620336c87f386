//! Subtasks started by a call of a template's task: admission, shared limits, separate events, and
//! consistency after a kill at any journal write.

use fusee_testkit::events::{Part, of_type, read_checked};
use fusee_testkit::kill_injection::{KillInjector, KillTime};
use fusee_testkit::project::{Command, Project};
use fusee_testkit::script::Line;
use serde_json::{Value, json};

use crate::support::fusee;

fn template(name: &str, inner: &str) -> String {
    format!("<task name=\"{name}\" type=\"atomic\"><description>The task {name}</description>{inner}</task>")
}

fn project() -> Project {
    let lead = "<instructions>Lead the work.</instructions>";
    let part = "<inputs><input name=\"n\"/></inputs><instructions>Do part {{n}}.</instructions>";
    Project::new()
        .with(".fusee/templates/lead.xml", &template("lead", lead))
        .with(".fusee/templates/part.xml", &template("part", part))
}

fn task<'p>(project: &'p Project, model: &str, id: &str) -> Command<'p> {
    fusee(project).args(["task", "lead", "--model", model, "--sandbox", "off", "--run-id", id])
}

fn part(n: u32) -> Line {
    let inputs = json!({ "n": n.to_string() });
    Line::call("spawn_subtask", json!({"description": "a part", "name": "part", "inputs": inputs}))
}

fn result(outcome: &fusee_testkit::project::Outcome) -> Value {
    serde_json::from_str(&outcome.stdout).unwrap()
}

fn shown(project: &Project, id: &str) -> Vec<Value> {
    let shown = fusee(project).args(["show", id, "--json"]).run().exits(0);
    read_checked(&shown.stdout, Part::Whole)
}

#[test]
fn a_call_begins_a_task_whose_answer_is_its_result_and_whose_cost_is_the_callers() {
    let project = project();
    let model = project.script(&[
        part(1).usage(10, 1),
        Line::text("One is done.").matching("Do part 1\\.").usage(20, 2),
        Line::call("spawn_subtask", json!({"description": "Count the words of nothing"})).usage(30, 3),
        Line::text("None.").matching("Count the words of nothing").usage(40, 4),
        Line::text("All done.").usage(50, 5),
    ]);
    let done = task(&project, &model, "s").args(["--json"]).run().exits(0);
    let done = result(&done);
    assert_eq!((&done["status"], &done["content"]), (&json!("COMPLETE"), &json!("All done.")));
    assert_eq!(
        done["notes"]["metrics"],
        json!({"turns": 5, "input_tokens": 150, "output_tokens": 15}),
        "what all of them used"
    );
    let events = shown(&project, "s");
    let ends: Vec<(&Value, &Value)> =
        of_type(&events, "task_complete").iter().map(|end| (&end["task"], &end["answer"])).collect();
    assert_eq!(
        ends,
        [
            (&json!("main/sub-1"), &json!("One is done.")),
            (&json!("main/sub-2"), &json!("None.")),
            (&json!("main"), &json!("All done."))
        ]
    );
    let results: Vec<&Value> =
        of_type(&events, "tool_result").iter().map(|result| &result["content"]).collect();
    assert_eq!(results, [&json!("One is done."), &json!("None.")]);
    fusee(&project).args(["replay", "s"]).run().exits(0);
}

#[test]
fn what_may_not_begin_is_told_to_the_model() {
    let project = project();
    let spawn = |arguments: Value| Line::call("spawn_subtask", arguments);
    let model = project.script(&[
        spawn(json!({"description": "again", "name": "lead"})),
        spawn(json!({"description": "x", "name": "prat"})),
        spawn(json!({"description": "x", "name": "part"})),
        spawn(json!({"name": "part"})),
        part(1),
        Line::error(400, "bad").matching("Do part 1"),
        Line::text("I give up."),
    ]);
    task(&project, &model, "w").run().exits(0);
    let events = shown(&project, "w");
    let results = of_type(&events, "tool_result");
    let expected = [
        "subtask_failure: the subtask `lead` failed: `lead` with these inputs is under way already",
        "did you mean `part`?",
        "`n` (string) is missing",
        "`n` (string) is missing",
        "subtask_failure: the subtask `part` failed:",
    ];
    assert_eq!(results.len(), expected.len());
    for (result, expected) in results.iter().zip(expected) {
        let content = result["content"].as_str().unwrap();
        assert_eq!(result["ok"], json!(false), "{result}");
        assert!(content.contains(expected), "{expected}: {content}");
    }
    fusee(&project).args(["replay", "w"]).run().exits(0);
}

#[test]
fn tasks_begin_tasks_five_deep_and_no_deeper() {
    let down = "<inputs><input name=\"n\"/></inputs><instructions>Level {{n}}.</instructions>";
    let project = Project::new().with(".fusee/templates/down.xml", &template("down", down));
    let mut lines: Vec<Line> = (1..=6)
        .map(|n: u32| {
            let inputs = json!({ "n": n.to_string() });
            Line::call("spawn_subtask", json!({"description": "down", "name": "down", "inputs": inputs}))
        })
        .collect();
    lines.extend((0..6).map(|_| Line::text("Up.")));
    let model = project.script(&lines);
    let words = ["task", "down", "n=0", "--model", &model, "--run-id", "d"];
    fusee(&project).args(words).run().exits(0);
    let events = shown(&project, "d");
    assert_eq!(of_type(&events, "task_started").len(), 6, "the first and five below it");
    let refused: Vec<&str> = of_type(&events, "tool_result")
        .iter()
        .filter(|result| result["ok"] == json!(false))
        .map(|result| result["content"].as_str().unwrap())
        .collect();
    assert_eq!(
        refused,
        [
            "subtask_failure: the subtask `down` failed: tasks begin tasks at most 5 deep, and this would be one more"
        ]
    );
}

#[test]
fn turns_are_shared_by_all_of_them() {
    let project = project();
    let model = project.script(&[
        part(1),
        Line::call("think", json!({"thought": "hm"})),
        Line::text("One.").matching("Noted"),
        part(2),
        Line::text("never asked"),
    ]);
    // Four turns: one of the first, two of its subtask, one more; none is left for the second subtask.
    let done = task(&project, &model, "t").args(["--json", "--max-turns", "4"]).run().exits(3);
    let error = &result(&done)["notes"]["error"];
    assert_eq!((&error["type"], &error["reason"]), (&json!("RESOURCE_EXHAUSTION"), &json!("turns")));
    let events = shown(&project, "t");
    let last = of_type(&events, "tool_result").pop().unwrap()["content"].as_str().unwrap().to_owned();
    assert!(last.contains("the number of turns that all tasks together may have used is used up"), "{last}");
    assert_eq!(events.last().unwrap()["total_turns"], json!(4));
}

#[test]
fn a_template_says_whether_its_tasks_begin_others() {
    for (tools, offered) in [
        ("", true),
        ("<tools allow=\"read_file\"/>", false),
        ("<tools allow=\"read_file, spawn_subtask, think\"/>", true),
        ("<tools block=\"spawn_subtask\"/>", false),
    ] {
        let inner = format!("<instructions>Lead.</instructions>{tools}");
        let project = project().with(".fusee/templates/lead.xml", &template("lead", &inner));
        let model = project.script(&[part(1), Line::text("Done."), Line::text("Done.")]);
        task(&project, &model, "o").run().exits(0);
        let events = shown(&project, "o");
        assert_eq!(of_type(&events, "task_started").len() == 2, offered, "{tools}");
        let result = of_type(&events, "tool_result")[0]["content"].as_str().unwrap().to_owned();
        assert_eq!(result.contains("There is no tool `spawn_subtask`"), !offered, "{tools}: {result}");
    }
}

#[test]
fn what_a_request_asks_for_and_cannot_have_is_refused_or_told() {
    let model_of_its_own = template("part", "<model>gpt-9</model><instructions>Do it.</instructions>");
    let project = project().with(".fusee/templates/part.xml", &model_of_its_own);
    let model = project.script(&[
        Line::call("spawn_subtask", json!({"description": "a part", "name": "part"})),
        Line::text("Part."),
        Line::text("Done."),
    ]);
    task(&project, &model, "m").run().exits(0);
    let warning = of_type(&shown(&project, "m"), "warning")[0].clone();
    assert_eq!((&warning["code"], &warning["task"]), (&json!("other_model"), &json!("main")));
    assert!(warning["message"].as_str().unwrap().contains("`part` names the model `gpt-9`"), "{warning}");

    let text =
        "(defatom say (params) (instructions \"Say it.\")) (say (history_config (dict \"use_histry\" true)))";
    let refused = fusee(&project).args(["task", text, "--model", &model, "--json"]).run();
    assert_eq!(result(&refused)["notes"]["error"]["reason"], json!("configuration_error"), "{refused:#?}");
}

/// A command before a subtask, one inside it, one after it; each leaves a line when it runs.
fn swept(project: &Project) -> String {
    let note = |word: &str| Line::call("shell", json!({"command": format!("echo {word} >> effects.txt")}));
    project.script(&[
        note("before").usage(10, 1),
        part(1).usage(10, 1),
        note("inside").matching("Do part 1").usage(10, 1),
        Line::text("Part one.").usage(10, 1),
        note("after").usage(10, 1),
        Line::text("All done.").usage(10, 1),
    ])
}

fn is_whole(project: &Project, case: &str) {
    let events = shown(project, "sweep");
    let interrupted =
        of_type(&events, "tool_result").iter().filter(|result| result["fate"] == "interrupted").count();
    assert!(interrupted <= 1, "{case}: more than the command in flight: {interrupted}");
    let effects = project.read("effects.txt");
    for word in ["before", "inside", "after"] {
        let times = effects.lines().filter(|line| *line == word).count();
        assert!(
            times == 1 || (times == 0 && interrupted == 1),
            "{case}: `{word}` {times} times: {effects:?}"
        );
    }
    let last = events.last().unwrap();
    assert_eq!((&last["status"], &last["answer"]), (&json!("completed"), &json!("All done.")), "{case}");
    assert_eq!((&last["total_turns"], &last["total_tokens"]), (&json!(6), &json!(66)), "{case}");
    let replayed = fusee(project).args(["replay", "sweep"]).run();
    assert_eq!((replayed.code, replayed.stdout.as_str()), (Some(0), "All done.\n"), "{case}: {replayed:#?}");
    project.assert_no_process_left();
}

fn sweep(when: KillTime) {
    let killer = KillInjector::build();
    let writes = {
        let project = project();
        let script = swept(&project);
        let (command, trace) = killer.watch(task(&project, &script, "sweep"));
        command.run().exits(0);
        is_whole(&project, "undisturbed");
        trace.count()
    };
    assert!(writes >= 8, "only {writes} journal writes were seen");
    for n in 1..=writes {
        let project = project();
        let script = swept(&project);
        killer.kill_at(task(&project, &script, "sweep"), n, when).run();
        project.assert_no_process_left();
        let case = format!("killed {when:?} write {n}");
        let resumed = fusee(&project).args(["resume", "sweep"]).run();
        if resumed.code == Some(2) {
            // Killed before the run was journaled: then nothing may have happened, and it can be started
            // again.
            assert_eq!(project.read("effects.txt"), "", "{case}: {resumed:#?}");
            task(&project, &script, "sweep").run().exits(0);
        }
        is_whole(&project, &case);
    }
}

#[test]
fn a_template_and_its_subtask_survive_a_kill_after_any_journal_write() {
    sweep(KillTime::After);
}

#[test]
fn a_template_and_its_subtask_survive_a_kill_before_any_journal_write() {
    sweep(KillTime::Before);
}

#[test]
fn a_template_and_its_subtask_survive_a_kill_in_the_middle_of_any_journal_write() {
    sweep(KillTime::Torn);
}
