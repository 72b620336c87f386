//! Which mistakes in arguments are repaired, and which answers the others get.

use std::borrow::Cow;

use insta::assert_snapshot;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::parse;
use crate::tool::{Access, ToolDefinition};

fn definition() -> ToolDefinition {
    ToolDefinition {
        name: Cow::Borrowed("sample"),
        description: Cow::Borrowed("for these tests"),
        parameters: json!({
            "type": "object",
            "properties": {
                "path": { "type": "string" },
                "limit": { "type": "integer", "minimum": 1, "maximum": 1000 },
                "timeout": { "type": "number" },
                "all": { "type": "boolean" },
                "paths": { "type": "array", "items": { "type": "string" }, "maxItems": 3 },
                "action": { "type": "string", "enum": ["create", "list"] },
                "tasks": { "type": "array", "items": {
                    "type": "object",
                    "properties": { "description": { "type": "string" }, "id": { "type": ["string", "null"] } },
                    "required": ["description"],
                    "additionalProperties": false
                } }
            },
            "required": ["path"],
            "additionalProperties": false
        }),
        category: Access::Read,
        aliases: &[],
        parameter_aliases: &[("file_path", "path"), ("timeout_ms", "timeout")],
    }
}

fn parsed(raw: &str) -> Value {
    parse(raw, &definition()).unwrap()
}

fn refused(raw: &str) -> String {
    parse(raw, &definition()).unwrap_err()
}

#[test]
fn strict_json_passes_as_it_is() {
    assert_eq!(parsed(r#"{"path":"a","limit":5,"all":true}"#), json!({"path": "a", "limit": 5, "all": true}));
}

#[test]
fn fences_trailing_commas_and_single_quotes_are_read() {
    assert_eq!(
        parsed("```json\n{'path': 'a b', 'paths': ['x', 'y',],}\n```"),
        json!({"path": "a b", "paths": ["x", "y"]})
    );
}

#[test]
fn python_literals_are_read() {
    assert_eq!(parsed("{'path': 'a', 'all': True, 'limit': None}"), json!({"path": "a", "all": true}));
}

#[test]
fn raw_line_breaks_and_undoubled_backslashes_in_strings_are_read() {
    assert_eq!(
        parsed("{\"path\": \"one\ntwo \\d+\\.\\u00e9\\ud83d\\ude00\",}"),
        json!({"path": "one\ntwo \\d+\\.é😀"})
    );
}

#[test]
fn escaped_quote_in_single_quotes_is_read() {
    assert_eq!(parsed(r"{'path': 'it\'s'}"), json!({"path": "it's"}));
}

#[test]
fn aliases_become_names_and_milliseconds_seconds() {
    assert_eq!(parsed(r#"{"file_path":"a","timeout_ms":1500}"#), json!({"path": "a", "timeout": 1.5}));
}

#[test]
fn an_alias_that_contradicts_its_name_is_refused() {
    assert_snapshot!(refused(r#"{"file_path":"a","path":"b"}"#), @r#"
    The arguments of sample do not fit:
    - `file_path` and `path` are the same parameter; give `path` only
    Expected: { path: string, limit?: integer, timeout?: number, all?: boolean, paths?: [string], action?: "create" | "list", tasks?: [{ description: string, id?: string | null }] }
    "#);
}

#[test]
fn values_of_another_type_with_one_reading_are_converted() {
    let raw =
        r#"{"path":7,"limit":"five hundred","timeout":"2.5","all":"False","paths":"one","action":"LIST"}"#;
    assert_eq!(
        parsed(raw),
        json!({"path": "7", "limit": 500, "timeout": 2.5, "all": false, "paths": ["one"], "action": "list"})
    );
    assert_eq!(parsed(r#"{"path":"a","limit":3.0}"#), json!({"path": "a", "limit": 3}));
    assert_eq!(parsed(r#"{"path":"a","limit":"twenty-one"}"#), json!({"path": "a", "limit": 21}));
    assert_eq!(parsed(r#"{"path":"a","paths":"[\"x\",\"y\"]"}"#), json!({"path": "a", "paths": ["x", "y"]}));
}

#[test]
fn wrapped_and_bare_arguments_are_unwrapped() {
    assert_eq!(parsed(r#"{"arguments":{"path":"a"}}"#), json!({"path": "a"}));
    assert_eq!(parsed(r#""{\"path\":\"a\"}""#), json!({"path": "a"}));
    assert_eq!(parsed(r#""a.txt""#), json!({"path": "a.txt"}));
}

#[test]
fn null_means_absent_where_null_is_no_value() {
    assert_eq!(
        parsed(r#"{"path":"a","limit":null,"tasks":[{"description":"d","id":null}]}"#),
        json!({"path": "a", "tasks": [{"description": "d", "id": null}]})
    );
}

#[test]
fn every_problem_is_told_at_once() {
    let raw = r#"{"pth":"a","limit":0,"paths":["a","b","c","d"],"action":"crate","all":"maybe","tasks":[{"id":3,"descrption":"x"}]}"#;
    assert_snapshot!(refused(raw), @r#"
    The arguments of sample do not fit:
    - `path` is missing (string, required)
    - unknown parameter `pth`: did you mean `path` or `paths`?
    - `limit` must be at least 1, not 0
    - `paths` must be at most 3 items, not 4
    - `action` must be one of "create", "list", not "crate"
    - `all` must be boolean, not the string "maybe"
    - `tasks[0].description` is missing (string, required)
    - unknown parameter `tasks[0].descrption`: did you mean `description`?
    Expected: { path: string, limit?: integer, timeout?: number, all?: boolean, paths?: [string], action?: "create" | "list", tasks?: [{ description: string, id?: string | null }] }
    "#);
}

#[test]
fn text_that_was_cut_off_is_never_completed() {
    for raw in [r#"{"path":"a"#, r#"{"path":"a""#, r#"{"path":"a","paths":["b""#, r#"{"path":"#, r#"{"path""#]
    {
        assert!(refused(raw).contains("not valid JSON"), "{raw}");
    }
}

#[test]
fn what_could_mean_two_things_is_refused() {
    for raw in [
        "{'path': 'it's'}",
        r#"{"path":"a"} {"path":"b"}"#,
        r#"{"path":"a" "limit":1}"#,
        "{path: a}",
        r#"{"path":"a","path":"b",}"#,
    ] {
        assert!(refused(raw).contains("not valid JSON"), "{raw}");
    }
    assert_snapshot!(refused(r#"{"path": a.txt}"#), @r#"
    The arguments of sample are not valid JSON: text must stand in double quotes, at line 1 column 10 near `a.txt}` (strictly: expected value at line 1 column 10).
    Send one JSON object: { path: string, limit?: integer, timeout?: number, all?: boolean, paths?: [string], action?: "create" | "list", tasks?: [{ description: string, id?: string | null }] }
    "#);
}

#[test]
fn nesting_is_bounded() {
    assert!(refused(&"[".repeat(10_000)).contains("nested too deeply"));
}

#[test]
fn an_empty_text_is_an_empty_object() {
    assert!(refused("").contains("`path` is missing"));
}

proptest! {
    #[test]
    fn any_string_survives_the_lenient_reader(text in any::<String>()) {
        // The trailing comma forces the repair path.
        let raw = format!("{{\"path\": {},}}", Value::String(text.clone()));
        prop_assert_eq!(parsed(&raw), json!({"path": text}));
    }

    #[test]
    fn no_text_makes_it_panic(text in any::<String>()) {
        let _ = parse(&text, &definition());
    }

    #[test]
    fn no_damaged_object_makes_it_panic(cut in 0usize..80, text in "[a-z'\"\\\\{}\\[\\],: \\n`]{0,12}") {
        let raw = r#"{"path":"a","limit":"5","paths":["b",'c',],"tasks":[{"description":"é\u00e9"}]}"#;
        let cut = (0..=cut.min(raw.len())).rev().find(|at| raw.is_char_boundary(*at)).unwrap();
        let _ = parse(&format!("{}{text}{}", &raw[..cut], &raw[cut..]), &definition());
    }
}
