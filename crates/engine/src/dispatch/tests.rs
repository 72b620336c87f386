//! Lines as typed after `/task`.

use super::*;
use crate::template::shipped;

fn registry() -> TemplateRegistry {
    let mut registry = TemplateRegistry::new();
    for shipped in shipped() {
        registry.register(shipped).unwrap();
    }
    registry
}

#[test]
fn quotes_and_json_hold_together() {
    let words = split(
        r#"review paths=["a b.rs", "c\"d]"] focus='two words' x="a \"b\"" y=\ z o={"k": {"l": 1}} "" "#,
    );
    assert_eq!(
        words.unwrap(),
        [
            "review",
            r#"paths=["a b.rs", "c\"d]"]"#,
            "focus=two words",
            "x=a \"b\"",
            "y= z",
            r#"o={"k": {"l": 1}}"#,
            ""
        ]
    );
    assert!(split("a 'b").is_err());
    assert!(split("a=[1").is_err());
    assert_eq!(split("  ").unwrap(), [""; 0]);
}

#[test]
fn the_first_word_decides_and_words_are_matched_last() {
    let (registry, tools) = (registry(), crate::workflow::standard_tools());
    let meaning = |first: &str, sentence: &str| match (Dispatcher { registry: &registry, tools: &tools })
        .resolve(first, sentence)
    {
        TaskRef::Workflow => "workflow".to_owned(),
        TaskRef::Template(found) => format!("template {}", found.template.name),
        TaskRef::Tool(name) => format!("tool {name}"),
        TaskRef::Ambiguous(several) => several,
        TaskRef::Words(found) => {
            format!("words {}", clear(&found).map_or("unclear", |found| found.template.name.as_str()))
        }
    };
    assert_eq!(meaning("(+ 1 2)", "(+ 1 2)"), "workflow");
    assert_eq!(meaning("review", "review"), "template review");
    assert_eq!(meaning("atomic:explanation", ""), "template explain");
    assert_eq!(meaning("system:read_file", ""), "tool read_file");
    assert_eq!(meaning("translate", "translate"), "template translate");
    assert_eq!(meaning("write", "write a commit message"), "words commit-message");
    assert_eq!(meaning("do", "do something nice"), "words unclear");
}
