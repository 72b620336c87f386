//! Typical model answers, checked against each declared format.

use fusee_lang::OutputKind;
use serde_json::json;

use super::*;

fn format(schema: Option<&str>) -> OutputFormat {
    OutputFormat { kind: OutputKind::Json, schema: schema.map(str::to_owned) }
}

fn judged(answer: &str, schema: Option<&str>) -> OutputVerdict {
    check_output(answer, Some(&format(schema)), None, true)
}

#[test]
fn text_is_not_looked_at() {
    assert_eq!(check_output("{", None, None, true), OutputVerdict::Text);
    let text = OutputFormat { kind: OutputKind::Text, schema: None };
    assert_eq!(check_output("{", Some(&text), None, true), OutputVerdict::Text);
}

#[test]
fn fences_are_stripped_and_small_mistakes_mended() {
    assert_eq!(judged("{\"a\": 1}", None), OutputVerdict::Parsed(json!({"a": 1})));
    assert_eq!(judged("```json\n[1, 2]\n```", None), OutputVerdict::Parsed(json!([1, 2])));
    assert_eq!(
        judged("Here it is:\n```\n{\"a\": 1}\n```\nDone.", None),
        OutputVerdict::Parsed(json!({"a": 1}))
    );
    assert_eq!(judged("```json\n{'a': True,}\n```", None), OutputVerdict::Parsed(json!({"a": true})));
    let strictly = check_output("{'a': True,}", Some(&format(None)), None, false);
    assert!(matches!(strictly, OutputVerdict::Unparsed(_)), "{strictly:?}");
}

#[test]
fn what_is_no_json_says_where() {
    assert_eq!(
        judged("not json", None),
        OutputVerdict::Unparsed("expected ident at line 1 column 2".to_owned())
    );
    assert!(matches!(judged("{\"a\": ", None), OutputVerdict::Unparsed(_)));
    assert!(matches!(judged("", None), OutputVerdict::Unparsed(_)));
}

#[test]
fn every_word_of_the_schema_is_held() {
    for (word, good, bad) in [
        ("object", "{}", "[]"),
        ("array", "[1]", "{}"),
        ("[]", "[]", "3"),
        ("string[]", "[\"a\"]", "{}"),
        ("number", "1.5", "\"1\""),
        ("boolean", "true", "0"),
    ] {
        assert!(matches!(judged(good, Some(word)), OutputVerdict::Parsed(_)), "{word}");
        assert!(matches!(judged(bad, Some(word)), OutputVerdict::Mismatched(_)), "{word}");
    }
    assert_eq!(
        judged("[\"a\", 2]", Some("string[]")),
        OutputVerdict::Mismatched(Mismatch {
            error_type: "type_mismatch".to_owned(),
            message: "expected a string at /1, found number".to_owned(),
            location: "/1".to_owned(),
        })
    );
}

#[test]
fn a_json_schema_is_held_and_the_place_named() {
    let value = json!({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]});
    let schema = OutputSchema { path: "s.json".to_owned(), value };
    let judged = |answer: &str| check_output(answer, Some(&format(Some("s.json"))), Some(&schema), true);
    assert_eq!(judged("{\"a\": 1}"), OutputVerdict::Parsed(json!({"a": 1})));
    let OutputVerdict::Mismatched(mismatch) = judged("{\"a\": \"x\"}") else { panic!("it does not fit") };
    assert_eq!((mismatch.error_type.as_str(), mismatch.location.as_str()), ("schema_violation", "/a"));
    assert_eq!(format(Some("s.json")).schema_file(), Some("s.json"));
    assert_eq!(format(Some("string[]")).schema_file(), None);
}

#[test]
fn a_bare_value_is_repaired_where_it_means_one_thing() {
    let json = |schema: &str| OutputFormat { kind: OutputKind::Json, schema: Some(schema.to_owned()) };
    let judged = |answer: &str, schema: &str, repair| check_output(answer, Some(&json(schema)), None, repair);
    assert_eq!(judged("True", "boolean", true), OutputVerdict::Parsed(json!(true)));
    assert_eq!(judged("```\nFalse\n```", "boolean", true), OutputVerdict::Parsed(json!(false)));
    let any = OutputFormat { kind: OutputKind::Json, schema: None };
    assert_eq!(check_output("None", Some(&any), None, true), OutputVerdict::Parsed(json!(null)));
    assert_eq!(check_output("'it is so'", Some(&any), None, true), OutputVerdict::Parsed(json!("it is so")));
    for unclear in ["True, I think", "It is True.", "about 42", "42 apples", "yes", "", "'it's'"] {
        assert!(
            matches!(check_output(unclear, Some(&any), None, true), OutputVerdict::Unparsed(_)),
            "{unclear}"
        );
    }
    let OutputVerdict::Mismatched(wrong) = judged("True", "boolean", false) else { panic!("not JSON") };
    assert_eq!((wrong.error_type.as_str(), wrong.location.as_str()), ("parse_error", ""));
}
