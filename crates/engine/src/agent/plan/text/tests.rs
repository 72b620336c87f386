//! Round trips of a plan through an editor.

use serde_json::json;

use crate::agent::Plan;

fn plan() -> Plan {
    let mut plan = Plan::default();
    let tasks = json!([
        {"description": "look\naround", "goal": "know it", "status": "completed"},
        {"id": "fix", "description": "mend it. Really.", "priority": 2},
    ]);
    plan.call(json!({"action": "create", "tasks": tasks})).unwrap();
    plan.call(json!({"action": "update", "task_id": "1", "summary": "seen"})).unwrap();
    plan
}

fn tasks(plan: &Plan) -> String {
    plan.written().lines().filter(|line| !line.starts_with('#')).map(|line| format!("{line}\n")).collect()
}

#[test]
fn what_is_not_changed_comes_back_as_it_was() {
    let plan = plan();
    let expected = "\n[x] 1. look around\n    goal: know it\n    note: seen\n[ ] fix. mend it. Really.\n    priority: 2\n";
    assert_eq!(tasks(&plan), expected);
    let back = plan.rewritten(&plan.written()).unwrap();
    assert_eq!(back.written(), plan.written());
}

#[test]
fn tasks_are_added_moved_and_dropped_in_whatever_form_they_come() {
    let edited = "[~] fix. mend it\n- [ ] write a test. With care\nand another\n  goal: be sure\n";
    let back = plan().rewritten(edited).unwrap();
    assert_eq!(
        tasks(&back),
        "\n[~] fix. mend it\n[ ] 2. write a test. With care\n[ ] 3. and another\n    goal: be sure\n"
    );
    assert_eq!(plan().rewritten("# nothing\n\n").unwrap(), Plan::default());
}

#[test]
fn all_that_is_wrong_is_told_at_once() {
    let edited = "[ ] 1. one\n[ ] 1. again\n[ ] 7.\n    priority: high\n";
    assert_eq!(
        plan().rewritten(edited).unwrap_err(),
        [
            "line 2: duplicate task id 1",
            "line 3: task 7 has no description",
            "line 4: the priority `high` is not an integer"
        ]
    );
    let many: String = (0..51).map(|n| format!("task number {n}\n")).collect();
    assert_eq!(plan().rewritten(&many).unwrap_err(), ["a plan has at most 50 tasks; this one has 51"]);
}
