//! Invalid reports are not emitted.

use std::collections::BTreeMap;

use super::*;

fn report() -> TaskReport {
    TaskReport {
        task_id: "main".to_owned(),
        description: "Do it.".to_owned(),
        status: TaskStatus::Completed,
        attempts: 1,
        replan_max: 0,
        files_changed: vec!["a".to_owned()],
        files_run_by_convention: vec![],
        files_read: vec!["a".to_owned(), "b".to_owned()],
        plan_steps: 0,
        tool_calls_total: 3,
        tool_errors_total: 1,
        tool_call_counts: BTreeMap::from([("read_file".to_owned(), 2), ("shell".to_owned(), 1)]),
        tool_error_counts: BTreeMap::from([("shell".to_owned(), 1)]),
        analysis_retries: 0,
        feedback_counts: BTreeMap::new(),
        error: None,
        read_cache: None,
        verify: None,
        verified: Some(false),
    }
}

#[test]
fn a_report_that_holds_together_is_emitted() {
    assert_eq!(checked(report()), Event::TaskReport(report()));
}

#[test]
fn every_problem_of_another_is_named() {
    let wrong = TaskReport {
        task_id: String::new(),
        description: " ".to_owned(),
        status: TaskStatus::Failed,
        attempts: 0,
        files_changed: vec![".fusee/journal.db".to_owned()],
        files_read: vec!["b".to_owned(), "a".to_owned()],
        tool_calls_total: 9,
        tool_errors_total: 9,
        tool_error_counts: BTreeMap::from([("read_file".to_owned(), 3)]),
        ..report()
    };
    let Event::TaskReportInvalid { task_id, problems } = checked(wrong) else { panic!("it was emitted") };
    assert_eq!(task_id, "");
    assert_eq!(
        problems,
        [
            "task_id is empty",
            "description is empty",
            "attempts is 0",
            "tool_calls_total is not the sum of tool_call_counts",
            "tool_errors_total is not the sum of tool_error_counts",
            "a tool failed more often than it was called",
            "files_read is not sorted or contains duplicates",
            "files_changed contains files of the runtime",
            "the task failed but error is missing",
        ]
    );
}
