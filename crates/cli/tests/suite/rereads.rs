//! Repeated reads: unchanged content is not sent twice while it is still in the conversation, and the report
//! counts these cases.

use fusee_testkit::events::of_type;
use fusee_testkit::project::Project;
use fusee_testkit::script::Line;
use serde_json::{Value, json};

use crate::flows::{project, read, report, write};
use crate::support::{fusee, run_json};

const UNCHANGED: &str =
    "[Not changed since you last read it: the same text stands earlier in this conversation.]";

fn contents(events: &[Value]) -> Vec<String> {
    let result = |event: &&Value| event["content"].as_str().unwrap().to_owned();
    of_type(events, "tool_result").iter().map(result).collect()
}

fn replays(project: &Project, events: &[Value]) {
    fusee(project).args(["replay", events[0]["run"].as_str().unwrap()]).run().exits(0);
}

#[test]
fn an_unchanged_file_is_not_sent_again_and_a_changed_one_is() {
    let project = project();
    let script = project.script(&[
        read("a.txt"),
        read("tests/test_a.txt"),
        read("a.txt"),
        Line::call("shell", json!({"command": "echo more >> a.txt"})),
        read("a.txt"),
        write("a.txt"),
        read("a.txt"),
        read("tests/test_a.txt"),
        Line::call("read_file", json!({"path": "a.txt", "offset": 1, "limit": 1})),
        Line::text("Done."),
    ]);
    let events = run_json(&project, &script).run().exits(0).events();
    let output = contents(&events);
    let again = |n: usize| output[n] == UNCHANGED;
    assert_eq!(
        (0..output.len()).map(again).collect::<Vec<_>>(),
        [false, false, true, false, false, false, false, true, true],
        "{output:#?}"
    );
    assert!(output[4].contains("more") && output[6].contains("new"), "{output:#?}");
    let report = report(&events);
    assert_eq!(report["read_cache"], json!({"reads": 7, "hits": 3, "hit_rate": 0.429}));
    assert_eq!(report["feedback_counts"], json!({"unchanged_read": 3}));
    assert_eq!(report["tool_errors_total"], json!(0));
    replays(&project, &events);
}

#[test]
fn a_text_that_no_longer_stands_whole_is_sent_again() {
    let project = Project::new()
        .with("a.txt", &"a long line of text\n".repeat(10))
        .with("fusee.toml", "history_tool_truncate_chars = 20\n");
    let script = project.script(&[
        read("a.txt"),
        Line::call("list_dir", json!({})),
        read("a.txt"),
        Line::text("Done."),
    ]);
    let events = run_json(&project, &script).run().exits(0).events();
    let output = contents(&events);
    assert_eq!(output[0], output[2]);
    assert_eq!(report(&events)["read_cache"], json!({"reads": 2, "hits": 1, "hit_rate": 0.5}));
    assert_eq!(report(&events)["feedback_counts"], json!({}));
}
