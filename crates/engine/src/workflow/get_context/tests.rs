//! Queries built from a program's arguments.

use serde_json::json;

use super::*;

fn asked(value: Json) -> Result<ContextQuery, String> {
    wanted(value.as_object().unwrap())
}

#[test]
fn words_come_from_everything_that_has_some() {
    let made = asked(json!({
        "query": "the parser",
        "inputs": {"topic": "lexing", "deep": [1, {"x": "tokens"}], "flag": true, "none": null},
        "history": "we spoke of trees",
        "files": ["a.rs"],
        "limit": 7,
    }));
    let query = MemoryQuery { words: "the parser lexing 1 tokens we spoke of trees".to_owned(), limit: 7 };
    assert_eq!(made, Ok(ContextQuery { query, listed: vec!["a.rs".to_owned()] }));
}

#[test]
fn what_cannot_be_asked_is_said() {
    let cases = [
        (json!({}), "nothing to search for"),
        (json!({"query": " "}), "nothing to search for"),
        (json!({"query": "x", "limit": 0}), "`limit` must be an integer from 1 to"),
        (json!({"query": "x", "limit": "many"}), "not \"many\""),
        (json!({"query": "x", "files": "a.rs"}), "`files` must be a list of paths"),
        (json!({"query": "x", "files": [1]}), "`files` contains 1"),
    ];
    for (value, expected) in cases {
        let problem = asked(value).unwrap_err();
        assert!(problem.contains(expected), "{problem}");
    }
}
