//! Tool lists within and beyond the limits.

use serde_json::json;

use super::*;

fn lists(allow: Option<&[&str]>, block: &[&str]) -> ToolLists {
    let list = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    ToolLists { allow: allow.map(list), block: list(block) }
}

#[test]
fn names_begin_with_the_servers_and_are_callable() {
    let mut offer = ToolList::default();
    let long = "x".repeat(100);
    offer.add(
        &[json!({"name": "do.it"}), json!({"name": long}), json!({"noname": 1})],
        "my server",
        &lists(None, &[]),
    );
    let names: Vec<&str> = offer.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["my_server_do_it", &format!("my_server_{}", "x".repeat(54))]);
    assert_eq!(offer.tools[0].parameters, json!({"type": "object"}));
}

#[test]
fn lists_decide_and_what_is_too_large_is_left_out_and_said() {
    let large =
        json!({"name": "large", "inputSchema": {"type": "object", "description": "x".repeat(20_000)}});
    let tools = [json!({"name": "a", "annotations": {"readOnlyHint": true}}), json!({"name": "b"}), large];
    let mut offer = ToolList::default();
    offer.add(&tools, "my server", &lists(None, &["b"]));
    assert_eq!(offer.tools.len(), 1);
    assert_eq!(offer.tools[0].category, Access::Read);
    assert!(offer.left_out[0].starts_with("`large`: its schema has 20"), "{:?}", offer.left_out);
    let mut offer = ToolList::default();
    offer.add(&tools, "my server", &lists(Some(&["b"]), &[]));
    assert_eq!(offer.tools.iter().map(|tool| tool.tool.as_str()).collect::<Vec<_>>(), ["b"]);
    assert!(offer.left_out.is_empty());
}
