//! Snapshots of complete transcripts.

use insta::assert_snapshot;

use super::*;
use crate::ui::fixtures;

fn shown(full: bool) -> String {
    let mut out = Vec::new();
    let mut ui = Transcript::new(&mut out, full);
    for (_, event) in fixtures::scene() {
        ui.show(&event).unwrap();
    }
    ui.close().unwrap();
    // The first line has the local time.
    String::from_utf8(out).unwrap().split_once('\n').unwrap().1.to_owned()
}

#[test]
fn a_run_can_be_read_from_its_request_to_its_summary() {
    assert_snapshot!(shown(false));
}

#[test]
fn results_are_cut_unless_asked_for_in_full() {
    let mut out = Vec::new();
    let content: String = (1..=12).map(|n| format!("line {n}\n")).collect();
    let result = |content: String| ToolResult {
        call_id: "c".into(),
        ok: true,
        content,
        truncated: false,
        duration_ms: 0,
        exit_code: None,
        fate: None,
    };
    Transcript::new(&mut out, false).result(&result(content.clone())).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert!(text.contains("  | line 8\n  | … 4 more lines\n"), "{text}");
    let mut out = Vec::new();
    Transcript::new(&mut out, true).result(&result(content)).unwrap();
    assert!(String::from_utf8(out).unwrap().contains("  | line 12\n"));
}
