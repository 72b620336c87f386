//! Recorded answers in every form that a journal may hold.

use serde_json::{Value, json};

use super::*;

#[test]
fn texts_are_read_in_every_form_that_was_ever_recorded() {
    let read = |value: Value| match TextWait::deserialize(value) {
        Ok(TextWait::Text(text) | TextWait::Workflow { answer: text }) => format!("{text:?}"),
        Ok(TextWait::Unanswered { unanswered }) => format!("{unanswered:?}"),
        Ok(TextWait::WorkflowCancelled { .. }) => "Cancelled".to_owned(),
        Err(_) => "no answer".to_owned(),
    };
    let read = |forms: &[Value]| forms.iter().cloned().map(read).collect::<Vec<_>>();
    let current = [json!("red"), json!(null), json!({"unanswered": "out_of_time"})];
    assert_eq!(read(&current), ["Some(\"red\")", "None", "OutOfTime"]);
    let of_workflows = [json!({"answer": "red"}), json!({"answer": null}), json!({"cancelled": true})];
    assert_eq!(read(&of_workflows), ["Some(\"red\")", "None", "Cancelled"]);
    assert_eq!(read(&[json!(7), json!({"approved": true})]), ["no answer", "no answer"]);
}
