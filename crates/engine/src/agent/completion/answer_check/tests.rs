//! JSON answers in the forms that models send.

use serde_json::json;

use super::*;

#[test]
fn fences_and_words_around_the_value_are_taken_off() {
    let check = JsonAnswer::new(&json!({ "type": "object", "required": ["n"] })).expect("a schema");
    for answer in [
        r#"{"n": 1}"#,
        "```json\n{\"n\": 1}\n```",
        "Here it is:\n\n{\"n\": 1}\n\nThat is all.",
        "  \n```\n{\"n\": 1}```",
    ] {
        assert_eq!(check.read(answer), Ok(json!({ "n": 1 })), "{answer}");
    }
}

#[test]
fn a_complaint_names_every_place() {
    let schema = json!({ "type": "array", "items": { "type": "integer" }, "minItems": 3 });
    let check = JsonAnswer::new(&schema).expect("a schema");
    let problem = check.read(r#"["x", 2]"#).expect_err("two mistakes");
    assert!(problem.contains("at `/0`") && problem.contains("has less than 3 items"), "{problem}");
    assert!(check.read("no JSON at all").expect_err("none").starts_with("it is not JSON"));
}
