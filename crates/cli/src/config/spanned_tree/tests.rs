//! Both formats give the same tree, with positions.

use super::*;

fn plain(node: &Node) -> serde_json::Value {
    match &node.value {
        Leaf::Text(text) => text.as_str().into(),
        Leaf::Switch(on) => (*on).into(),
        Leaf::Whole { number, .. } => i64::try_from(number.unwrap()).unwrap().into(),
        Leaf::Number { number, .. } => (*number).into(),
        Leaf::List(items) => items.iter().map(plain).collect(),
        Leaf::Table(entries) => {
            entries.iter().map(|entry| (entry.name.clone(), plain(&entry.node))).collect()
        }
        Leaf::Other(text) => format!("other {text}").into(),
    }
}

#[test]
fn json_is_read_as_serde_reads_it_and_knows_where_things_stand() {
    let text = r#" {"a": [1, -2, 3.5, 1e3, true], "b\n": {"c": "x\"y\\", "ü": "☃"}, "e": {}, "l": []} "#;
    let tree = parse_json(text).unwrap();
    assert_eq!(plain(&tree), serde_json::from_str::<serde_json::Value>(text).unwrap());
    let Leaf::Table(entries) = &tree.value else { panic!("{tree:?}") };
    let at = entries[1].node.span;
    assert_eq!(&text[at.start()..at.end()], r#"{"c": "x\"y\\", "ü": "☃"}"#);
    assert_eq!(plain(&parse_json("null").unwrap()), "other null");
}

#[test]
fn toml_and_json_of_the_same_thing_are_the_same_tree() {
    let toml = "a = [1, 2]\n[b]\nc = \"x\"\nd = false\n";
    let json = r#"{"a": [1, 2], "b": {"c": "x", "d": false}}"#;
    let (table, errors) = DeTable::parse_recoverable(toml);
    assert!(errors.is_empty());
    assert_eq!(plain(&Node::of_toml(&table)), plain(&parse_json(json).unwrap()));
}

#[test]
fn a_broken_json_text_says_where() {
    let (span, words) = parse_json("{\n  \"a\": 1,\n  b\n}").unwrap_err();
    assert_eq!((span.start(), words.as_str()), (14, "key must be a string"));
    let deep = "[".repeat(100) + &"]".repeat(100);
    assert_eq!(parse_json(&deep).unwrap_err().1, "more than 64 levels deep");
}
