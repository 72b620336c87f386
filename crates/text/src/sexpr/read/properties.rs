//! Parser and formatter on generated texts: reading is the inverse of writing, and formatting is idempotent.

use proptest::prelude::*;

use super::*;
use crate::sexpr::{Indent, layout};

/// A generated expression, independent of any text.
#[derive(Clone, Debug, PartialEq)]
enum Datum {
    List(Vec<Datum>),
    Quote(Box<Datum>),
    Symbol(String),
    Keyword(String),
    Text(String),
    Int(i64),
    Float(f64),
    Bool(bool),
    Nil,
}

fn datum() -> impl Strategy<Value = Datum> {
    let names = prop_oneof![
        "[a-z][a-z0-9_:?!-]{0,18}",
        Just("let".to_owned()),
        Just("defun".to_owned()),
        Just("if".to_owned())
    ];
    let words =
        names.prop_filter("words with a meaning", |name| !["true", "false", "nil"].contains(&name.as_str()));
    let leaf = prop_oneof![
        4 => words.clone().prop_map(Datum::Symbol),
        1 => words.prop_map(Datum::Keyword),
        2 => any::<String>().prop_map(Datum::Text),
        2 => any::<i64>().prop_map(Datum::Int),
        1 => any::<f64>().prop_filter("finite", |f| f.is_finite()).prop_map(Datum::Float),
        1 => any::<bool>().prop_map(Datum::Bool),
        1 => Just(Datum::Nil),
    ];
    leaf.prop_recursive(6, 80, 8, |inner| {
        prop_oneof![
            5 => prop::collection::vec(inner.clone(), 0..8).prop_map(Datum::List),
            1 => inner.prop_map(|datum| Datum::Quote(Box::new(datum))),
        ]
    })
}

/// White space, blank lines and comments between expressions.
fn gap() -> impl Strategy<Value = String> {
    prop_oneof![4 => Just(" ".to_owned()), 1 => "[ \n]{1,4}", 1 => "[ \n]?; [a-z()\"' ]{0,12}\n[ \n]{0,2}"]
}

fn spell(datum: &Datum, gaps: &mut dyn Iterator<Item = String>, out: &mut String) {
    match datum {
        Datum::List(items) => {
            out.push('(');
            for item in items {
                out.push_str(&gaps.next().unwrap_or_else(|| " ".into()));
                spell(item, gaps, out);
            }
            out.push_str(&gaps.next().unwrap_or_default());
            out.push(')');
        }
        Datum::Quote(item) => {
            out.push('\'');
            out.push_str(gaps.next().filter(|gap| gap.contains(';')).as_deref().unwrap_or(""));
            spell(item, gaps, out);
        }
        Datum::Symbol(name) => out.push_str(name),
        Datum::Keyword(name) => out.push_str(&format!(":{name}")),
        Datum::Text(text) => out.push_str(&serde_json::to_string(text).unwrap().replace('\u{7f}', "\\u007f")),
        Datum::Int(value) => out.push_str(&value.to_string()),
        Datum::Float(value) => out.push_str(&format!("{value:?}")),
        Datum::Bool(value) => out.push_str(&value.to_string()),
        Datum::Nil => out.push_str("nil"),
    }
}

fn data(tree: &Tree, node: NodeId) -> Datum {
    let items = || tree.items(node).iter().map(|item| data(tree, *item));
    match tree.kind(node) {
        NodeKind::List => Datum::List(items().collect()),
        NodeKind::Quote => Datum::Quote(Box::new(items().next().unwrap())),
        NodeKind::Symbol => Datum::Symbol(tree.text(node).to_owned()),
        NodeKind::Keyword => Datum::Keyword(tree.text(node).to_owned()),
        NodeKind::String => Datum::Text(tree.text(node).to_owned()),
        NodeKind::Int(value) => Datum::Int(value),
        NodeKind::Float(value) => Datum::Float(value),
        NodeKind::Bool(value) => Datum::Bool(value),
        NodeKind::Nil => Datum::Nil,
        NodeKind::Unreadable => panic!("unreadable in a readable text"),
    }
}

fn indent(head: &str) -> Option<Indent> {
    match head {
        "let" => Some(Indent::Body(1)),
        "defun" => Some(Indent::Body(2)),
        "if" => Some(Indent::Align),
        _ => None,
    }
}

fn comments(tree: &Tree) -> Vec<String> {
    tree.comments.iter().map(|comment| tree.source.slice(comment.span).to_owned()).collect()
}

fn clean(text: &str) -> Tree {
    let (tree, problems) = read(&Source::new("t", text));
    assert_eq!(problems.into_sorted(), [], "in {text:?}");
    tree
}

proptest! {
    #[test]
    fn what_is_spelled_is_read_and_what_is_laid_out_is_the_same(
        written in prop::collection::vec(datum(), 0..5),
        gaps in prop::collection::vec(gap(), 0..60),
    ) {
        let mut gaps = gaps.into_iter();
        let mut text = String::new();
        for item in &written {
            spell(item, &mut gaps, &mut text);
            text.push('\n');
        }
        let tree = clean(&text);
        let read_back: Vec<Datum> = tree.roots().iter().map(|root| data(&tree, *root)).collect();
        prop_assert_eq!(&read_back, &written);

        let laid_out = layout(&tree, &indent);
        let again = clean(&laid_out);
        let after: Vec<Datum> = again.roots().iter().map(|root| data(&again, *root)).collect();
        prop_assert_eq!(&after, &written, "laid out as {}", laid_out);
        prop_assert_eq!(comments(&again), comments(&tree));
        prop_assert_eq!(layout(&again, &indent), laid_out);
    }

    #[test]
    fn any_text_gives_a_tree_whose_spans_lie_in_it(text in "[()' \n;\"\\\\a-c0-9.:#\\[\u{e9}\u{1b}u{}-]{0,80}") {
        let source = Source::new("t", text.as_str());
        let (tree, problems) = read(&source);
        for node in tree.all() {
            prop_assert!(text.get(tree.span(node).range()).is_some());
        }
        for problem in problems.iter() {
            prop_assert!(text.get(problem.span.range()).is_some());
        }
        let _ = crate::render::terminal(&problems.clone().into_sorted(), |_| Some(&source), crate::render::Colour::Never);
        if problems.is_empty() {
            let once = layout(&tree, &indent);
            prop_assert_eq!(&layout(&clean(&once), &indent), &once);
        } else {
            let _ = layout(&tree, &indent);
        }
    }
}
