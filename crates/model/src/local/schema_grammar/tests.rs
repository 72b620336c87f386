//! Conversion of schemas to grammars.

use serde_json::json;

use super::*;

/// The rules of a schema except the basic ones.
fn own(schema: &Value) -> Vec<String> {
    let shared = |line: &&str| {
        !line.starts_with("space ::=")
            && BASICS.iter().all(|(name, ..)| !line.starts_with(&format!("{name} ::=")))
    };
    grammar(schema).lines().filter(shared).map(str::to_owned).collect()
}

#[test]
fn a_call_is_its_fields_in_order() {
    let schema = json!({
        "type": "object",
        "properties": {
            "thought": { "type": "string", "maxLength": 120 },
            "tool": { "const": "read_file" },
            "lines": { "type": "array", "items": { "type": "integer" }, "minItems": 1, "maxItems": 3 },
        },
        "required": ["thought", "tool"],
        "additionalProperties": false,
    });
    assert_eq!(
        own(&schema),
        [
            r#"root ::= "{" space root-thought0-kv "," space root-tool1-kv ("," space (root-lines2-kv))? "}" space"#,
            r#"root-lines2 ::= "[" space integer ("," space integer){0,2} "]" space"#,
            r#"root-lines2-kv ::= "\"lines\"" space ":" space root-lines2"#,
            r#"root-thought0 ::= "\"" char{0,120} "\"" space"#,
            r#"root-thought0-kv ::= "\"thought\"" space ":" space root-thought0"#,
            r#"root-tool1 ::= "\"read_file\"" space"#,
            r#"root-tool1-kv ::= "\"tool\"" space ":" space root-tool1"#,
        ]
    );
}

#[test]
fn alternatives_references_and_free_objects_have_rules() {
    let schema = json!({
        "anyOf": [{ "$ref": "#/$defs/tree" }, { "type": ["string", "null"] }, { "enum": ["a\"b", 1] }],
        "$defs": { "tree": { "type": "array", "items": { "$ref": "#/$defs/tree" } } },
    });
    assert_eq!(
        own(&schema),
        [
            r#"ref0-tree ::= "[" space (ref0-tree-item ("," space ref0-tree-item){0,})? "]" space"#,
            r#"ref0-tree-item ::= ref0-tree"#,
            r#"root ::= (ref0-tree | root-1 | root-2)"#,
            r#"root-1 ::= (string | null)"#,
            r#"root-2 ::= ("\"a\\\"b\"" | "1") space"#,
        ]
    );
    let counts = json!({ "type": "object", "additionalProperties": { "type": "integer" } });
    assert_eq!(
        own(&counts),
        [
            r#"root ::= "{" space (root-from0)? "}" space"#,
            r#"root-from0 ::= root-other-kv ("," space root-other-kv)*"#,
            r#"root-other-kv ::= string ":" space integer"#,
        ]
    );
}

#[test]
fn optional_fields_come_in_any_selection() {
    let schema =
        json!({ "type": "object", "properties": { "a": { "type": "null" }, "b": { "type": "null" } } });
    assert_eq!(
        own(&schema),
        [
            r#"root ::= "{" space (root-from0)? "}" space"#,
            r#"root-a0-kv ::= "\"a\"" space ":" space null"#,
            r#"root-b1-kv ::= "\"b\"" space ":" space null"#,
            r#"root-from0 ::= root-a0-kv ("," space (root-b1-kv))? | root-b1-kv"#,
        ]
    );
}

#[test]
fn what_is_too_deep_or_unknown_is_any_json() {
    let deep =
        (0..200).fold(json!({ "type": "null" }), |inner, _| json!({ "type": "array", "items": inner }));
    assert!(own(&deep).len() < 2 * MAX_DEPTH);
    assert_eq!(own(&json!({ "type": "nonsense" })), ["root ::= value"]);
    assert_eq!(own(&json!(true)), ["root ::= value"]);
    assert_eq!(own(&json!({ "$ref": "elsewhere" })), ["root ::= value"]);
}
