//! Calls allowed by the rules of a task, part by part.

use fusee_tools::{ContentHash, FileChange, SeenVersion, ToolOutput};
use serde_json::json;

use super::super::task_rules::{FlowShape, RequiredReads, StageRequirements, StageSignal, TaskRules};
use super::FlowState;
use crate::agent::plan::Plan;

fn flow(shape: FlowShape) -> FlowState {
    FlowState::new(&TaskRules { shape, ..TaskRules::default() }, Plan::default())
}

fn staged() -> FlowState {
    flow(FlowShape::Staged(RequiredReads { files: vec!["a.txt".to_owned()], min_files: 1 }))
}

fn plan(flow: &mut FlowState) {
    let arguments = json!({ "action": "create", "tasks": [{ "description": "change a.txt" }] });
    flow.plan.call(arguments).expect("a plan");
}

fn change(flow: &mut FlowState) {
    let after = Some(ContentHash::of(b"new"));
    let changed = vec![FileChange { path: "a.txt".to_owned(), before: None, after, mode: None }];
    flow.facts.record_call("write_file", &ToolOutput { changed, ..ToolOutput::done("") });
}

#[test]
fn staged_work_advances_by_what_was_done_and_ends_with_a_change() {
    let mut flow = staged();
    assert!(flow.advance(0).is_empty() && flow.may_end().is_err());
    flow.facts.record_read("a.txt");
    assert_eq!((flow.advance(1).len(), flow.may_end().is_err()), (1, true));
    plan(&mut flow);
    assert_eq!((flow.advance(2).len(), flow.may_end().is_err()), (1, true));
    change(&mut flow);
    assert_eq!((flow.advance(3).len(), flow.may_end().is_ok()), (0, true));
}

#[test]
fn a_part_without_progress_is_stuck_from_the_next_turn_on() {
    let mut flow = staged();
    flow.advance(3);
    assert!(!flow.is_stuck(3) && flow.is_stuck(4));
    flow.facts.record_read("b.txt");
    flow.advance(4);
    assert!(!flow.is_stuck(4));
}

#[test]
fn the_nudge_comes_once_and_only_before_a_change() {
    let mut flow = staged();
    assert!(!flow.take_nudge());
    flow.facts.record_read("a.txt");
    plan(&mut flow);
    flow.advance(1);
    assert!(flow.take_nudge() && !flow.take_nudge());
    let mut changed = staged();
    changed.facts.record_read("a.txt");
    plan(&mut changed);
    change(&mut changed);
    changed.advance(1);
    assert!(!changed.take_nudge());
}

#[test]
fn a_stage_ends_by_its_own_signal_once_its_minimums_are_met() {
    let requirements =
        StageRequirements { id: "look".to_owned(), files_read: 1, ..StageRequirements::default() };
    let mut flow = flow(FlowShape::Stage(requirements));
    let kind = |flow: &mut FlowState, stage: &str| {
        flow.signal(json!({ "stage": stage, "summary": "seen" })).map_err(|feedback| feedback.kind).err()
    };
    assert_eq!(kind(&mut flow, "other"), Some("wrong_stage"));
    assert_eq!(kind(&mut flow, "look"), Some("stage_unmet"));
    assert_eq!((flow.missing().len(), flow.is_over()), (2, None));
    let seen = vec![SeenVersion { path: "a.txt".to_owned(), hash: ContentHash::of(b"") }];
    flow.facts.record_call("read_file", &ToolOutput { seen, ..ToolOutput::done("") });
    assert_eq!(kind(&mut flow, "look"), None);
    assert_eq!((flow.missing(), flow.is_over().as_deref()), (Vec::new(), Some("seen")));
}

#[test]
fn a_stage_without_a_signal_lacks_only_its_minimums() {
    let requirements =
        StageRequirements { signal: StageSignal::None, change: true, ..StageRequirements::default() };
    let mut flow = flow(FlowShape::Stage(requirements));
    assert_eq!(flow.missing(), ["no file has changed"]);
    change(&mut flow);
    assert!(flow.missing().is_empty());
}
